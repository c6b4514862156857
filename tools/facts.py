"""Record the facts that claims need and no run has: `python tools/facts.py results/facts.jsonl`.

Data and shipped models take about a minute on one core, small runs of PAPL two minutes each. What the file already has
is not measured again.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import hardtail
from hardtail.core.provenance import origin
from hardtail.core.records import LogLine, append_jsonl, read_jsonl
from hardtail.core.types import Array
from hardtail.measuring.loss_weights import relative_weights
from hardtail.measuring.subject import Subject, load_subject
from hardtail.schemes.papl import Papl
from hardtail.study.recipes import recipe_named
from hardtail.study.store import Fact
from hardtail.tasks.addition.solver import P_ABOVE_G, P_ABOVE_K, P_ABOVE_P, P_BOTTOM
from hardtail.training.run import train

DRAWS, TRAINED = (41, 42, 43), (42,)
"""Seeds of drawn data and of small runs, and of the zoo's models."""
LOOKS = (250, 500, 1000, 2000, 3000, 4000)
"""The training steps at which PAPL's weights are measured in a small run."""
PROPAGATING = (P_ABOVE_G, P_ABOVE_K, P_ABOVE_P, P_BOTTOM)
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


def shipped_papl(seed: int) -> Found:
    """What PAPL's loss gives to cells inside a chain and directly above it, on sums with a chain of 12 and more."""
    for name in ("addition-papl", "addition-papl-paper"):
        for place, weight_K in _weights(load_subject(f"zoo:{name}"), "chain>=12", seed).items():
            if place in ("inside", "above"):
                yield f"{name}.weight.{place}", float(weight_K.mean()), len(weight_K)


def papl_in_training(seed: int) -> Found:
    """The same while four digits are learned, at several steps and over all of them; and whether they were learned."""
    recipe, reached = replace(recipe_named("addition-papl-small"), seed=seed), 0

    def moved(step: int) -> None:
        nonlocal reached
        reached = step

    def past(step: int) -> bool:
        return reached >= step

    looks: dict[str, list[Array]] = {}
    with TemporaryDirectory() as folder:
        for look in LOOKS:
            train(recipe, Path(folder), device="cpu", progress=moved, should_stop=partial(past, look))
            for place, weight_K in _weights(load_subject(folder, kind="last"), "chain>=3", seed).items():
                looks.setdefault(place, []).append(weight_K)
                yield f"{recipe.name}.weight.{place}.step-{look}", float(weight_K.mean()), len(weight_K)
        log = read_jsonl(Path(folder) / "log.jsonl", LogLine)
    *_, natural = (line.natural for line in log if line.natural is not None)
    yield f"{recipe.name}.natural", natural, recipe.watch.decoded
    for place, weights in looks.items():
        at_all_K = np.concatenate(weights)
        yield f"{recipe.name}.weight.{place}", float(at_all_K.mean()), len(at_all_K)


def _weights(subject: Subject, stratum: str, seed: int) -> dict[str, Array]:
    """The relative weights of hidden cells by their place, and by how many propagating digits are directly below."""
    sums = subject.task.sample(1000, hardtail.Streams(seed).named("facts"), stratum=stratum)
    weight_NA = relative_weights(subject.denoiser, sums, Papl(alpha=1.0), np.random.default_rng(seed))
    role_NA = subject.task.roles(sums).role_NA
    inside_NA = role_NA == P_ABOVE_P
    above_NA = ~inside_NA & _of_lower_digit(inside_NA)
    propagates_NA = np.isin(role_NA, PROPAGATING)
    places = {"inside": inside_NA, "above": above_NA, "bottom": propagates_NA & ~inside_NA}
    places["other"] = ~(propagates_NA | above_NA)
    waits_NA = np.zeros(role_NA.shape, dtype=np.int64)
    for _ in range(role_NA.shape[1]):
        waits_NA = np.where(_of_lower_digit(propagates_NA), 1 + _of_lower_digit(waits_NA), 0)
    places |= {f"waits-{depth}": waits_NA == depth for depth in range(waits_NA.max() + 1)}
    return {place: weight_NA[of_NA & ~np.isnan(weight_NA)] for place, of_NA in places.items()}


def _of_lower_digit(held_NA: Array) -> Array:
    """For each answer cell what is held for the digit below it; answers are written highest digit first."""
    return np.pad(held_NA, ((0, 0), (0, 1)))[:, 1:]


WHAT: dict[str, tuple[Callable[[int], Found], tuple[int, ...]]] = {
    "drawn Countdown puzzles": (countdown, DRAWS),
    "drawn Sudokus": (sudoku, DRAWS),
    "models of the zoo on masked sums": (shipped_papl, TRAINED),
    "small runs of PAPL on masked sums": (papl_in_training, DRAWS),
}


def main(path: Path) -> None:
    made = origin("cpu")
    held = {(fact.about, fact.seed) for fact in read_jsonl(path, Fact)}
    for about, (find, seeds) in WHAT.items():
        for seed in (seed for seed in seeds if (about, seed) not in held):
            found = [Fact(fact=name, about=about, seed=seed, value=value, n=n, **made) for name, value, n in find(seed)]
            append_jsonl(path, found)
            print(*found, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
