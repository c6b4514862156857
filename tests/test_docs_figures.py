"""The figures in the tables of README.md and docs/reproduction.md are those of the records."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from hardtail.core.records import Accuracy
from hardtail.show.study_tables import study_tables
from hardtail.study.claims.ledger import printed_accuracy
from hardtail.study.names import QUARTER
from tests.docs_tables import RESULTS, ROOT, RUNS, Figures, compare, differs, right, table

REPRODUCTION = "docs/reproduction.md"
RELEASE = {scheme: f"addition-{scheme}-tf32-s42" for scheme in ("random", "papl", "papl5", "puma")}


def test_a_number_is_compared_to_the_digits_that_are_printed() -> None:
    assert not differs(".888", 0.8884)
    assert differs(".888", 0.8886)
    assert differs(".888", 0.887)
    assert not differs("54.7 %", 0.54725)
    assert differs("54.7 %", 0.548)
    assert not differs("1,025", 1025.4)
    assert differs("15", 15.6)


def in_forty_steps(run: str, policy: str, stratum: str) -> float:
    asked = "40 steps", policy, stratum, "best_probe"
    held = [record for record in RUNS[run].evaluations if isinstance(record, Accuracy)]
    [found] = [of for of in held if (of.commit_rule, of.policy, of.stratum, of.checkpoint) == asked]
    return found.exact_match


def guessed(run: str) -> float:
    """Digits that the probe of the last step guesses."""
    return next(line.probe_guessed for line in reversed(RUNS[run].log) if line.probe_guessed is not None)


def chains(*least: int) -> list[str]:
    return [f"chain>={k}" for k in least]


def paired(paper: Sequence[float | None], ours: Sequence[float]) -> list[float]:
    """The paper's figures, each before ours; a figure that it does not print is left out."""
    return [value for pair in zip(paper, ours, strict=True) for value in pair if value is not None]


def on_paper(task: str, scheme: str, policy: str, stratum: str) -> float | None:
    return printed_accuracy().get((task, scheme, policy), {}).get(stratum)


def test_the_cost_of_being_right() -> None:
    """On the 4,000 sums of two data seeds."""
    run = RUNS["addition-papl-paper-s42"]

    def figures(policy: str) -> list[float]:
        asked = [(policy, "chain>=28", seed, 2000, "last") for seed in (1, 2)]
        found = [
            record
            for record in run.evaluations
            if isinstance(record, Accuracy)
            and (record.policy, record.stratum, record.data_seed, record.n, record.checkpoint) in asked
        ]
        assert len(found) == 2
        return [sum(of.exact_match for of in found) / 2, sum(of.passes or 0.0 for of in found) / 2]

    rows = table("README.md", "`addition-papl-paper`")
    names = {label: re.findall(r"`(\w+)`", label)[-1] for label in rows}
    assert set(names.values()) == {"threshold", "top1", "check", "lsb"}
    compare("README.md", "`addition-papl-paper`", {label: figures(name) for label, name in names.items()})


@pytest.mark.parametrize(("order", "policy"), [("confidence", "top1"), ("LSB-first", "lsb")])
def test_addition_as_released(order: str, policy: str) -> None:
    strata = {f"{k}": f"chain>={k}" for k in (4, 12, 20, 24, 28)}
    expected: dict[str, Figures] = {
        f"{order}: {label}": paired(
            [on_paper("addition", scheme, policy, stratum) for scheme in RELEASE],
            [right(run, policy, stratum) for run in RELEASE.values()],
        )
        for label, stratum in strata.items()
    }
    expected[f"{order}: 28, best probe"] = paired(
        [on_paper("addition", scheme, policy, "chain>=28") for scheme in RELEASE],
        [right(run, policy, "chain>=28", "best_probe") for run in RELEASE.values()],
    )
    natural = [right(run, policy, "natural") for run in RELEASE.values()]
    bounds = (0.999, 0.999, None, 0.999) if policy == "top1" else (None,) * 4
    expected[f"{order}: natural"] = paired(bounds, natural)
    compare(REPRODUCTION, "| PAPL α=1: paper | ours | PAPL α=5: paper", expected)


def test_addition_with_a_second_seed() -> None:
    def figures(run: str, weights: str) -> list[float]:
        strata = ["natural", *chains(4, 12, 20, 24, 28)]
        orders = [right(run, "lsb", stratum, weights) for stratum in ("natural", "chain>=28")]
        return [*(right(run, "top1", stratum, weights) for stratum in strata), *orders, guessed(run)]

    compare(
        REPRODUCTION,
        "| seed 43 |",
        {
            "random masking, last": figures("addition-random-tf32-s43", "last"),
            "random masking, best probe (195,000)": figures("addition-random-tf32-s43", "best_probe"),
            "PUMA, last and best probe (80,000)": figures("addition-puma-tf32-s43", "last"),
        },
    )


def test_addition_with_one_factor_changed() -> None:
    strata = ["natural", *chains(4, 12, 20, 28)]
    runs = {
        "PUMA (above)": "addition-puma-tf32-s42",
        "PUMA with 20 % random masking": "addition-mixture-s42",
        "PAPL α = 1 (above)": "addition-papl-tf32-s42",
        "PAPL α = 1 without dropout": "addition-papl-no-dropout-s42",
    }
    expected = {
        label: [*(right(run, *at) for at in product(("top1", "lsb"), strata)), right(run, "random", "chain>=28")]
        for label, run in runs.items()
    }
    compare(REPRODUCTION, "random order, 28 |", expected)


def test_addition_as_in_the_text() -> None:
    def figures(run: str) -> list[float]:
        confident = [right(run, "top1", stratum) for stratum in ("natural", *chains(4, 12, 20, 24, 28))]
        return [*confident, *(right(run, "lsb", stratum) for stratum in chains(4, 12, 28)), guessed(run)]

    expected: dict[str, Figures] = {
        "random masking": figures("addition-random-paper-s42"),
        "PAPL α = 1": figures("addition-papl-paper-s42"),
        "PAPL α = 5": figures("addition-papl5-paper-s42"),
        "PUMA": figures("addition-puma-paper-s42"),
    }
    compare(REPRODUCTION, "| last weights | natural, of 10,000 |", expected)


def test_small_addition() -> None:
    arms = {
        "random masking": "random",
        "PAPL α = 1": "papl",
        "PAPL α = 5": "papl5",
        "PUMA": "puma",
        "PUMA with 20 % random states": "mixture",
        "OracleOrder": "oracle",
    }
    columns = (("top1", "natural"), ("top1", "chain>=4"), ("lsb", "chain>=4"))
    expected = {
        label: [right(f"addition-{arm}-small-s{seed}", *at) for at in columns for seed in (41, 42, 43)]
        for label, arm in arms.items()
    }
    compare(REPRODUCTION, "| | natural, confidence | chain ≥ 4, confidence | chain ≥ 4, LSB-first |", expected)


def test_listops() -> None:
    runs = {"random": "listops-random-s42", "papl": "listops-papl-s42", "puma": "listops-puma-s42"}
    rows = [("confidence", "top1", range(1, 6)), ("layered post-order", "post_order", (3, 5))]
    expected = {
        f"{order}: {depth}": paired(
            [on_paper("listops", scheme, policy, f"depth={depth}") for scheme in runs],
            [right(run, policy, f"depth={depth}", "best_probe") for run in runs.values()],
        )
        for order, policy, depths in [*rows, ("random order", "random", (3, 5))]
        for depth in depths
    }
    compare(REPRODUCTION, "| depth |", expected)
    seeds: dict[str, Figures] = {
        stratum.removeprefix("depth="): [
            right(f"listops-{scheme}-s{seed}", "top1", stratum, "best_probe")
            for scheme in ("random", "papl", "puma")
            for seed in (42, 43)
        ]
        for stratum in ("natural", *(f"depth={depth}" for depth in range(1, 6)))
    }
    compare(REPRODUCTION, "| depth, two seeds |", seeds)


def test_mazes() -> None:
    random, papl, puma = (f"maze-{scheme}-s42" for scheme in ("random", "papl", "puma"))
    columns = [("random", random, "top1"), ("papl", papl, "top1"), ("puma", puma, "top1")]
    columns += [
        (scheme, run, order)
        for order in ("dead_end_filling", "random")
        for scheme, run in (("papl", papl), ("puma", puma))
    ]
    expected: dict[str, Figures] = {
        f"{k}": paired(
            [on_paper("maze", scheme, policy, f"corridor>={k}") for scheme, _, policy in columns],
            [right(run, policy, f"corridor>={k}") for _, run, policy in columns],
        )
        for k in (4, 8, 15, 20, 25, 30)
    }
    expected["natural"] = [right(run, "top1", "natural") for run in (random, papl, puma)]
    compare(REPRODUCTION, "| corridor ≥ | random, confidence | PAPL", expected)
    mixture = "maze-mixture-s42"
    orders = {"top1": (random, mixture, puma), "dead_end_filling": (mixture, puma), "random": (mixture,)}
    repaired = {
        f"{k}": [right(run, order, f"corridor>={k}") for order, runs in orders.items() for run in runs]
        for k in (4, 8, 15, 20, 25, 30)
    }
    repaired["natural"] = [right(run, "top1", "natural") for run in orders["top1"]]
    compare(REPRODUCTION, "| corridor ≥ | random, confidence | mixture", repaired)
    strata = {"natural": "natural"} | {f"{k}": f"corridor>={k}" for k in (4, 15, 20, 30)}
    quickly = {
        label: [in_forty_steps(run, *at) for run in (random, papl, puma) for at in _both(stratum)]
        for label, stratum in strata.items()
    }
    compare(REPRODUCTION, "| corridor ≥ | random masking |", quickly)


def _both(stratum: str) -> list[tuple[str, str]]:
    return [("top1", stratum), ("dead_end_filling", stratum)]


@pytest.mark.parametrize(("head", "variant"), [("| solutions |", "-quarter"), ("| solutions, all steps |", "")])
def test_countdown(head: str, variant: str) -> None:
    columns = list(product(("random", "papl", "puma"), ("top1", "random", "step_sequential")))
    strata = {"1 to 3": "heldout=1,m=1-3", "11 and more": "heldout=1,m>=11", "all": "heldout=1"}
    expected: dict[str, Figures] = {
        label: paired(
            [on_paper("countdown", scheme, policy, stratum) for scheme, policy in columns],
            [right(f"countdown-{scheme}{variant}-s42", policy, stratum, "best_probe") for scheme, policy in columns],
        )
        for label, stratum in strata.items()
    }
    compare(REPRODUCTION, head, expected)


def test_the_two_remedies_on_countdown() -> None:
    strata = {"1 to 3": "heldout=1,m=1-3", "4 to 10": "heldout=1,m=4-10", "11 and more": "heldout=1,m>=11"}
    schemes = {"random masking": "random", "PUMA": "puma", "the mixture": "mixture", "OracleOrder": "oracle"}
    expected: dict[str, Figures] = {
        f"{bin_}: {label}": [
            right(f"countdown-{scheme}-quarter-s42", policy, stratum, "best_probe")
            for policy in ("top1", "max-logit", "random", "step_sequential")
            if (policy, bin_) != ("random", "4 to 10")  # no claim is about it
        ]
        for bin_, stratum in {**strata, "all": "heldout=1"}.items()
        for label, scheme in schemes.items()
    }
    compare(REPRODUCTION, "| solutions, with the remedies |", expected)


def test_countdown_while_it_trained() -> None:
    rows = {
        "all, confidence": ("natural", "top1", "heldout=1"),
        "1 to 3 solutions, confidence": ("hard", "top1", "heldout=1,m=1-3"),
        "1 to 3 solutions, in steps": ("hard_logical", "step_sequential", "heldout=1,m=1-3"),
    }
    expected: dict[str, Figures] = {}
    labels = {
        "random": ("random masking: ", "", ""),
        "papl": ("PAPL: ",) * 3,
        "puma": ("PUMA (last: step 190,000): ", "PUMA: ", "PUMA: "),
    }
    for scheme, says in labels.items():
        log = {line.step: line for line in RUNS[f"countdown-{scheme}-s42"].log}
        for start, (label, (field, *asked)) in zip(says, rows.items(), strict=True):
            seen = [getattr(log[step], field) for step in (50_000, 100_000, 150_000, max(log))]
            expected[start + label] = [*seen, on_paper("countdown", scheme, *asked)]
    compare(REPRODUCTION, "| step | 50,000 | 100,000 |", expected)


def test_single_cells_of_sudoku() -> None:
    """The means over tiers are the ledger's, of the runs that the section is about."""
    by_row: dict[str, dict[tuple[str, str], Figures]] = {}
    for found in study_tables(replace(RESULTS, endings=(("sudoku", (QUARTER,)),))):
        for name, cells in found.rows if found.task == "sudoku" else ():
            heads = zip(found.heads, cells, strict=True)
            by_row.setdefault(name, {}).update({head: (cell.paper, cell.ours) for head, cell in heads})
    orders = ("Confidence", "Random order", "Constraint propagation", "Technique")
    expected = {
        label: [value for scheme in ("Random", "PAPL", "PUMA") for of in orders for value in by_row[row][of, scheme]]
        for label, row in (("all tiers", "overall"), ("hardest 1 %", "hardest 1 %"), ("TL4 ≥ 95 %", "TL4 ≥ 95 %"))
    }
    compare(REPRODUCTION, "| puzzles | random: confidence |", expected)


def test_whole_sudokus() -> None:
    names = ("easy", "medium", "hard", "very_hard", "extreme", "top1pct")
    strata = ["natural", *(f"tier={name}" for name in names), "tl4>=0.95"]
    rows = {
        "random masking, confidence": ("random", "top1", strata),
        "PAPL α = 5, confidence": ("papl", "top1", strata),
        "PUMA, confidence": ("puma", "top1", strata),
        "random masking, propagation": ("random", "constraint_propagation", strata[1:]),
        "PUMA, propagation": ("puma", "constraint_propagation", strata[1:]),
        "PUMA, random order": ("puma", "random", strata),
    }
    expected = {
        label: [right(f"sudoku-{scheme}-quarter-s42", policy, stratum, "best_probe") for stratum in of]
        for label, (scheme, policy, of) in rows.items()
    }
    compare(REPRODUCTION, "| | natural | easy |", expected)


def test_the_tiny_model_of_sudoku() -> None:
    names = ("easy", "medium", "hard", "very_hard", "extreme", "top1pct")
    strata = ["natural", *(f"tier={name}" for name in names), "tl4>=0.95"]
    expected = {
        label: [right("sudoku-puma-tiny-quarter-s42", policy, stratum, "best_probe") for stratum in strata]
        for label, policy in (("confidence", "top1"), ("propagation", "constraint_propagation"))
    }
    compare(REPRODUCTION, "| tiny model |", expected)


def test_published_sudokus() -> None:
    """`natural` is all of the test file."""
    runs = {"random": "random", "papl": "papl-quarter", "puma": "puma"}

    def on_file(arm: str, policy: str, stratum: str) -> Accuracy:
        asked = policy, stratum, "best_probe", "published-test.npz"
        held = [of for of in RUNS[f"sudoku-{arm}-on-published-s42"].evaluations if isinstance(of, Accuracy) and of.data]
        [found] = [of for of in held if (of.policy, of.stratum, of.checkpoint, of.data and of.data.file) == asked]
        return found

    columns = list(product(runs, ("top1", "random", "constraint_propagation", "technique")))
    of_paper = table(REPRODUCTION, "| puzzles | random: confidence |")
    strata = {"all tiers": "natural", "hardest 1 %": "tier=top1pct", "TL4 ≥ 95 % (1,562)": "tl4>=0.95"}
    cells: dict[str, Figures] = {
        label: paired(
            [float(cell.split()[0]) for cell in of_paper[label.removesuffix(" (1,562)")]],
            [on_file(runs[scheme], policy, stratum).cell_accuracy or 0.0 for scheme, policy in columns],
        )
        for label, stratum in strata.items()
    }
    compare(REPRODUCTION, "| test file | random: confidence |", cells)
    tiers = [f"tier={name}" for name in ("easy", "medium", "hard", "very_hard", "extreme", "top1pct")]
    rows = {
        "random masking, a quarter, step 40,000": "random-quarter",
        "random masking, step 264,000": "random",
        "PAPL α = 5, a quarter, step 32,000": "papl-quarter",
        "PUMA, step 96,000": "puma",
    }
    whole = {
        label: [on_file(arm, "top1", stratum).exact_match for stratum in ("natural", *tiers)]
        for label, arm in rows.items()
    }
    compare(REPRODUCTION, "| whole puzzles, confidence | all |", whole)


def test_how_far_precisions_agree() -> None:
    """Of several comparisons of a model the last counts."""
    words = {
        "zoo:": "",
        "sudoku-random-s42": "Sudoku, random masking, step 64,000",
        "heldout=1,m=1-3": "1 to 3 solutions",
        ">=": " ≥ ",
        "depth=": "depth = ",
    }
    found: dict[str, dict[str, dict[str, int]]] = {}
    for line in (ROOT / "results" / "agreement.jsonl").read_text().splitlines():
        held = json.loads(line)
        label = f"{held['model']}: {held['stratum']}"
        for name, word in words.items():
            label = label.replace(name, word)
        found.setdefault(label.replace("0.95", ".95"), {})[held["policy"]] = held
    expected = {
        label: [str(next(iter(orders.values()))["n"])]
        + [", ".join(str(order[key]) for order in orders.values()) for key in ("different", "right_fp32", "right")]
        for label, orders in found.items()
    }
    rows = table("docs/performance.md", "| right in fp32 |")
    printed = {label: [re.sub("(?<=[0-9]),(?=[0-9])", "", cell) for cell in row[1:]] for label, row in rows.items()}
    assert printed == expected
