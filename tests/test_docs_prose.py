"""The figures in the sentences of docs/reproduction.md are those of the diagnoses, as those in its tables are."""

import re
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from hardtail.measuring.diagnosis import Diagnosis
from tests.docs_tables import NUMBER, ROOT, RUNS, Figures, differs

TOP, FIRST = (f"profile.wrong_commits.{name}." for name in ("lowest_index", "first_in_time"))
RANDOM, PAPL5, PUMA = (f"addition-{scheme}-tf32-s42" for scheme in ("random", "papl5", "puma"))
TEXT = "addition-papl-paper-s42"


def diagnosis(run: str, policy: str = "top1", weights: str = "last", part: str = "result") -> Diagnosis:
    return RUNS[run].explaining(part)[policy, weights]


def numbers(run: str, *paths: str, policy: str = "top1", weights: str = "last") -> Figures:
    parted = [path.split(".") for path in paths]
    return [diagnosis(run, policy, weights, path[0]).number(path) for path in parted]


def commits(run: str, *names: str, reading: str = TOP) -> Figures:
    return numbers(run, *(reading + name for name in names))


def listed(run: str, *paths: str, policy: str = "top1") -> Figures:
    """Of a run whose weights are those with the best probe."""
    return numbers(run, *paths, policy=policy, weights="best_probe")


def solved_in_order(run: str) -> Figures:
    """Failures that the logical order solves, all failures, those that neither order solves."""
    crossed = diagnosis(run, "lsb").cross
    assert crossed is not None
    found = crossed.strata["all"]
    return [found.only_second, found.only_second + found.neither, found.neither]


def fully_hidden(run: str) -> float:
    *_, most = filter(None, hidden(run))
    return most / sum(hidden(run))


def hidden(run: str) -> Sequence[int]:
    """The states that it trained on, by number of hidden cells."""
    coverage = RUNS[run].coverage
    assert coverage is not None
    return coverage.by_count


COUNTDOWN, SUDOKU = (
    {scheme: f"{task}-{scheme}-quarter-s42" for scheme in ("random", "papl", "puma")}
    for task in ("countdown", "sudoku")
)
MIXED, ORACLE = (f"countdown-{scheme}-quarter-s42" for scheme in ("mixture", "oracle"))
RARE, ORDER = "coverage.rare_by_rank", "constraint_propagation"
SAID: dict[str, Callable[[], Figures]] = {
    "Of its # failures among the 2,700 diagnosed sums (chains of 4 and more; paper: 39), # have their most significant "
    "wrong digit directly above the chain. That token has probability # on average (paper: .997), and at the median # "
    "of the chain is still hidden (paper, random: .68). On chains of 28 and more it is committed at step # of 33": (
        lambda: commits(
            RANDOM, "failures", "at_chain_msb", "confidence_mean", "chain_masked_median", "long_step_median"
        )
    ),
    "(# of # diagnosed failures are solved LSB-first, # in neither order)": lambda: solved_in_order(PAPL5),
    "# at the cell above the chain, # inside the chain and every one of these off by nine, the right token second in "
    "#, probability #. Commits made before the cell they wait for is written are right in # of cases, others in # and "
    "more": lambda: [
        *commits(PAPL5, "at_chain_msb", "inside_chain", "gold_second", "confidence_mean"),
        *numbers(PAPL5, "readiness.accuracy.unready.accuracy", "readiness.accuracy.ready.accuracy"),
    ],
    "the last weights fail on #, all with chains of 30 and more, at the very last commit, with a probability of # on": (
        lambda: commits(PUMA, "failures", "confidence_mean")
    ),
    "Random masking's right token is second in # of the wrong commits (paper: consistently), and only # are made": (
        lambda: commits(RANDOM, "gold_second", "premature")
    ),
    "The direction of the error at g cells agrees (+1 in #). At k cells it does not (−1 in #, paper: always)": (
        lambda: commits(RANDOM, "plus_one_at_g", "minus_one_at_k")
    ),
    "the right token is second in #; but then # of the first wrong commits are *inside* the chain and # above it": (
        lambda: commits(RANDOM, "gold_second", "inside_chain", "at_chain_msb", reading=FIRST)
    ),
    "Of the states that PUMA trained on, # are fully hidden": lambda: [fully_hidden(PUMA)],
    "(by the number of hidden cells and their depth, # of the visited states would have to be moved to match the "
    "trained ones, # under confidence)": lambda: [
        *numbers(PUMA, "coverage.count_and_rank_distance", policy="lsb"),
        *numbers(PUMA, "coverage.count_and_rank_distance"),
    ],
    "(Kendall's τ with the logical order is #)": lambda: numbers(TEXT, "readiness.agreement.lsb.tau_b"),
    "it errs both ways (+1 in # of g, −1 in # of k; paper: no consistent sign). But # of the failures are at the cell "
    "above the chain, the wrong commit comes early (step # of 33 at the median, paper: 28), and # of the chain": (
        lambda: commits(TEXT, "plus_one_at_g", "minus_one_at_k", "at_chain_msb", "step_median", "chain_masked_median")
    ),
    "Of 2,100 mazes of the diagnosis confidence fails on # and": lambda: listed("maze-papl-s42", "profile.failures"),
    "# of wrong cells have exactly two wrong neighbours (paper: 96 %), and the first wrong one was committed with a "
    "median probability of #": lambda: listed(
        "maze-papl-s42",
        "profile.wrong_neighbours.exactly_two",
        "profile.first_wrong.first_in_time.probability_median",
    ),
    "Of the states that PUMA trained on mazes, # are fully hidden": lambda: [fully_hidden("maze-puma-s42")],
    "Of the hidden cells that dead-end filling meets, # are in places that PUMA rarely trained": (
        lambda: listed("maze-puma-s42", RARE, policy="dead_end_filling")
    ),
    "Of the hidden cells met in the order of steps, # are in places that PUMA rarely trained; of those met under "
    "confidence #": lambda: [
        *listed(COUNTDOWN["puma"], RARE, policy="step_sequential"),
        *listed(COUNTDOWN["puma"], RARE),
    ],
    "Of the hidden cells met in the order of steps none is in a place that the mixture rarely trained (PUMA: #), nor "
    "of those met under confidence (PUMA: #)": lambda: [
        *listed(COUNTDOWN["puma"], RARE, policy="step_sequential"),
        *listed(COUNTDOWN["puma"], RARE),
    ],
    "Trained along one order it meets nearly no other state: of the hidden cells met under confidence # are in": (
        lambda: listed(ORACLE, RARE)
    ),
    "Of random masking's # answers that are not the gold one, # are other solutions, # have a false equation, # are "
    "true and misuse the numbers, and # are malformed": lambda: listed(
        COUNTDOWN["random"],
        "profile.failures",
        *(f"profile.validity.{name}" for name in ("valid", "arithmetic", "cheat", "malformed")),
    ),
    "over all boards, solved ones included, its mean probability is #, and # of its digits are right": (
        lambda: listed(SUDOKU["random"], *(f"readiness.calibration.all.{name}" for name in ("confidence", "accuracy")))
    ),
    "# of the wrong cells clash with another cell, although most of a failed board's blanks are wrong (# at the": (
        lambda: listed(SUDOKU["random"], "profile.wrong_cells_that_clash", "profile.wrong_cells_of_a_failure.median")
    ),
    "of the hidden cells met in propagation order, # are in places that it rarely trained (random masking: #)": (
        lambda: [number for scheme in ("puma", "random") for number in listed(SUDOKU[scheme], RARE, policy=ORDER)]
    ),
}
"""Sentences with # for each number, and what the records have for these."""


@cache
def _page() -> str:
    return " ".join((ROOT / "docs/reproduction.md").read_text().split())


def test_some_schemes_trained_everywhere() -> None:
    assert [listed(MIXED, RARE, policy=policy) for policy in ("top1", "step_sequential")] == [[0.0], [0.0]]
    assert [listed(f"maze-{s}-s42", RARE, policy="dead_end_filling") for s in ("random", "papl")] == [[0.0], [0.0]]


def test_puma_trained_no_nearly_hidden_maze() -> None:
    *_, before, first = [count for count, states in enumerate(hidden("maze-puma-s42")) if states]
    assert (before, first) == (189, 197)


@pytest.mark.parametrize("said", SAID, ids=lambda said: said[:40])
def test_a_sentence_says_what_is_recorded(said: str) -> None:
    [printed] = re.finditer(re.escape(said).replace(r"\#", f"({NUMBER.pattern})"), _page())
    recorded = SAID[said]()
    assert len(recorded) == len(printed.groups())
    wrong = [
        (number, value)
        for number, value in zip(printed.groups(), recorded, strict=True)
        if value is None or differs(number, value)
    ]
    assert not wrong, "(printed, recorded)"
