"""A diagnosis in five lines: what it says, for every task, and the split of ready commits behind it.

Shapes: N instances, A answer cells.
"""

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pytest

from hardtail.core.errors import HardtailError
from hardtail.core.records import as_json
from hardtail.core.registry import TASKS
from hardtail.core.seeds import Stream
from hardtail.core.tables import percent
from hardtail.core.types import Instances, Trace
from hardtail.measuring import explain
from hardtail.measuring.diagnosis import Diagnosis, diagnose, verdict
from hardtail.measuring.diagnosis.readiness import readiness
from hardtail.measuring.explain import affordable, explain_seconds
from hardtail.measuring.subject import load_subject
from hardtail.models.denoiser import Function
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.base import Part, Task
from hardtail.traces.states import standing, wrong_before
from tests.conftest import Command
from tests.diagnose_toys import SMALL, Event, gold_trace, remasked_trace, small, trace_of


def noisy(task: Task, instances: Instances, seed: int = 5) -> Trace:
    """A decode in random order in which every fifth token is the first answer token instead of the right one."""
    rng = np.random.default_rng(seed)
    events: list[list[Event]] = []
    for n in range(len(instances)):
        cells = rng.permutation(np.flatnonzero(instances.maskable_NA[n]))
        tokens = np.where(rng.random(cells.size) < 0.2, task.answer_tokens[0], instances.answer(n)[cells])
        events.append([(step, int(cell), int(tokens[step])) for step, cell in enumerate(cells)])
    return trace_of(task, instances, events, prob=0.9999)


def failing(trace: Trace) -> str:
    return percent(float((~trace.exact_N).mean()))


def test_wrong_tokens_are_seen_as_a_replay_sees_them() -> None:
    trace, _ = remasked_trace(SMALL, small(25), np.random.default_rng(7))
    wrong_NSA = wrong_before(trace)
    for n in range(len(trace)):
        shown: dict[int, int] = {}
        events = [t for t in range(trace.cell_NT.shape[1]) if trace.happened_NT[n, t]]
        for step in range(wrong_NSA.shape[1]):
            wrong = {cell for cell, token in shown.items() if token != trace.instances.answer(n)[cell]}
            assert set(np.flatnonzero(wrong_NSA[n, step])) == wrong
            for t in events:
                if trace.step_NT[n, t] == step:
                    cell, token = int(trace.cell_NT[n, t]), int(trace.token_NT[n, t])
                    shown.pop(cell, None)
                    shown |= {} if token == trace.mask_id else {cell: token}
    assert wrong_NSA.any()


@pytest.mark.parametrize("remasked", [False, True])
def test_ready_commits_are_split_by_what_they_were_based_on(remasked: bool) -> None:
    """Cell by cell, from the parents and the tokens that were shown."""
    sums = small(40)
    trace = remasked_trace(SMALL, sums, np.random.default_rng(8))[0] if remasked else noisy(SMALL, sums)
    found, held, wrong_NSA = readiness(SMALL, trace), standing(trace), wrong_before(trace)
    parents_NAE = trace.instances.parents_NAE
    assert parents_NAE is not None
    right: list[bool] = []
    wrong: list[bool] = []
    hidden = [np.flatnonzero(trace.instances.maskable_NA[n]) for n in range(len(trace))]
    for n, cell in zip(*np.nonzero(held.there_NA), strict=True):
        parent, step = int(parents_NAE[n, cell, 0]), int(held.step_NA[n, cell])
        seen = {int(trace.cell_NT[n, t]) for t in range(trace.cell_NT.shape[1]) if trace.step_NT[n, t] < step}
        if parent < 0 or parent not in hidden[n] or parent not in seen:
            continue
        last = [
            t for t in range(trace.cell_NT.shape[1]) if trace.cell_NT[n, t] == parent and trace.step_NT[n, t] < step
        ]
        if trace.token_NT[n, last[-1]] != trace.mask_id:
            (wrong if wrong_NSA[n, step, parent] else right).append(bool(held.right_NA[n, cell]))
    assert found.ready is not None
    for of, group in ((found.ready.prerequisites_right, right), (found.ready.prerequisite_wrong, wrong)):
        assert (of.commits, of.right) == (len(group), sum(group))
        assert of.commits > 0
    assert len(right) + len(wrong) == found.accuracy["ready"].commits


def test_a_sudoku_cell_is_not_ready_by_wrong_digits() -> None:
    """Without static parents: a cell that only wrong digits make ready is based on a wrong one."""
    task = TASKS.load("sudoku")()
    trace = noisy(task, task.sample(6, Stream("split")))
    found = readiness(task, trace)
    assert found.ready is not None
    parts = found.ready.prerequisites_right, found.ready.prerequisite_wrong
    assert sum(of.commits for of in parts) == found.accuracy["ready"].commits
    assert min(of.commits for of in parts) > 0
    gold = readiness(task, gold_trace(task, trace.instances, trace.instances.orders[task.order_names[0]]))
    assert gold.ready is not None
    assert gold.ready.prerequisite_wrong.commits == 0


def test_a_diagnosis_from_before_the_split_is_read_and_told_without_it() -> None:
    new = as_json(diagnose(SMALL, noisy(SMALL, small(20))))
    del new["readiness"]["ready"], new["profile"]
    old = msgspec.convert(new, Diagnosis)
    assert old.readiness.ready is None
    told = verdict([old], SMALL.words).lines
    assert len(told) == 3
    assert not any(line.startswith("Right: ") for line in told)


SAID = {
    "addition": "The earliest wrong digit is ",
    "maze": " of the failures only leave out cells of the path, ",
    "listops": " of the earliest wrong values were written before a value inside their brackets, ",
    "countdown": "Of the answers that are not gold, ",
    "sudoku": " of the earliest wrong cells need more than a single candidate, ",
}


@pytest.mark.parametrize("name", SAID)
def test_every_task_has_a_verdict_of_five_lines(name: str) -> None:
    task = TASKS.load(name)()
    instances = task.sample(8, Stream("verdict"))
    groups = {"natural": np.ones(8, dtype=np.bool_)}
    traces = {
        "top1": noisy(task, instances),
        task.order_names[0]: gold_trace(task, instances, instances.orders[task.order_names[0]]),
    }
    found = [
        diagnose(task, replace(trace, about={"policy": policy, "model": "mine"}), groups=groups)
        for policy, trace in traces.items()
    ]
    said = verdict(found, task.words)
    assert said.title == f"mine, {name}"
    first, wrong, early, split, other = said.lines
    fails = "misses the gold chain on" if name == "countdown" else "fails on"
    assert first == f"Surest cell first (top1) it {fails} {failing(traces['top1'])} of 8 {task.words.problems}."
    assert SAID[name] in wrong
    held = found[0].readiness
    assert early.startswith(f"{percent(held.premature / held.dependent)} of the {task.words.cell}s that wait for")
    assert held.ready is not None
    for of in (held.ready.prerequisites_right, held.ready.prerequisite_wrong, held.accuracy["unready"]):
        assert not of.commits or f"{of.right:,} of {of.commits:,} " in split
    assert other.endswith(f"({task.order_names[0]}) it makes no error on 8 {task.words.problems}.")
    assert max(map(len, said.text(80).splitlines())) <= 80
    assert "\n %" not in said.text(30)


@dataclass(frozen=True)
class Plain(Addition):
    """A task without words or a profile of its own, as a plug-in may be."""

    name = "plain"
    words = Task.words

    @classmethod
    def profile_type(cls) -> Any:
        return None


def test_a_task_without_words_has_a_verdict_too() -> None:
    task = Plain(digits=8)
    trace = noisy(task, task.sample(10, Stream("plain")))
    first, wrong, *_ = verdict([diagnose(task, replace(trace, about={"policy": "lsb"}))], task.words).lines
    assert first == f"With lsb it fails on {failing(trace)} of 10 instances."
    assert wrong.startswith("The first wrong cell comes at step ")


def test_a_decode_without_failures_says_so_in_few_lines() -> None:
    instances = small(10)
    trace = gold_trace(SMALL, instances, instances.orders["lsb"])
    strata = {f"chain>={least}": np.ones(10, dtype=np.bool_) for least in (1, 2, 3, 4)}
    found = diagnose(SMALL, replace(trace, about={"policy": "lsb"}), groups=strata)
    result, early, split = verdict([found], SMALL.words).lines
    assert result == "Lowest digit first (lsb) it makes no error on 10 sums."
    assert early == "No digit was written before the ones that it waits for."
    assert found.readiness.ready is not None
    commits = found.readiness.ready.prerequisites_right.commits
    assert split == f"Right: {commits} of {commits} after right digits."
    with pytest.raises(HardtailError, match="no diagnosis"):
        verdict([])


@pytest.mark.parametrize(
    ("strata", "which"),
    [
        (["natural"], ""),
        (["chain>=3"], " with chain>=3"),
        (["natural", "chain>=3"], ", natural or with chain>=3"),
        (["natural", "chain>=2", "chain>=3"], ", natural or with chain>=2 or chain>=3"),
    ],
)
def test_problems_of_several_strata_are_named_in_a_sentence(strata: list[str], which: str) -> None:
    instances = small(12)
    trace = gold_trace(SMALL, instances, instances.orders["lsb"])
    groups = {name: np.ones(12, dtype=np.bool_) for name in strata}
    first = verdict([diagnose(SMALL, trace, groups=groups)], SMALL.words).lines[0]
    assert first == f"Here it makes no error on 12 sums{which}."


def test_many_strata_are_summed_up_by_the_worst_and_of_equals_by_the_hardest() -> None:
    trace = noisy(SMALL, small(12))
    strata = {f"chain>={least}": np.arange(12) % 4 == least for least in range(4)}
    first = verdict([diagnose(SMALL, trace, groups=strata)], SMALL.words).lines[0]
    shares = [(~trace.exact_N[inside_N]).mean() for inside_N in strata.values()]
    assert shares[1] == shares[3] == max(shares)
    worst = "chain>=3"
    there = failing(trace.take(strata[worst]))
    assert first == f"Here it fails on {failing(trace)} of 12 sums, most of all on {there} of 3 with {worst}."


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0, "0 %"),
        (0.004, "under 1 %"),
        (0.425, "43 %"),
        (0.625, "63 %"),
        (0.996, "over 99 %"),
        (1.0, "100 %"),
        (None, "–"),
    ],
)
def test_a_percentage_is_0_or_100_only_if_it_is_exactly_that(share: float | None, said: str) -> None:
    assert percent(share) == said


def test_a_diagnosis_nobody_limited_takes_some_minutes_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch, hardtail_command: Command
) -> None:
    """It then explains the hardest stratum alone, on what fits, and says so first."""
    subject = load_subject("zoo:addition-puma")
    whole = explain_seconds(subject, (), (), None)
    assert whole is not None
    monkeypatch.setattr(explain, "PATIENCE", whole)
    assert affordable(subject, ()) is None
    monkeypatch.setattr(explain, "PATIENCE", whole / 9 / 5)  # of 9 strata with 300 each
    assert affordable(subject, ()) == Part("chain>=32", 60)
    assert affordable(subject, ("top1",)) == Part("chain>=32", 120)
    monkeypatch.setattr(explain, "PATIENCE", 0.0)
    assert affordable(subject, ()) == Part("chain>=32", explain.FEWEST)
    unknown = replace(subject, denoiser=Function(subject.denoiser.logits, subject.denoiser.mask_id))
    assert affordable(unknown, ()) is None
    monkeypatch.setattr(explain, "FEWEST", 2)
    code, out, err = hardtail_command("diagnose", "zoo:addition-puma")
    assert code == 0, err
    assert "addition-puma: only chain>=32; the whole diagnosis takes about" in err
    assert "2 sums with chain>=32" in out
