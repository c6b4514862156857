"""Formulas are tested where they are; here, that their results reach records, logs and pages unmixed.

Tasks with cells that are never hidden or never scored come first: on addition every cell is both.

Shapes: N instances, A answer cells.
"""

import itertools
import json
import re
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import hardtail
from hardtail import Instances, Streams
from hardtail.core.types import Array
from hardtail.decoding.options import Decoding
from hardtail.measuring.evaluate import Outcome, compare, evaluate
from hardtail.measuring.subject import Subject
from hardtail.policies.confidence import Top1
from hardtail.policies.named import policy_named
from hardtail.show.page.page import page_of
from hardtail.show.table_files import escaped
from hardtail.study.claims import Results, Verdict, claim_named
from hardtail.study.claims.base import Cell
from hardtail.study.claims.figures import ShareRight
from hardtail.study.claims.rules import Level, near_rate
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.base import Task
from hardtail.training.run import train
from tests.planted import adder
from tests.planted_other import reciting
from tests.planted_results import Planted, as_printed, together
from tests.test_train import small

# -- records ------------------------------------------------------------------------------------------------------


def recited(task: Task, instances: Instances, answer_NA: Array) -> Outcome:
    """The evaluation of a denoiser that gives these answers."""
    sure_NA = np.full(answer_NA.shape, 0.9)
    subject = Subject(task, reciting(task, instances, answer_NA, sure_NA), "reciting")
    return evaluate(subject, "top1", Top1(), instances, "natural", Decoding())


def with_wrong(task: Task, instances: Instances, wrong_NA: Array) -> Array:
    """The gold answers with another token of the answers in some cells."""
    first, second, *_ = task.answer_tokens
    answer_NA = instances.answer_NA.copy()
    answer_NA[wrong_NA] = np.where(answer_NA[wrong_NA] == first, second, first)
    return answer_NA


@pytest.mark.parametrize("name", ["maze", "listops", "countdown", "sudoku"])
def test_only_hidden_and_scored_cells_count(name: str) -> None:
    """Wrong in every hidden cell that is not scored and, in some instances, in one that is."""
    task = hardtail.task("maze", size=3) if name == "maze" else hardtail.task(name)
    instances = task.sample(6, Streams(0).named("wiring"), task.strata()[0])
    if name == "countdown":  # the study scores every cell; a task that leaves some out is measured the same way
        instances = replace(instances, scored_NA=instances.scored_NA & task.meaningful(instances))
    hidden_NA, scored_NA = instances.maskable_NA, instances.scored_NA
    assert not (hidden_NA & scored_NA).all(), "the sample shows nothing"
    wrong_NA = hidden_NA & ~scored_NA
    for i in (1, 4):
        wrong_NA[i, np.flatnonzero(hidden_NA[i] & scored_NA[i])[-1]] = True
    outcome = recited(task, instances, with_wrong(task, instances, wrong_NA))
    cells = sum(bool(hidden_NA[i, a] and scored_NA[i, a]) for i in range(6) for a in range(task.answer_len))
    assert outcome.record.cell_accuracy == (cells - 2) / cells
    assert outcome.exact_N.tolist() == [True, False, True, True, False, True]
    assert outcome.record.exact_match == 4 / 6


def test_a_paired_record_names_the_order_that_was_right() -> None:
    task = hardtail.task("addition", digits=4)
    instances = task.sample(20, Streams(0).named("paired"))
    outcomes = []
    for failed in ([3], [3, 5, 7, 11, 13, 17]):
        wrong_NA = np.zeros(instances.maskable_NA.shape, dtype=np.bool_)
        wrong_NA[failed, -1] = True
        outcomes.append(recited(task, instances, with_wrong(task, instances, wrong_NA)))
    subject = Subject(task, reciting(task, instances, instances.answer_NA, np.ones((20, 5))), "either")
    record = compare(subject, ("good", outcomes[0]), ("bad", outcomes[1]), Decoding())
    assert (record.policy, record.against, record.n) == ("good", "bad", 20)
    assert (record.only_first, record.only_second) == (5, 0)
    record = compare(subject, ("bad", outcomes[1]), ("good", outcomes[0]), Decoding())
    assert (record.policy, record.only_first, record.only_second) == ("bad", 0, 5)


# -- claims -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("natural", "counts"), [(0.5, True), (0.499, False)])
def test_half_of_the_natural_instances_right_is_learned(natural: float, counts: bool, tmp_path: Path) -> None:
    claim = claim_named("addition.puma.lower")
    made = Planted(tmp_path)
    for figure, value in together(claim, as_printed).items():
        made.plant(figure, value)
    made.plant(ShareRight("addition", "puma", "top1", "natural"), natural)
    assert (claim.judge(Results(made.written())).verdict is not Verdict.UNMEASURED) == counts


def test_a_failure_rate_is_near_within_half_of_it(tmp_path: Path) -> None:
    assert [near_rate(rate) for rate in (0.0, 0.01, 0.04, 0.1, 0.9)] == [0.01, 0.01, 0.02, 0.05, 0.05]
    figure = ShareRight("addition", "puma", "top1", "chain>=28")
    level = Level(Cell(figure, paper=0.06), near_rate(0.06))
    for ours, near in ((0.035, True), (0.025, False), (0.085, True), (0.095, False)):
        made = Planted(tmp_path / str(ours))
        made.plant(figure, ours)
        assert (level.judge(Results(made.written())).verdict is not Verdict.NOT) == near, ours


def test_the_time_of_a_measurement_is_the_time_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([100.0, 107.25])
    monkeypatch.setattr("hardtail.measuring.evaluate.monotonic", lambda: next(readings))
    task = Addition(digits=4)
    instances = task.sample(2, "natural", seed=0)
    assert recited(task, instances, instances.answer_NA).record.wall == 7.25


def test_a_decode_in_one_step_is_recorded_as_one() -> None:
    task = Addition(digits=4)
    subject, policy = Subject(task, adder(task), "adder"), policy_named("threshold,p=0.01")
    record = evaluate(subject, "threshold", policy, task.sample(4, "natural", seed=0), "natural", Decoding()).record
    assert (record.steps, record.passes) == (1, 1.0)


# -- training -----------------------------------------------------------------------------------------------------


def test_the_wall_time_of_a_resumed_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that only moves when it is read, and starts anew in the second session, as a rebooted machine's."""
    recipe = small("addition-random")
    walls = []
    for stop_at, start in ((25, 1000), (recipe.steps, 0)):
        clock, asked = itertools.count(start), iter([False] * stop_at + [True])
        monkeypatch.setattr("hardtail.training.run.time", SimpleNamespace(monotonic=partial(next, clock)))
        train(recipe, tmp_path, should_stop=partial(next, asked))
        log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        walls = [line["wall"] for line in log]
        if start:
            before = len(walls)
    assert walls == sorted(walls)
    assert walls[0] == 0
    assert 0 < walls[before - 1] < walls[before] < walls[-1] < 200  # readings of the clock, not its time of day
    assert json.loads((tmp_path / "finished.json").read_bytes())["wall"] == walls[-1]


# -- the page and the tables --------------------------------------------------------------------------------------


def test_every_verdict_has_its_own_colour() -> None:
    """From the verdict's name to its class, the class's variable and the colours of both themes."""
    web = files("hardtail.show.page").joinpath("web")
    script, style, theme = (web.joinpath(name).read_text() for name in ("ledger.js", "study.css", "theme.css"))
    kinds = dict(re.findall(r'^  "?([a-z ]+)"?: \["(\w+)", ".", "[a-z ]+"\],$', script, re.MULTILINE))
    assert list(kinds) == [verdict.value for verdict in Verdict]
    grounds = dict(re.findall(r"^\.agreement\.(\w+) \{\n  background: var\((--\w+)\);", style, re.MULTILINE))
    assert set(grounds) == set(kinds.values())
    colours = dict(re.findall(r"^  (--\w+): light-dark\((.*)\);$", theme, re.MULTILINE))
    hues = {verdict: [_hue(colour) for colour in colours[grounds[kind]].split(", ")] for verdict, kind in kinds.items()}
    assert [len(set(of)) for of in zip(*hues.values(), strict=True)] == [4, 4]
    for light_or_dark in range(2):  # blue agrees, yellow is near, orange differs
        agrees, near, differs = (hues[name][light_or_dark] for name in ("holds", "holds weaker", "does not hold"))
        assert 180 < agrees < 240
        assert 40 < near < 60
        assert 10 < differs < 35


def _hue(colour: str) -> int:
    import colorsys

    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return round(360 * colorsys.rgb_to_hls(red, green, blue)[0])


def test_text_that_looks_escaped_is_escaped_again() -> None:
    """A name may hold `&lt;` itself: an ampersand is escaped once, and before what brings others."""
    page = page_of({"title": "a < b &lt; c & d"}, "")
    assert "<title>a &lt; b &amp;lt; c &amp; d</title>" in page
    assert escaped(r"\& & {") == r"\textbackslash{}\& \& \{"
