"""Compare our Sudoku rating and solver with a file of rated puzzles, and show what techniques its puzzles need.

    python benchmarks/check_sudoku_ratings.py rated_puzzles.csv.gz

The file has the columns `source,question,answer,rating` of *sudoku-extreme* (blanks as `.` or `0`). For each source a
seeded sample is rated and solved on one core; agreement is the share of puzzles with exactly the file's rating. Then
come the shares of blank cells by technique level, in both readings, for each source and for our own tiers.

Exits with 1 where a source agrees in less than 98 % of the ratings, or in less than all zeros and answers.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from arguments import how_many
from hardtail.core.files import read_lines
from hardtail.core.seeds import Streams
from hardtail.tasks.sudoku.files import Puzzles, read_boards, read_puzzles
from hardtail.tasks.sudoku.solver.board import Board
from hardtail.tasks.sudoku.solver.rating import rate_many
from hardtail.tasks.sudoku.solver.search import solve_many
from hardtail.tasks.sudoku.solver.techniques import LEVELS, Reading, levels_many
from hardtail.tasks.sudoku.task import TIERS, Sudoku

SAME_RATING = 0.98
READINGS: tuple[Reading, ...] = ("released", "closure")


def sampled(path: Path, rows: int, streams: Streams) -> dict[str, Puzzles]:
    """Up to `rows` random puzzles of each source in the file."""
    header, *lines = read_lines(path)
    column = header.split(",").index("source")
    by_source: dict[str, list[str]] = {}
    for line in lines:
        by_source.setdefault(line.split(",")[column], []).append(line)
    return {
        source: read_puzzles([header, *(of_source[i] for i in shuffled(len(of_source), source, streams)[:rows])])
        for source, of_source in by_source.items()
    }


def shuffled(n: int, source: str, streams: Streams) -> list[int]:
    return np.argsort(streams.named(f"check_sudoku_ratings/{source}").keys(n)).tolist()


def compare(source: str, puzzles: Puzzles) -> bool:
    """Print how far ratings and solutions agree with the file's; whether they do well enough."""
    board_NC = read_boards(puzzles.question)
    start = perf_counter()
    ours_N = rate_many(board_NC)
    rated = perf_counter()
    count_N, solution_NC = solve_many(board_NC)
    solved = perf_counter()

    same_rating = float(np.mean(ours_N == puzzles.rating_N))
    same_zero = float(np.mean((ours_N == 0) == (puzzles.rating_N == 0)))
    same_answer = float(((solution_NC == read_boards(puzzles.answer)).all(axis=1) & (count_N == 1)).mean())
    print(
        f"{source:28} {len(ours_N):8,} {same_rating:12.2%} {same_zero:10.2%} {same_answer:12.2%} "
        f"{(rated - start) / len(ours_N) * 1e3:6.3f} ms {(solved - rated) / len(ours_N) * 1e3:6.3f} ms"
    )
    return same_rating >= SAME_RATING and same_zero == 1 and same_answer == 1


def show_levels(name: str, board_NC: Board) -> None:
    """Print the shares of blank cells at each technique level."""
    for reading in READINGS:
        level_NC, _ = levels_many(board_NC, reading)
        share = np.bincount(level_NC[level_NC >= 0], minlength=len(LEVELS)) / (level_NC >= 0).sum()
        print(f"{name:28} {len(board_NC):8,} {reading:>9} " + " ".join(f"{value:6.3f}" for value in share))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="CSV (or .csv.gz) with the columns source,question,answer,rating")
    parser.add_argument("--rows", type=how_many, default=3000, help="puzzles sampled from each source")
    parser.add_argument(
        "--level-rows", type=how_many, default=1000, help="of them, and of each of our tiers, for the levels"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    streams = Streams(arguments.seed)
    lists = sampled(arguments.data, arguments.rows, streams)
    blank = np.zeros((1, 81), dtype=np.uint8)
    rate_many(blank)  # compiles, so that it is not timed
    solve_many(blank)
    titles = f"{'same rating':>12} {'same zero':>10} {'same answer':>12} {'rate':>9} {'solve':>9}"
    print(f"{'source':28} {'puzzles':>8} {titles}")
    agreed = [compare(source, puzzles) for source, puzzles in lists.items()]

    print(f"\n{'blank cells by level':28} {'puzzles':>8} {'reading':>9} " + " ".join(f"{name:>6}" for name in LEVELS))
    for source, puzzles in lists.items():
        show_levels(source, read_boards(puzzles.question[: arguments.level_rows]))
    task = Sudoku()
    for tier in TIERS:
        stream = streams.named(f"check_sudoku_ratings/levels/{tier}")
        made = task.sample(arguments.level_rows, stream, f"tier={tier}")
        show_levels(f"our tier={tier}", made.tokens_NL[:, :81].astype(np.uint8))
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())
