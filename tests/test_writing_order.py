"""AR-ness and parallelism against definitions that are written out commit by commit."""

from dataclasses import replace

import numpy as np
import pytest

import hardtail
from hardtail import Streams
from hardtail.core.types import Instances, Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.diagnosis import diagnose, tables
from hardtail.measuring.diagnosis.order import SPANS, writing_order
from hardtail.models.denoiser import Function
from hardtail.policies.base import Commit
from hardtail.policies.named import policy_named
from hardtail.traces.canvases import trace_of_canvases
from hardtail.traces.states import standing
from tests.test_wide_tokens import scattered

TASK = hardtail.task("addition", digits=8)
DENOISER = Function(lambda tokens_BL, at_BA: scattered(tokens_BL, at_BA, 14), TASK.vocabulary.mask_id)
SUMS = TASK.sample(5, Streams(0).named("order"))


def decoded(policy: str, each: int = 1, instances: Instances = SUMS) -> Trace:
    return decode(DENOISER, instances, policy_named(policy), Decoding(Commit(each)))


def written(trace: Trace, row: int) -> list[tuple[int, int]]:
    """Step and cell of the commits that stand, in the order of writing."""
    held = standing(trace)
    cells = np.flatnonzero(held.there_NA[row] & trace.instances.scored_NA[row])
    return sorted((int(held.step_NA[row, cell]), int(cell)) for cell in cells)


def obvious_local(trace: Trace, k: int) -> float:
    counted = []
    for row in range(len(trace)):
        cells = [cell for _, cell in written(trace, row)]
        numbers = [sorted(cells).index(cell) for cell in cells]
        for j in range(k, len(numbers)):
            counted.append(numbers[j - k : j + 1] == list(range(numbers[j] - k, numbers[j] + 1)))
    return float(np.mean(counted))


def obvious_global(trace: Trace, k: int) -> float:
    counted = []
    for row in range(len(trace)):
        cells = [cell for _, cell in written(trace, row)]
        for j, cell in enumerate(cells):
            counted.append(cell in sorted(cells[j:])[:k])
    return float(np.mean(counted))


@pytest.mark.parametrize(
    ("policy", "each"), [("top1", 1), ("top1", 3), ("random", 2), ("remdm", 1), ("block,size=4", 1)]
)
def test_figures_are_those_of_the_definitions(policy: str, each: int) -> None:
    trace = decoded(policy, each)
    found = writing_order(trace)
    for k in SPANS:
        assert found.ar_ness[str(k)]["local"] == pytest.approx(obvious_local(trace, k))
        assert found.ar_ness[str(k)]["global"] == pytest.approx(obvious_global(trace, k))
    rows = [written(trace, row) for row in range(len(trace))]
    assert found.parallelism == pytest.approx(np.mean([len(row) / len({step for step, _ in row}) for row in rows]))


def test_reading_and_reading_backwards_are_the_extremes() -> None:
    along, against = (writing_order(decoded(policy)) for policy in ("l2r", "r2l"))
    assert {value for held in along.ar_ness.values() for value in held.values()} == {1.0}
    assert (along.parallelism, along.left_to_right.tau_b, against.left_to_right.tau_b) == (1.0, 1.0, -1.0)
    assert against.ar_ness["1"]["local"] == 0
    assert against.ar_ness["1"]["global"] == pytest.approx(1 / 9), "only the last cell is the first one left"
    assert writing_order(decoded("l2r", each=3)).parallelism == 3.0


def test_the_example_of_the_paper() -> None:
    """Figure 3 of DiffuCoder: behind "love dogs and" the next token is local, the first one of the sentence global."""

    def figures(*cells: int) -> dict[str, dict[str, float | None]]:
        """Of five cells that are written in this order; the other answer cells are given."""
        gold_NA, rank_A = SUMS.answer_NA[:1], np.full(9, -1)
        rank_A[list(cells)] = range(5)
        instances = replace(SUMS.take(slice(0, 1)), maskable_NA=(rank_A >= 0)[None], scored_NA=(rank_A >= 0)[None])
        canvases = [np.where(rank_A <= last, gold_NA, TASK.vocabulary.mask_id) for last in range(5)]
        found = writing_order(trace_of_canvases(instances, canvases, TASK.vocabulary.mask_id)).ar_ness
        return {k: dict(held) for k, held in found.items()}

    assert figures(1, 2, 3, 4, 0)["1"] == {"local": 3 / 4, "global": 1 / 5}, "love dogs and cats, then I"
    assert figures(1, 2, 3, 0, 4)["1"] == {"local": 2 / 4, "global": 2 / 5}, "love dogs and, then I, then cats"
    assert figures(1, 2, 3, 4, 0)["2"] == {"local": 2 / 3, "global": 1.0}
    swapped = figures(1, 0, 2, 3, 4)
    assert swapped["2"]["local"] == 1 / 3, "two neighbours in the wrong order are no sequence"
    assert swapped["1"]["local"] == 2 / 4, "it does not grow with k"


def test_cells_that_are_never_hidden_are_not_between_two_others() -> None:
    instances = Instances(
        SUMS.tokens_NL, SUMS.prompt_len_N, np.arange(9) % 2 * np.ones((5, 1)) > 0, SUMS.scored_NA, SUMS.orders
    )
    found = writing_order(decoded("l2r", instances=instances))
    assert found.ar_ness["2"]["local"] == 1.0
    assert found.ar_ness["4"]["local"] is None, "only four cells are written"


def test_a_diagnosis_of_canvases_has_them_too() -> None:
    gold_NA = SUMS.answer_NA
    canvases = [np.where(np.arange(9) <= last, gold_NA, TASK.vocabulary.mask_id) for last in range(9)]
    diagnosis = diagnose(TASK, trace_of_canvases(SUMS, canvases, TASK.vocabulary.mask_id))
    assert diagnosis.order is not None
    assert diagnosis.order.ar_ness["1"]["global"] == 1.0
    assert any("order of writing" in table.title for table in tables(diagnosis))
