"""The front of the diagnosis: every task in one call, its tables, and what it refuses.

Shapes: N instances, A answer cells.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail.core.errors import HardtailError
from hardtail.core.records import Coverage, as_json, jsonable
from hardtail.core.registry import TASKS
from hardtail.core.seeds import Stream
from hardtail.core.tables import Table
from hardtail.decoding.loop import decode
from hardtail.measuring.diagnosis import diagnose, tables
from hardtail.measuring.diagnosis.by_stratum import by_stratum
from hardtail.measuring.diagnosis.cells import WorstCell, mostly_wrong
from hardtail.measuring.diagnosis.coverage import compare, visits
from hardtail.measuring.diagnosis.readiness import readiness
from hardtail.measuring.models import subject_of
from hardtail.policies.named import policy_named
from hardtail.tasks.addition.task import Addition
from hardtail.traces import states
from hardtail.traces.states import standing
from tests.diagnose_toys import SMALL, Event, gold_trace, lsb_trace, remasked_trace, small, trace_of


def even(cells: int, ranks: int = 2) -> Coverage:
    """A training that saw every state once."""
    rows = cells + 1
    return Coverage(by_count=(1,) * rows, by_count_and_rank=((1,) * ranks,) * rows)


@pytest.mark.parametrize("name", TASKS.names())
def test_every_task_is_diagnosed_and_its_orders_wait_for_prerequisites(name: str) -> None:
    task = TASKS.load(name)()
    instances = task.sample(6, Stream("front"))
    trained = even(task.answer_len)
    for order, rank_NA in instances.orders.items():
        trace = gold_trace(task, instances, rank_NA)
        found = diagnose(task, trace, trained, order)
        json.dumps(as_json(found), allow_nan=False)
        assert found.result.exact_match == 1.0
        assert found.readiness.agreement[order].gamma == 1.0
        if trace.instances.parents_NAE is not None and trace.instances.parents_NAE.shape[2]:
            assert found.readiness.premature == 0
    backwards = diagnose(task, gold_trace(task, instances, -instances.orders[task.order_names[0]])).readiness
    assert backwards.premature == backwards.accuracy["unready"].commits > 0
    assert backwards.agreement[task.order_names[0]].gamma == -1.0
    for table in tables(found):
        assert len({len(table.columns), *map(len, table.rows)}) == 1, table.title
        assert table.markdown().count("\n") == len(table.rows) + 4


def test_first_wrong_commits_by_stratum_are_those_of_a_replay() -> None:
    trace, states = remasked_trace(SMALL, small(40), np.random.default_rng(4))
    odd_N = np.arange(40) % 2 == 1
    found = by_stratum(SMALL, trace, {"even": ~odd_N, "odd": odd_N, "none": np.zeros(40, dtype=np.bool_)})
    parents_NAE, held = trace.instances.parents_NAE, standing(trace)
    assert parents_NAE is not None
    for name, rows in {"all": range(40), "even": range(0, 40, 2), "odd": range(1, 40, 2)}.items():
        unready, steps = [], []
        for n in rows:
            wrong = np.flatnonzero(held.there_NA[n] & ~held.right_NA[n])
            if wrong.size:
                first = min(wrong, key=lambda cell: held.event_NA[n, cell])
                step = int(held.step_NA[n, first])
                steps.append(step)
                unready.append(int(parents_NAE[n, first, 0]) in states[n][step])
        line = found[name]
        assert (line.n, line.failures) == (len(rows), int((~trace.exact_N[list(rows)]).sum()))
        assert line.exact_match == line.valid == 1 - line.failures / line.n
        assert line.unready == pytest.approx(np.mean(unready))
        assert line.step == np.median(steps)
        assert 0 < np.mean(unready) < 1
    assert (found["none"].n, found["none"].exact_match, found["none"].unready) == (0, None, None)


@pytest.mark.parametrize("name", TASKS.names())
def test_no_table_of_a_diagnosis_is_cut_off(name: str) -> None:
    """On a screen of 80 columns: no line is too long, and no heading or number is cut or broken."""
    task, rng = TASKS.load(name)(), np.random.default_rng(5)
    instances = task.sample(60, Stream("tables"))
    events: list[list[Event]] = []
    for n in range(len(instances)):
        cells = rng.permutation(np.flatnonzero(instances.maskable_NA[n]))
        tokens = np.where(rng.random(cells.size) < 0.2, task.answer_tokens[0], instances.answer(n)[cells])
        events.append([(step, int(cell), int(tokens[step])) for step, cell in enumerate(cells)])
    trace = trace_of(task, instances, events, prob=0.09936)
    trained = even(task.answer_len)
    strata = ("natural", "heldout=1,m=4-10")
    groups = {stratum: np.arange(60) % 2 == place for place, stratum in enumerate(strata)}
    shown = tables(diagnose(task, trace, trained, groups=groups))
    assert [table.columns[0] for table in shown if table.title == "first wrong commits: by stratum"] == [""]
    for table in shown:
        text = table.plain(80)
        assert max(map(len, text.splitlines())) <= 80, text
        printed = set(text.split())
        for cell in (*table.columns, *(cell for row in table.texts() for cell in row)):
            assert set(cell.split()) <= printed, (cell, text)


def test_a_table_prints_names_as_they_are() -> None:
    printed = Table("of run[a]", ("my[b]", "n[/c]"), (("[d]", 1),)).plain()
    assert all(name in printed for name in ("run[a]", "my[b]", "n[/c]", "[d]"))


def test_what_cannot_be_diagnosed_is_refused_in_a_sentence() -> None:
    trace = lsb_trace()
    with pytest.raises(HardtailError, match=r"`about` is not what .*seed"):
        diagnose(SMALL, replace(trace, about={"seed": "many"}))
    odd = diagnose(SMALL, replace(trace, about={"temperature": float("nan"), "mine": object()}))
    assert not {"temperature", "mine"} & as_json(odd).keys()
    with pytest.raises(HardtailError, match="no instance"):
        diagnose(SMALL, trace.take(slice(0, 0)))
    with pytest.raises(HardtailError, match="9 answer cells"):
        diagnose(Addition(), trace)
    with pytest.raises(HardtailError, match="no order 'msb'"):
        diagnose(SMALL, trace, even(9), "msb")
    with pytest.raises(HardtailError, match="parents"):
        readiness(SMALL, replace(trace, instances=trace.instances.bare()))


def test_a_decode_with_nothing_to_do_has_counts_of_zero_and_no_means() -> None:
    instances = replace(small(3), maskable_NA=np.zeros((3, 9), dtype=np.bool_))
    found = diagnose(SMALL, trace_of(SMALL, instances, [[], [], []]), even(9, ranks=1))
    json.dumps(as_json(found), allow_nan=False)
    assert found.coverage is not None
    assert found.readiness.commits == found.coverage.states == 0
    assert found.readiness.premature_share is None


def test_what_was_shown_from_the_start_counts_for_no_cell_accuracy() -> None:
    """As in an evaluation: of a half-revealed answer only the cells that were to be found."""
    instances = replace(small(1), maskable_NA=np.arange(9)[None] >= 5)
    gold_A = instances.answer(0)
    tokens = [*gold_A[5:8], (gold_A[8] + 1) % 10]
    trace = trace_of(SMALL, instances, [[(step, 5 + step, int(token)) for step, token in enumerate(tokens)]])
    assert diagnose(SMALL, trace).result.cell_accuracy == 0.75


def test_cells_that_are_mostly_wrong_are_named() -> None:
    """Worst first; not one that is right in half of the instances, nor one that is hidden in few of them."""
    instances = small(40)
    hidden_NA = np.ones((40, 9), dtype=np.bool_)
    hidden_NA[19:, 0] = False
    instances = replace(instances, maskable_NA=hidden_NA)
    trace = gold_trace(SMALL, instances, np.zeros((40, 9)))
    answer_NA = trace.answer_NA.copy()
    for cell, wrong in {0: 19, 2: 40, 5: 20, 7: 21}.items():
        answer_NA[:wrong, cell] = (answer_NA[:wrong, cell] + 1) % 10
    found = diagnose(SMALL, replace(trace, answer_NA=answer_NA)).result
    assert found.cells_mostly_wrong == 2
    assert found.worst_cells == (WorstCell(SMALL.cell_name(2), 40, 0.0), WorstCell(SMALL.cell_name(7), 40, 19 / 40))


def test_a_table_for_documents() -> None:
    table = Table("Two | three", ("what", "how many", "share"), (("a|b", 12_345, 0.123456), ("c", None, 1.0)))
    assert table.markdown().splitlines() == [
        "**Two | three**",
        "",
        "| what | how many | share |",
        "| :-- | --: | --: |",
        "| a\\|b | 12,345 | 0.1235 |",
        "| c | – | 1 |",
    ]


def test_the_worst_dozen_cells_are_listed_of_those_that_were_judged_often() -> None:
    """Half right is not mostly wrong; neither is a cell that was judged in 19 instances listed."""
    judged_NA, right_NA = np.ones((20, 33), dtype=np.bool_), np.zeros((20, 33), dtype=np.bool_)
    right_NA[:10, :9], judged_NA[0, 9] = True, False
    total, listed = mostly_wrong(Addition(digits=32), right_NA, judged_NA)
    assert (total, len(listed), {cell.n for cell in listed}) == (23, 12, {20})


@pytest.mark.parametrize("name", ["addition", "maze", "listops"])
@pytest.mark.parametrize("policy", ["top1", "remdm,eta=0.5"])
def test_a_diagnosis_in_parts_is_that_of_the_whole(name: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large trace is read in parts that fit in memory."""
    small: dict[str, dict[str, Any]] = {"addition": {"digits": 5}, "maze": {"size": 3}}
    task = hardtail.task(name, **small.get(name, {}))
    instances = task.sample(11, "natural", seed=3)
    rng = np.random.default_rng(0)
    table = torch.from_numpy(rng.normal(size=(64, task.vocabulary.size))).float()

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return 3 * table[(tokens_BL.sum(dim=1, keepdim=True) + 7 * at_BA) % 64]

    trace = decode(subject_of(logits, task).denoiser, instances, policy_named(policy))
    order = task.order_names[0]
    trained = visits(
        decode(subject_of(logits, task).denoiser, instances.take(slice(0, 4)), policy_named("random")), order
    )
    whole, gap = jsonable(diagnose(task, trace)), compare(trace, trained, order)
    monkeypatch.setattr(
        states, "_BLOCK", 3 * (instances.answer_len + 1) * max(instances.answer_len + 1, states.steps_of(trace))
    )
    assert [len(part) for part in states.blocks(trace)] == [3, 3, 3, 2]
    assert jsonable(diagnose(task, trace)) == whole
    assert compare(trace, trained, order) == gap
