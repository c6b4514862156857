"""Arrays of files: which there must be, of which types and sizes, and the first and last value that each may have."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hardtail import HardtailError, Instances, Trace
from hardtail.core.archives import Header
from hardtail.core.schema import LONGEST, check_instance_headers, check_instances, check_trace
from hardtail.core.types import MOST_STEPS, MOST_TOKENS
from hardtail.decoding.loop import decode
from hardtail.policies.confidence import Top1
from tests.decoding_toys import CELLS, TOY, problems

OUTSIDE, NEVER = "it has events outside the answer", "it has steps or ranks that a decode cannot have"
MAYBE = "values that are not probabilities"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return decode(TOY, problems(6), Top1())


def with_field(trace: Trace, name: str, array: Any) -> Trace:
    changed: dict[str, Any] = {name: array}
    return replace(trace, **changed)


@pytest.mark.parametrize(
    ("name", "low", "high", "kind", "reason"),
    [
        ("cell_NT", -1, CELLS - 1, np.int16, OUTSIDE),
        ("runner_up_NT", -1, CELLS - 1, np.int16, OUTSIDE),
        ("step_NT", 0, MOST_STEPS - 1, np.int32, NEVER),
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
        held = with_field(trace, name, array)
        if fits:
            check_trace(held)
        else:
            with pytest.raises(HardtailError, match=reason):
                check_trace(held)


@pytest.mark.parametrize("name", ["prob_NT", "gold_prob_NT"])
def test_a_probability_may_be_unknown_but_not_infinite(name: str, trace: Trace) -> None:
    array_NT = getattr(trace, name).copy()
    array_NT[0, 0] = np.nan
    check_trace(with_field(trace, name, array_NT))
    array_NT[0, 0] = np.inf
    with pytest.raises(HardtailError, match=MAYBE):
        check_trace(with_field(trace, name, array_NT))


def test_the_instances_of_a_trace_are_checked_too(trace: Trace) -> None:
    beyond = replace(trace.instances, prompt_len_N=np.full(len(trace), 99))
    with pytest.raises(HardtailError, match="room"):
        check_trace(replace(trace, instances=beyond))


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


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_arrays_of_the_right_shape_and_another_type_are_refused(dtype: str) -> None:
    arrays = problems(4).arrays()
    headers = {name: Header(array.dtype, array.shape) for name, array in arrays.items()}
    assert check_instance_headers(headers) == 4
    strange = headers | {"tokens_NL": Header(np.dtype(dtype), arrays["tokens_NL"].shape)}
    with pytest.raises(HardtailError, match=r"tokens_NL.*does not fit"):
        check_instance_headers(strange)


@pytest.mark.parametrize("cells", [LONGEST, LONGEST + 1])
def test_an_answer_has_a_length_that_it_can_have(cells: int) -> None:
    headers = {name: Header(array.dtype, array.shape) for name, array in problems(4).bare().arrays().items()}
    for name in ("maskable_NA", "scored_NA"):
        headers[name] = Header(np.dtype(np.bool_), (4, cells))
    headers["tokens_NL"] = Header(np.dtype(np.uint8), (4, LONGEST))
    if cells == LONGEST:
        assert check_instance_headers(headers) == 4
    else:
        with pytest.raises(HardtailError, match="must have two dimensions"):
            check_instance_headers(headers)


@pytest.mark.parametrize("name", ["tokens_NL", "prompt_len_N", "maskable_NA", "scored_NA"])
def test_instances_without_one_of_their_arrays(name: str) -> None:
    arrays = problems(3).arrays()
    del arrays[name]
    with pytest.raises(HardtailError, match=f"not a set of instances: the array '{name}' is missing"):
        Instances.from_arrays(arrays)
    headers = {name: Header(array.dtype, array.shape) for name, array in arrays.items()}
    with pytest.raises(HardtailError, match=f"not a set of instances: the array '{name}' is missing"):
        check_instance_headers(headers)


def test_a_trace_without_one_of_its_arrays() -> None:
    trace = decode(TOY, problems(3), Top1())
    arrays = trace.arrays()
    del arrays["prob_NT"]
    with pytest.raises(HardtailError, match="not a trace: the array 'prob_NT' is missing"):
        Trace.from_arrays(arrays, trace.mask_id, {})


@pytest.mark.parametrize(("token", "fits"), [(0, True), (MOST_TOKENS - 1, True), (MOST_TOKENS, False), (-1, False)])
def test_tokens_of_a_file_are_tokens(token: int, fits: bool) -> None:
    instances = problems(3)
    wide_NL = instances.tokens_NL.astype(np.int32)
    wide_NL[1, 0] = token
    held = replace(instances, tokens_NL=wide_NL)
    if fits:
        check_instances(held)
    else:
        with pytest.raises(HardtailError, match="it has tokens outside 0 to 1,048,575"):
            check_instances(held)
