"""Record the facts that claims need and no run has: `python tools/facts.py results/facts.jsonl`.

About a minute on one core. Facts that the file already has are not recorded again.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import hardtail
from hardtail.core.provenance import origin
from hardtail.core.records import append_jsonl, read_jsonl
from hardtail.measuring.loss_weights import relative_weights
from hardtail.measuring.subject import load_subject
from hardtail.schemes.papl import Papl
from hardtail.study.store import Fact
from hardtail.tasks.addition.solver import P_ABOVE_P

DRAWS, TRAINED = (41, 42, 43), (42,)
"""Seeds of drawn data, and of the zoo's models."""
Found = Iterator[tuple[str, float, int]]


def countdown(seed: int) -> Found:
    """How many test puzzles have up to three solutions: paths of the search, and different sets of equations."""
    drawn = hardtail.task("countdown").sample(1000, hardtail.Streams(seed).named("facts"), stratum="heldout=1")
    for count in ("raw", "distinct"):
        yield f"countdown.low.{count}", float((drawn.strata[f"m_{count}"] <= 3).mean()), len(drawn)


def sudoku(seed: int) -> Found:
    """Blanks of natural puzzles."""
    drawn = hardtail.task("sudoku").sample(200, hardtail.Streams(seed).named("facts"), stratum="natural")
    yield "sudoku.blanks", float(drawn.strata["blanks"].mean()), len(drawn)


def papl(seed: int) -> Found:
    """What PAPL's loss gives to cells inside a chain and directly above it, on sums with a chain of 12 and more."""
    for name in ("addition-papl", "addition-papl-paper"):
        subject = load_subject(f"zoo:{name}")
        sums = subject.task.sample(1000, hardtail.Streams(seed).named("facts"), stratum="chain>=12")
        weight_NA = relative_weights(subject.denoiser, sums, Papl(alpha=1.0), np.random.default_rng(seed))
        inside_NA = subject.task.roles(sums).role_NA == P_ABOVE_P
        above_NA = ~inside_NA & np.pad(inside_NA, ((0, 0), (0, 1)))[:, 1:]  # answers are written highest digit first
        for place, of_NA in (("inside", inside_NA), ("above", above_NA)):
            held_K = weight_NA[of_NA & ~np.isnan(weight_NA)]
            yield f"{name}.weight.{place}", float(held_K.mean()), len(held_K)


WHAT: dict[str, tuple[Callable[[int], Found], tuple[int, ...]]] = {
    "drawn Countdown puzzles": (countdown, DRAWS),
    "drawn Sudokus": (sudoku, DRAWS),
    "models of the zoo on masked sums": (papl, TRAINED),
}


def main(path: Path) -> None:
    made = origin("cpu")
    held = {(fact.fact, fact.seed) for fact in read_jsonl(path, Fact)}
    for about, (find, seeds) in WHAT.items():
        for seed in seeds:
            found = [Fact(fact=name, about=about, seed=seed, value=value, n=n, **made) for name, value, n in find(seed)]
            append_jsonl(path, [fact for fact in found if (fact.fact, fact.seed) not in held])
            print(*found, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
