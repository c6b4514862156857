"""The first and the last value that an array of a file may have, and the ones beyond."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hardtail import HardtailError, Trace
from hardtail.core.cores import usable_cores
from hardtail.core.schema import LAST_STEP, LONGEST, check_instances, check_trace
from hardtail.decoding.loop import decode
from hardtail.policies.confidence import Top1
from tests.decoding_toys import CELLS, TOY, problems

OUTSIDE, NEVER = "it has events outside the answer", "it has steps or ranks that a decode cannot have"
MAYBE = "values that are not probabilities"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return decode(TOY, problems(6), Top1())


@pytest.mark.parametrize(
    ("name", "low", "high", "kind", "reason"),
    [
        ("cell_NT", -1, CELLS - 1, np.int16, OUTSIDE),
        ("runner_up_NT", -1, CELLS - 1, np.int16, OUTSIDE),
        ("step_NT", 0, LAST_STEP, np.int32, NEVER),
        ("gold_rank_NT", -1, LONGEST, np.int32, NEVER),
        ("passes_N", 0, (1 << 31) - 1, np.int64, "numbers of passes that a decode cannot have"),
        ("prob_NT", 0.0, 1.001, np.float64, MAYBE),
        ("gold_prob_NT", 0.0, 1.001, np.float64, MAYBE),
    ],
)
def test_the_ends_of_what_a_trace_may_hold(
    name: str, low: float, high: float, kind: Any, reason: str, trace: Trace
) -> None:
    beyond = 1e-3 if kind is np.float64 else 1
    for value, fits in ((low, True), (high, True), (low - beyond, False), (high + beyond, False)):
        array = getattr(trace, name).astype(kind)
        array.flat[0] = value
        held = replace(trace, **{name: array})
        if fits:
            check_trace(held)
        else:
            with pytest.raises(HardtailError, match=reason):
                check_trace(held)


@pytest.mark.parametrize(
    ("name", "low", "high", "reason"),
    [
        ("prompt_len_N", 0, 8, "its sequences have no room for 9 answer cells"),
        ("parents_NAE", -1, CELLS - 1, "its cells wait for cells outside the answer"),
        ("orders", -1, CELLS, "its order 'zigzag' has ranks that 9 cells cannot have"),
    ],
)
def test_the_ends_of_what_instances_may_hold(name: str, low: int, high: int, reason: str) -> None:
    instances = problems(6)
    instances = replace(instances, parents_NAE=np.zeros((6, CELLS, 2), dtype=np.int16))
    for value, fits in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
        array = (instances.orders["zigzag"] if name == "orders" else getattr(instances, name)).copy()
        array.flat[-1] = value
        changed: dict[str, Any] = {name: {"zigzag": array} if name == "orders" else array}
        held = replace(instances, **changed)
        if fits:
            check_instances(held)
        else:
            with pytest.raises(HardtailError, match=reason):
                check_instances(held)


@pytest.mark.parametrize(("value", "fits"), [(1.5, True), (np.inf, False), (np.nan, False)])
def test_strata_are_finite(value: float, fits: bool) -> None:
    held = replace(problems(2), strata={"share": np.array([0.5, value]), "kind": np.array(["a", "b"])})
    if fits:
        check_instances(held)
    else:
        with pytest.raises(HardtailError, match="its stratum 'share' has values that are not finite"):
            check_instances(held)


def test_a_control_group_may_have_a_colon_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "groups" / "a:b").mkdir(parents=True)
    (tmp_path / "groups" / "a:b" / "cpu.max").write_text("100000 100000\n")
    (tmp_path / "own").write_text("0::/a:b\n")
    assert usable_cores(tmp_path / "groups", tmp_path / "own") == 1
