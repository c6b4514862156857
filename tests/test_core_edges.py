"""Limits and checks of `core`, each from both sides: what is accepted, and the next thing that is not."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from msgspec import structs

from hardtail import HardtailError, Streams
from hardtail.core import archives
from hardtail.core.archives import open_archive
from hardtail.core.parsing import DEEPEST, decoded, decoded_with_infinity
from hardtail.core.records import Accuracy, Coverage, DataFile, LogLine, RunEntry, as_json, names_a_folder, parse
from hardtail.core.schema import check_instances, check_trace
from hardtail.core.types import Array, Instances, Trace
from hardtail.core.vocabulary import Vocabulary
from hardtail.decoding.loop import decode
from hardtail.policies.named import policy_named
from hardtail.tasks.addition.task import Addition
from tests.planted import adder

T = TypeVar("T")

# -- arrays in files ----------------------------------------------------------------------------------------------


def archived(path: Path, entries: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as held:
        for name, content in entries:
            held.writestr(name, content)
    return path


def npy(array: Array, version: tuple[int, int] = (1, 0)) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=version, allow_pickle=False)
    return buffer.getvalue()


def headers_of(path: Path) -> dict[str, tuple[int, ...]]:
    with path.open("rb") as file, open_archive(file, "bad: {}") as held:
        return {name: header.shape for name, header in held.headers.items()}


def test_an_archive_of_plain_arrays_is_read(tmp_path: Path) -> None:
    kinds = ["b1", "i1", "i8", "u1", "f4", "f8", f"U{archives.LONGEST_LABEL}"]
    path = archived(tmp_path / "a.npz", [(f"{kind}.npy", npy(np.zeros((2, 3), kind))) for kind in kinds])
    assert headers_of(path) == dict.fromkeys(kinds, (2, 3))
    with path.open("rb") as file, open_archive(file, "{}") as held:
        assert held.array("i8").dtype == np.int64


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([("a", npy(np.zeros(2)))], "'a' is not an array"),
        ([("a.npy", npy(np.zeros(2))), ("a.npy", npy(np.zeros(2)))], "is in it twice"),
        ([("a.npy", npy(np.zeros(2), (2, 0)))], "has a format that hardtail does not write"),
        ([("a.npy", npy(np.zeros(2, ">f8")))], "is not plain numbers"),
        ([("a.npy", npy(np.zeros(2, "c8")))], "is not plain numbers"),
        ([("a.npy", npy(np.zeros(2, f"U{archives.LONGEST_LABEL + 1}")))], "is not plain numbers"),
        ([("a.npy", npy(np.zeros(2)) + b"x")], "does not have the size of its entry"),
        ([("a.npy", npy(np.zeros(2))[:-1])], "does not have the size of its entry"),
        ([("a.npy", b"\x93NUMPY\x01\x00\x10\x27" + b" " * 10_000)], "bad: "),
    ],
)
def test_any_other_archive_is_refused(entries: list[tuple[str, bytes]], fault: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate") if "twice" in fault else open(os.devnull):  # noqa: PTH123
        path = archived(tmp_path / "a.npz", entries)
    with pytest.raises(HardtailError, match=fault):
        headers_of(path)


def test_only_two_ways_of_packing_are_known(tmp_path: Path) -> None:
    held = [("a.npy", npy(np.zeros(1000)))]
    assert headers_of(archived(tmp_path / "a.npz", held, zipfile.ZIP_DEFLATED))
    with pytest.raises(HardtailError, match="compressed in a way"):
        headers_of(archived(tmp_path / "b.npz", held, zipfile.ZIP_BZIP2))


def test_what_unpacks_to_too_much_is_refused_unless_it_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = npy(np.zeros(100_000, "u1"))
    path = archived(tmp_path / "a.npz", [("a.npy", array), ("b.npy", array)], zipfile.ZIP_DEFLATED)
    assert (archives.ALWAYS_UNPACKED, archives.LARGEST_RATIO) == (256 << 20, 200)
    whole, packed = 2 * len(array), path.stat().st_size
    assert whole > archives.LARGEST_RATIO * packed
    for most, ratio, accepted in (
        (whole, 1, True),
        (whole - 1, 1, False),
        (0, whole / packed, True),
        (0, whole / packed - 0.01, False),
    ):
        monkeypatch.setattr(archives, "ALWAYS_UNPACKED", most)
        monkeypatch.setattr(archives, "LARGEST_RATIO", ratio)
        if accepted:
            headers_of(path)
        else:
            with pytest.raises(HardtailError, match=f"its {packed:,} bytes unpack to {whole:,}"):
                headers_of(path)


# -- the meaning of arrays ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def instances() -> Instances:
    return Addition(digits=4).sample(3, Streams(0).named("edges"))


@pytest.fixture(scope="module")
def trace(instances: Instances) -> Trace:
    return decode(adder(Addition(digits=4)), instances, policy_named("top1"))


def changed(held: T, **values: Any) -> T:
    """`replace` for fields whose names are computed."""
    return replace(held, **values)  # type: ignore[type-var]


def with_value(array: Array, value: float) -> Array:
    changed = array.astype(np.float64 if isinstance(value, float) else np.int64)
    changed.reshape(-1)[-1] = value
    return changed


@pytest.mark.parametrize(
    ("field", "accepted", "refused"),
    [
        ("prompt_len_N", (0, 10), (-1, 11)),
        ("parents_NAE", (-1, 4), (-2, 5)),
        ("orders", (-1, 5), (-2, 6)),
        ("strata", (-1e9, 1e9), (float("nan"), float("inf"))),
    ],
)
def test_values_of_instances(
    field: str, accepted: tuple[float, ...], refused: tuple[float, ...], instances: Instances
) -> None:
    room = instances.tokens_NL.shape[1] - instances.answer_len
    assert room == 10
    held = getattr(instances, field)

    def at(value: float) -> Instances:
        if isinstance(held, dict):
            return changed(instances, **{field: {**held, "new": with_value(next(iter(held.values())), value)}})
        return changed(instances, **{field: with_value(held, value)})

    for value in accepted:
        check_instances(at(value))
    for value in refused:
        with pytest.raises(HardtailError):
            check_instances(at(value))


@pytest.mark.parametrize(
    ("field", "accepted", "refused"),
    [
        ("cell_NT", (-1, 4), (-2, 5)),
        ("runner_up_NT", (-1, 4), (-2, 5)),
        ("step_NT", (0, 1 << 15), (-1, (1 << 15) + 1)),
        ("gold_rank_NT", (-1, 1 << 20), (-2, (1 << 20) + 1)),
        ("passes_N", (0, (1 << 31) - 1), (-1, 1 << 31)),
        ("prob_NT", (0.0, 1.0005, float("nan")), (-0.01, 1.01, float("inf"))),
        ("gold_prob_NT", (0.0, 1.0005, float("nan")), (-0.01, 1.01, float("inf"))),
    ],
)
def test_values_of_a_trace(field: str, accepted: tuple[float, ...], refused: tuple[float, ...], trace: Trace) -> None:
    for value in accepted:
        check_trace(changed(trace, **{field: with_value(getattr(trace, field), value)}))
    for value in refused:
        with pytest.raises(HardtailError):
            check_trace(changed(trace, **{field: with_value(getattr(trace, field), value)}))
    with pytest.raises(HardtailError, match="room"):
        check_trace(replace(trace, instances=replace(trace.instances, prompt_len_N=np.array([0, 0, 99]))))


def test_parts_of_a_trace_one_after_another(trace: Trace) -> None:
    """A shorter part is lengthened by "no event"; passes are known only if every part knows them."""
    short = changed(
        trace,
        **{name: getattr(trace, name)[:, :3] for name in vars(trace) if name.endswith("_NT")},
        notes={"doubt": np.arange(3.0)},
    )
    whole = replace(trace, notes={"doubt": np.arange(3.0) + 5})
    both = Trace.concat([short, whole])
    assert both.cell_NT.shape == (6, 5)
    assert (both.cell_NT[:3, 3:] == -1).all()
    assert (both.runner_up_NT[:3, 3:] == -1).all()
    assert np.isnan(both.margin_NT[:3, 3:]).all()
    assert (both.step_NT[:3, 3:] == 0).all()
    assert both.notes["doubt"].tolist() == [0, 1, 2, 5, 6, 7]
    assert both.passes_N is not None
    assert both.passes_N.tolist() == [5] * 6
    assert Trace.concat([replace(short, passes_N=None), whole]).passes_N is None
    assert both.take(np.array([0, 4])).notes["doubt"].tolist() == [0, 6]
    assert repr(replace(whole, about={"model": "m", "policy": "top1", "x": 1})) == "<Trace: m, top1, 3 of 3 right>"
    frame = both.to_frame()
    assert len(frame) == 3 * 3 + 3 * 5
    assert list(frame.columns)[:4] == ["instance", "cell", "step", "token"]
    assert not frame["wrong"].any()


def test_a_vocabulary_names_what_it_does_not_have() -> None:
    held = Vocabulary("01+")
    assert (held.size, held.mask_id, held.pad_id) == (5, 3, 4)
    assert held.encode("1+0MP").tolist() == [1, 2, 0, 3, 4]
    assert held.decode(np.array([4, 3, 2])) == "PM+"
    with pytest.raises(HardtailError, match="'é' is not one of the characters '01\\+'"):
        held.encode("10é2")


# -- JSON and records ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [decoded, decoded_with_infinity])
def test_how_deep_and_how_large_json_may_be(read: Callable[[str, str], Any]) -> None:
    for opening, inside, closing in (("[", "", "]"), ('{"a":', "1", "}")):
        assert read(opening * DEEPEST + inside + closing * DEEPEST, "it")
        with pytest.raises(HardtailError, match="it: it is nested more than 64 levels deep"):
            read(opening * (DEEPEST + 2) + inside + closing * (DEEPEST + 2), "it")
    assert len(read("[" + ",".join(["[]"] * 500) + "]", "it")) == 500
    for number in ((1 << 64) - 1, -(1 << 63)):
        assert read(f"[[{number}]]", "it") == [[number]]
    for number in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(HardtailError):
            read(f'{{"a": [{number}]}}', "it")
    with pytest.raises(HardtailError, match="it: this is not valid JSON"):
        read("[1", "it")


@pytest.mark.parametrize("schema", [0, 3, True, "1", None, 1.0])
def test_records_of_other_schemas_are_refused(schema: object) -> None:
    for known in (1, 2):
        assert parse(f'{{"schema": {known}, "step": 1}}'.encode(), LogLine, "it").step == 1
    with pytest.raises(HardtailError, match=r"it: schema is .*; this version reads 1 to 2"):
        parse(json.dumps({"schema": schema, "step": 1}).encode(), LogLine, "it")


def test_what_counts_as_plainly_decoded() -> None:
    plain = Accuracy(policy="top1", stratum="natural", n=1, exact_match=1.0, seed=7)

    assert plain.plainly_decoded
    assert structs.replace(plain, data_seed=7).plainly_decoded
    assert structs.replace(plain, decode_precision="bf16").plainly_decoded
    others: list[dict[str, Any]] = [
        {"data_seed": 8},
        {"data": DataFile(file="x", sha256="y")},
        {"decode_seed": 1},
        {"commit_rule": "2 a step"},
        {"restrict": True},
        {"temperature": 0.5},
    ]
    assert not any(structs.replace(plain, **other).plainly_decoded for other in others)


def test_names_that_folders_can_have() -> None:
    for name in ("a", "a b", "é" * 100, ".hidden", "x" * 200):
        assert names_a_folder(name), name
    for name in ("", ".", "..", "a/b", "/", "a\n", "\x1b", "x" * 201, "é" * 101):
        assert not names_a_folder(name), name
    with pytest.raises(ValueError, match="not the name of a folder"):
        RunEntry(name="..", arm="a", task="t", seed=0, steps=1)


def test_coverage_has_as_many_rows_of_ranks_as_counts() -> None:
    Coverage(by_count=(1, 2), by_count_and_rank=((1, 2, 3), (4, 5, 6)))
    for rows in (((1, 2),), ((1, 2), (1,)), ((1,), (2,), (3,))):
        with pytest.raises(ValueError, match="differ"):
            Coverage(by_count=(1, 2), by_count_and_rank=rows)


def test_a_record_as_json_leaves_out_what_is_unknown() -> None:
    record = Accuracy(policy="top1", stratum="natural", n=np.int64(3), exact_match=float("nan"), seed=0)  # type: ignore[arg-type]
    assert list(as_json(record).items())[:3] == [("kind", "accuracy"), ("schema", 2), ("policy", "top1")]
    assert "exact_match" not in as_json(record)
    assert as_json(LogLine(step=3)) == {"schema": 2, "step": 3}
