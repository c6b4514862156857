"""Instances per second of every generator, solver and annotator on one core, beside a peer where PyPI has one.

Run with `make bench-data`; `docs/performance.md` keeps the table.
"""

import platform
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import hardtail
from hardtail import Streams
from hardtail.tasks.sudoku.solver import board, generate, rating, search, techniques
from hardtail.tasks.sudoku.solver.minimal import minimal_puzzle

SECONDS = 1.5
Rate = float


@dataclass(frozen=True)
class Row:
    what: str
    rate: Rate
    bar: Rate | None = None
    """What the project promises on one core."""
    peer: str = ""
    peer_rate: Rate | None = None
    ratio_bar: float | None = None
    """How many times faster than the peer it is promised to be."""

    def cells(self) -> list[str]:
        """The row as the table prints it."""
        bar, ratio, peer_rate = "", "", ""
        if self.bar:
            bar = f"{self.bar:,.0f} {'ok' if self.rate >= self.bar else 'MISSED'}"
        if self.peer_rate:
            peer_rate, ratio = f"{self.peer_rate:,.0f}", f"{self.rate / self.peer_rate:,.0f}×"
            if self.ratio_bar:
                bar = f"{self.ratio_bar:.0f}× {'ok' if self.rate >= self.ratio_bar * self.peer_rate else 'MISSED'}"
        return [self.what, f"{self.rate:,.0f}", f"{1000 / self.rate:.3f}", bar, self.peer, peer_rate, ratio]


def per_second(work: Callable[[int], object], batch: int) -> Rate:
    """Instances per second of `work(batch)`, best of repeated runs after one that compiles."""
    work(batch)
    best, start = np.inf, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        began = time.perf_counter()
        work(batch)
        best = min(best, time.perf_counter() - began)
    return batch / best


def sampling(name: str, batch: int, stratum: str = "natural") -> Rate:
    task, stream = hardtail.task(name), Streams(0).named(f"bench/{name}/{stratum}")
    return per_second(lambda n: task.sample(n, stream, stratum), batch)


def parsing(name: str, batch: int) -> Rate:
    task = hardtail.task(name)
    prompts = task.render(task.sample(batch, Streams(0).named(f"bench/{name}/parse")))
    return per_second(lambda n: task.parse(prompts), batch)


def reasoning_gym_rate(name: str, batch: int, **settings: int) -> Rate:
    import reasoning_gym

    items = reasoning_gym.create_dataset(name, size=batch, seed=0, **settings)
    return per_second(lambda n: [items[i] for i in range(n)], batch)


def maze_dataset_rate(batch: int) -> Rate:
    from maze_dataset import MazeDataset, MazeDatasetConfig
    from maze_dataset.generation import LatticeMazeGenerators

    config = MazeDatasetConfig(name="bench", grid_n=10, n_mazes=batch, maze_ctor=LatticeMazeGenerators.gen_dfs)

    def generate_all(n: int) -> object:
        return MazeDataset.from_config(
            config, load_local=False, save_local=False, do_download=False, gen_parallel=False
        )

    return per_second(generate_all, batch)


def sudoku_rows() -> list[Row]:
    keys = Streams(0).named("bench/sudoku").keys(300)
    minimal = generate.rated_many(keys, 0, generate.MOST)[0]
    stack_DG = np.empty((search.DEPTH, search.GRID), np.int32)

    def draw_minimal(n: int) -> None:
        for key in keys[:n]:
            minimal_puzzle(generate.state_of(key), stack_DG, np.zeros(81, np.uint8), np.zeros(81, np.uint8))

    rated = rating.rate_many(minimal)
    easy = minimal[rated == 0]
    hard, _, hard_rating = generate.rated_many(keys[:20], 42, 1000)

    def over(boards: NDArray[np.uint8], work: Callable[[NDArray[np.uint8]], object]) -> Rate:
        return per_second(lambda n: work(boards), len(boards))

    return [
        Row(
            "sudoku: minimal unique puzzle",
            per_second(draw_minimal, 300),
            bar=1000,
            peer="reasoning-gym (32-50 blanks, not minimal)",
            peer_rate=reasoning_gym_rate("sudoku", 20),
        ),
        Row("sudoku: solve and count (minimal)", over(minimal, search.solve_many)),
        Row("sudoku: rating (rated 0)", over(easy, rating.rate_many), bar=5000),
        Row(f"sudoku: rating (rated {hard_rating.min()}+)", over(hard, rating.rate_many), bar=250),
        Row("sudoku: levels, released (minimal)", over(minimal, lambda b: techniques.levels_many(b, "released")), 500),
        Row("sudoku: levels, closure (minimal)", over(minimal, lambda b: techniques.levels_many(b, "closure")), 500),
        Row(
            f"sudoku: levels, closure (rated {hard_rating.min()}+)",
            over(hard, lambda b: techniques.levels_many(b, "closure")),
            500,
        ),
        Row("sudoku: solver order (minimal)", over(minimal, board.solver_order_many)),
        Row("sudoku: candidate-count order (minimal)", over(minimal, board.candidate_count_many)),
        Row("sudoku: parse text", parsing("sudoku", 300)),
        Row("sudoku: sample, fully annotated", sampling("sudoku", 200)),
        Row("sudoku: sample tier=very_hard", sampling("sudoku", 20, "tier=very_hard")),
        Row("sudoku: sample tier=top1pct", sampling("sudoku", 4, "tier=top1pct")),
    ]


def rows() -> list[Row]:
    return [
        Row(
            "addition: sample, annotated",
            sampling("addition", 10_000),
            bar=300_000,
            peer="reasoning-gym chain_sum",
            peer_rate=reasoning_gym_rate("chain_sum", 2000, min_terms=2, max_terms=2, min_digits=32, max_digits=32),
        ),
        Row("addition: sample chain>=28", sampling("addition", 10_000, "chain>=28")),
        Row("addition: parse text", parsing("addition", 2000)),
        Row(
            "maze: sample 10×10, annotated",
            sampling("maze", 2000),
            peer="maze-dataset gen_dfs with solution",
            peer_rate=maze_dataset_rate(100),
            ratio_bar=20,
        ),
        Row("maze: sample corridor>=30", sampling("maze", 1000, "corridor>=30")),
        Row("maze: parse text", parsing("maze", 500)),
        Row("listops: sample, annotated", sampling("listops", 5000), bar=20_000),
        Row("listops: sample depth=5", sampling("listops", 2000, "depth=5")),
        Row("listops: parse text", parsing("listops", 1000)),
        Row(
            "countdown: sample with gold, m, distinct m",
            sampling("countdown", 2000),
            bar=5000,
            peer="reasoning-gym (one solution, no m)",
            peer_rate=reasoning_gym_rate("countdown", 50, min_numbers=4, max_numbers=4),
        ),
        Row("countdown: parse text", parsing("countdown", 1000)),
        *sudoku_rows(),
    ]


def main() -> None:
    warnings.simplefilter("ignore")  # the peers' own
    table = Table(title=f"one core of {platform.processor() or platform.machine()}, Python {platform.python_version()}")
    for heading in ("what", "per second", "ms each", "bar", "peer", "peer per second", "ratio"):
        table.add_column(heading, justify="left" if heading in ("what", "peer") else "right")
    measured = rows()
    for row in measured:
        table.add_row(*row.cells())
    Console(width=150).print(table)
    sys.exit(any("MISSED" in cell for row in measured for cell in row.cells()))


if __name__ == "__main__":
    main()
