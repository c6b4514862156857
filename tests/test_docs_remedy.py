"""The figures of docs/remedy.md are those of the records, and the claims that pages count are the ledger's."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import product
from statistics import fmean

import pytest

from hardtail.core.records import Accuracy, Trust, read_measurements
from hardtail.study.claims import Verdict, judge
from hardtail.study.claims.base import Judged
from hardtail.study.claims.ledger import source_named, source_names
from hardtail.study.claims.ours.figures import Decoded
from hardtail.study.claims.ours.remedy import (
    ADDITION,
    CALIBRATED,
    COMB,
    COMB_CALIBRATED,
    COMB_LADDER,
    DETECTED,
    HALVES,
    HARDEST,
    LATER,
    OTHERS,
    OWN,
    QUARTERS,
    RESTARTS,
    SHIPPED,
    TINY,
)
from tests.docs_tables import RESULTS, ROOT, Figures, compare, right, table

REMEDY = "docs/remedy.md"
DETAILS = "docs/remedy-details.md"
MODELS = {
    "addition, PAPL α = 1, text": ADDITION["addition-papl-paper"],
    "addition, random masking": ADDITION["addition-random"],
    "addition, PUMA": ADDITION["addition-puma"],
    "addition, PAPL α = 1": ADDITION["addition-papl"],
    "addition, PAPL α = 5": ADDITION["addition-papl5"],
    "mazes, random masking": OTHERS["maze-random"],
    "mazes, PUMA": LATER["maze-puma"],
    "ListOps": OTHERS["listops-random"],
    "Countdown": QUARTERS["countdown-random"],
    "Sudoku": QUARTERS["sudoku-random"],
}
"""The rows of the tables, and their runs."""


def task_of(run: str) -> str:
    return run.partition("-")[0]


def number(run: str, policy: str, stratum: str, metric: str = "exact_match", score: str = "") -> float:
    """The mean over the data seeds, each with the same weight."""
    figure = Decoded(run, policy, stratum, metric, score, usual=SHIPPED.get(run, "best_probe"))  # type: ignore[arg-type]
    return fmean(sample.value for sample in figure.samples(RESULTS))


def accuracy_and_passes(run: str, policy: str, stratum: str) -> list[float]:
    ladder = policy == "ladder" and task_of(run) == "addition"
    return [number(run, COMB_LADDER if ladder else policy, stratum, metric) for metric in ("exact_match", "passes")]


@pytest.mark.parametrize("hard", [True, False])
def test_what_checking_gains(hard: bool) -> None:
    expected: dict[str, Figures] = {}
    for label, run in MODELS.items():
        task = task_of(run)
        if not hard and task == "addition":
            continue  # in one row for all five
        stratum = DETECTED[task] if hard else "natural"
        policies = ["top1", "check", "ladder", *([RESTARTS] if task in ("listops", "countdown", "sudoku") else [])]
        row: list[float | None] = [value for name in policies for value in accuracy_and_passes(run, name, stratum)]
        row += [None] * 2 if label == "mazes, PUMA" else []  # fewer mazes, which no claim is about
        expected[label] = [*row, *in_order(run, stratum)] if hard else row
    compare(REMEDY, "| up to eight tries | logical order |" if hard else "| up to eight tries |\n", expected)


def in_order(run: str, stratum: str) -> list[float]:
    """The logical order; those of Countdown and Sudoku are the study's own, on other problems, without their passes."""
    task = task_of(run)
    orders = {"addition": "lsb", "maze": "dead_end_filling", "listops": "post_order"}
    if task in orders:
        return accuracy_and_passes(run, orders[task], stratum)
    own = {"countdown": "step_sequential", "sudoku": "constraint_propagation"}
    return [right(run, own[task], stratum, "best_probe")]


def test_what_checking_costs_on_ordinary_sums() -> None:
    found = [
        [accuracy_and_passes(run, policy, "natural") for run in ADDITION.values()]
        for policy in ("top1", "check", "ladder")
    ]
    single, *ranges = found
    expected = [min(right for right, _ in single), single[0][1]]
    for each in ranges:
        passes = [cost for _, cost in each]
        expected += [min(right for right, _ in each), min(passes), max(passes)]
    [row] = [label for label in table(REMEDY, "| up to eight tries |\n") if label.startswith("addition")]
    compare(REMEDY, "| up to eight tries |\n", {row: expected})


def test_what_the_energy_detects() -> None:
    rows = table(REMEDY, "`threshold`: own probability")
    assert len(rows) >= 8
    expected = {}
    for label in rows:
        run = MODELS[label]
        energy = COMB if task_of(run) == "addition" else HALVES
        asked = product(("threshold", "top1"), (OWN, energy))
        stratum = DETECTED[task_of(run)]
        expected[label] = [number(run, policy, stratum, "auroc", score) for policy, score in asked]
    compare(REMEDY, "`threshold`: own probability", expected)


def test_ladders_with_a_calibrated_limit() -> None:
    runs = MODELS | {"Countdown, little model": LATER["countdown-little"]}
    rows = table(DETAILS, "| | limit | natural |")
    assert len(rows) == 9
    expected = {}
    for label in rows:
        run = runs[label]
        sums = task_of(run) == "addition"
        row: list[float | None] = [None]  # the limit
        for stratum in ("natural", HARDEST[task_of(run)]):
            for policy in (COMB_CALIBRATED if sums else CALIBRATED, COMB_LADDER if sums else "ladder"):
                row += [number(run, policy, stratum, metric) for metric in ("exact_match", "passes")]
        expected[label] = row
    compare(DETAILS, "| | limit | natural |", expected)


# -- how many claims hold ---------------------------------------------------------------------------------------------

SMALL = "none one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
WORDS = {word: number for number, word in enumerate(re.findall(r"\w+", SMALL))}
COUNT = rf"\b([0-9]+|{'|'.join(WORDS)})\b"
AFTERWARDS = {f"remedy.{kind}.{model}" for kind, model in product(("detect", "ladder"), LATER)}
"""Claims that were entered when their figures were known."""


@cache
def ours() -> tuple[list[Judged], list[Judged]]:
    """This project's own claims about checking: those that were registered before the measurement, and the others."""
    judged = judge(RESULTS, [claim for claim in source_named("ours").claims() if claim.id.startswith("remedy.")])
    later = [item for item in judged if item.claim.id in AFTERWARDS]
    return [item for item in judged if item not in later], later


def counted(page: str) -> list[list[int]]:
    """The numbers of each statement on a page that begins with how many claims it is about."""
    text = re.sub(r"\s+", " ", (ROOT / page).read_text())
    statements = re.findall(rf"{COUNT} (?:\w+ )?claims\b([^.;:]*)", text, flags=re.IGNORECASE)
    found = [[first, *re.findall(COUNT, rest, flags=re.IGNORECASE)] for first, rest in statements]
    return [[int(one) if one.isdigit() else WORDS[one.lower()] for one in numbers] for numbers in found]


def verdicts(judged: Sequence[Judged], *more: Verdict) -> list[int]:
    """How many claims there are, hold, hold weaker and do not hold, and how many have other verdicts."""
    said = [item.verdict for item in judged]
    return [len(said), *map(said.count, (Verdict.HOLDS, Verdict.WEAKER, Verdict.NOT, *more))]


def test_the_claims_that_the_pages_count() -> None:
    paper, (registered, later) = judge(RESULTS), ours()
    for task in ("countdown", "sudoku"):
        about = [item for item in paper if item.claim.id.startswith(f"{task}.")]
        assert verdicts(about) in counted("docs/reproduction.md"), task
    assert verdicts(registered, Verdict.MOOT) in counted(REMEDY)
    assert verdicts(later)[:2] in counted(REMEDY)
    assert len(later) in [said[0] for said in counted(DETAILS)]


def test_the_claims_of_all_sources() -> None:
    total = sum(len(list(source_named(name).claims())) for name in source_names())
    assert table("docs/design.md", "| | before | today |")["claims"][-1] == str(total)


def test_the_registered_claims_that_hold() -> None:
    kinds = {
        "repair": "repair",
        "detection": "detect",
        "ladder": "ladder",
        "ladder, limit set by natural problems": "calibrated",
        "check against margin": "margin",
        "trying again": "restarts",
    }
    rows = table(REMEDY, "| held | failed |")
    assert set(rows) == set(kinds)
    for label, kind in kinds.items():
        held = [item for item in ours()[0] if item.claim.id.split(".")[1] == kind and item.verdict is Verdict.HOLDS]
        assert int(re.findall("[0-9]+", rows[label][1])[0]) == len(held), label


def test_the_sudoku_model_that_ships() -> None:
    again = [
        value
        for stratum in ("natural", DETECTED["sudoku"])
        for policy in ("top1", RESTARTS)
        for value in accuracy_and_passes(TINY, policy, stratum)
    ]
    compare(DETAILS, "| natural: `top1` | passes |", {"Sudoku, PUMA, the model that ships": again})
    scores = (OWN, "first look entropy", HALVES, COMB, "comb differs")
    detected: dict[str, Figures] = {
        f"Sudoku, the model that ships, {label}": [
            *(None, None),  # instances, and wrong ones
            *(number(TINY, "threshold", stratum, "auroc", score) for score in scores),
        ]
        for label, stratum in (("natural", "natural"), ("hard", DETECTED["sudoku"]))
    }
    compare(DETAILS, "| AUROC of, after `threshold` |", detected)


def test_how_long_checking_takes() -> None:
    held = [item for item in read_measurements(ROOT / "results/timed.jsonl") if isinstance(item, Accuracy)]
    walls = {(item.device or "")[:3] + str((item.model, item.policy, item.stratum)): item.wall for item in held}
    models = {"addition, PAPL α = 1, text": "addition-papl-paper", "addition, random masking": "addition-random"}
    columns = list(product(("natural", HARDEST["addition"]), ("check", COMB_LADDER, "top1")))
    for heading, device in (("| captured |", "NVI"), ("| two cores |", "CPU")):
        expected = {
            label: [walls[device + str((model, policy, stratum))] for stratum, policy in columns]
            for label, model in models.items()
        }
        compare(DETAILS, heading, expected)


def test_what_heads_do_on_countdown() -> None:
    held = [item for item in read_measurements(ROOT / "results/remedy.jsonl") if item.model == "countdown-little"]
    right = {item.policy: [item.exact_match, item.passes] for item in held if isinstance(item, Accuracy)}
    areas = {(item.policy, item.score): item.auroc for item in held if isinstance(item, Trust)}

    def judged(score: str) -> list[float | None]:
        return [areas[policy, score] for policy in ("threshold", "top1")]

    expected: dict[str, Figures] = {
        "`threshold`, the draft; own probability": right["threshold"] + judged(OWN),
        "`check`, nothing learned; energy over halves": right["check"] + judged(HALVES),
        "planner, logical order": right["planned by order"],
        "planner, agreement": right["planned by agreement"],
        "`top1`": right["top1"],
        "PRISM's head, then the 4 least trusted cells; the head's doubt": right["suspects,k=4"]
        + judged("head's doubt"),
        "PRISM's head, then the 11 least trusted": right["suspects,k=11"],
    }
    compare(DETAILS, "| natural puzzles | right |", expected)


def test_what_is_done_where_a_cell_differs() -> None:
    held = [item for item in read_measurements(ROOT / "results/remedy.jsonl") if isinstance(item, Accuracy)]
    found = {(item.model, item.policy): [item.exact_match, item.passes] for item in held}
    models = "addition-papl-paper", "addition-random"
    ways = {
        "combs, `refill`": "then=refill",
        "combs, `region`": "then=region",
        "by attention, `refill`": "hide=attention,then=refill",
        "by attention, `region`: what depends on it": "hide=attention,then=region",
    }
    expected = {
        label: [*found[models[0], f"check,{way}"], *found[models[1], f"check,{way}"]] for label, way in ways.items()
    }
    compare(DETAILS, "| groups, then |", expected)
