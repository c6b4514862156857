"""JSON and records: parsed once, refused with file, line and field, and written so that they read back the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from hardtail import HardtailError
from hardtail.core.parsing import DEEPEST, decoded, decoded_with_infinity
from hardtail.core.records import (
    SCHEMA,
    Accuracy,
    Coverage,
    DataFile,
    LogLine,
    RunEntry,
    append_jsonl,
    as_json,
    jsonable,
    names_a_folder,
    parse,
    read_json,
    read_jsonl,
    read_measurements,
)
from hardtail.core.registry import TASKS
from hardtail.measuring.diagnosis import read_diagnoses
from hardtail.tasks.addition.profile import Profile

GOOD = '{"kind": "accuracy", "policy": "top1", "stratum": "natural", "n": 5, "exact_match": 0.5}'


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (GOOD.replace("0.5", "1.5"), "exact_match: expected `float` <= 1.0"),
        (GOOD.replace("0.5", "NaN"), "not valid JSON"),
        (GOOD.replace("0.5", "1e999"), "out of range"),
        (GOOD.replace("0.5", '"x"'), "exact_match: expected `float"),
        (GOOD.replace(": 5", ": 0"), "n: expected `int` >= 1"),
        (GOOD.replace(": 5", ": true"), "n: expected `int`"),
        (GOOD.replace(": 5", f": {'9' * 400}"), "more than 64 bits"),
        (GOOD.replace('"n": 5, ', ""), "missing required field `n`"),
        (GOOD.replace("accuracy", "accurate"), "kind: invalid value 'accurate'"),
        (GOOD.replace('"policy": "top1"', '"policy": ["top1"]'), "policy: expected `str`"),
        ("[" * 200_000, "not valid JSON"),
        (GOOD[:-1], "not valid JSON"),
        ("[1, 2]", "not a JSON object"),
        (GOOD.replace("{", f'{{"schema": {SCHEMA + 1}, ', 1), f"schema is {SCHEMA + 1}"),
        (GOOD.replace("{", '{"schema": "new", ', 1), "schema is 'new'"),
    ],
)
def test_a_bad_line_is_refused_with_its_file_line_and_field(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "evaluations.jsonl"
    path.write_text(f"{GOOD}\n\n{line}\n")
    with pytest.raises(HardtailError) as refused:
        read_measurements(path)
    assert str(refused.value).startswith(f"{path}, line 3: ")
    assert told in str(refused.value)


def test_lines_of_before_a_field_existed_have_its_default(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.jsonl"
    path.write_text(GOOD.replace("{", '{"retired": [1], ', 1) + "\n")
    (record,) = read_measurements(path)
    assert isinstance(record, Accuracy)
    assert record.plainly_decoded
    assert (record.checkpoint, record.data_seed, record.commit_rule) == (None, None, "1 a step")


def test_diagnoses_of_before_the_schema_read_as_todays() -> None:
    """One of every task, written when profiles were dictionaries and had other names for the same readings."""
    path = Path(__file__).with_name("diagnoses_of_schema_1.jsonl")
    found = read_diagnoses(path)
    assert {type(record.profile) for record in found} == {TASKS.load(name).profile_type() for name in TASKS.names()}
    held = [json.loads(line) for line in path.read_text().splitlines()]
    for record, old in zip(found, held, strict=True):
        assert record.number(("profile", "failures")) == old["profile"]["failures"] > 0
        assert as_json(record)["readiness"] == old["readiness"]
    top, first = (held[0]["profile"]["wrong_commits"][name]["step_median"] for name in ("top", "first"))
    assert isinstance(found[0].profile, Profile)
    readings = found[0].profile.wrong_commits
    assert (readings.lowest_index.step_median, readings.first_in_time.step_median) == (top, first)
    assert found[0].number(("profile", "wrong_commits", "lowest_index", "step_median")) == top
    assert found[0].number(("profile", "wrong_commits", "nowhere")) is None


def test_a_damaged_profile_is_named(tmp_path: Path) -> None:
    line = json.loads(Path(__file__).with_name("diagnoses_of_schema_1.jsonl").read_text().splitlines()[0])
    line["profile"]["wrong_commits"]["top"]["step_median"] = "soon"
    (tmp_path / "diagnoses.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(HardtailError, match=r"line 1: wrong_commits\.lowest_index\.step_median: expected `float"):
        read_diagnoses(tmp_path / "diagnoses.jsonl")


def test_what_is_written_reads_back_the_same(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.jsonl"
    made = Accuracy(policy="top1", stratum="a\u2028b", n=3, exact_match=1 / 3, seed=1 << 63, temperature=0.5)
    append_jsonl(path, [made])
    append_jsonl(path, [made])
    assert read_measurements(path) == [made, made]
    assert as_json(made)["schema"] == SCHEMA
    assert "checkpoint" not in as_json(made)
    assert not made.plainly_decoded


def test_files_that_are_one_record(tmp_path: Path) -> None:
    path = tmp_path / "coverage.json"
    assert read_json(path, Coverage) is None
    path.write_text('{"by_count": [0, 1], "by_count_and_rank": [[0]]}')
    with pytest.raises(HardtailError, match=r"coverage\.json: .*differ in their rows"):
        read_json(path, Coverage)
    path.write_text('{"by_count": [0, -1], "by_count_and_rank": [[0], [1]]}')
    with pytest.raises(HardtailError, match=r"by_count\[1\]: expected `int` >= 0"):
        read_json(path, Coverage)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Windows' editors write one."""
    path = tmp_path / "evaluations.jsonl"
    path.write_text(f"\ufeff{GOOD}\n{GOOD}\n")
    assert [record.n for record in read_measurements(path)] == [5, 5]
    path.write_text('\ufeff{"by_count": [1], "by_count_and_rank": [[1]]}')
    assert read_json(path, Coverage) == Coverage(by_count=(1,), by_count_and_rank=((1,),))


def test_a_run_is_named_by_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "index.jsonl"
    path.write_text('{"name": "../x", "arm": "a", "task": "t", "seed": 1, "steps": 2}\n')
    with pytest.raises(HardtailError, match=r"line 1: '\.\./x' is not the name of a folder"):
        read_jsonl(path, RunEntry)


def test_a_log_line_needs_only_its_step(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 0, "how": "eager"}\n{"natural": 1.0}\n')
    with pytest.raises(HardtailError, match=r"line 2: object missing required field `step`"):
        read_jsonl(path, LogLine)


def test_what_is_unknown_is_not_written() -> None:
    """Neither in a record nor in what it holds, nor in what a tracker is told."""
    data = DataFile(file="sums.npz", sha256="00")
    assert as_json(LogLine(step=3, data=data)) == {
        "schema": SCHEMA,
        "step": 3,
        "data": {"file": "sums.npz", "sha256": "00"},
    }
    assert jsonable(LogLine(step=3)) == {"step": 3}


@pytest.mark.parametrize("read", [decoded, decoded_with_infinity])
def test_how_deep_and_how_large_json_may_be(read: Callable[[str, str], Any]) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        inside = opening * (DEEPEST - 1) + "1" + closing * (DEEPEST - 1)
        assert read(f"[{inside}]", "it")
        assert read(f"[{inside}, []]", "it")
        with pytest.raises(HardtailError, match="it: it is nested more than 64 levels deep"):
            read(f"[[{inside}]]", "it")
    assert len(read("[" + ",".join(["[]"] * 500) + "]", "it")) == 500
    for number in ((1 << 64) - 1, -(1 << 63)):
        assert read(f"[[{number}]]", "it") == [[number]]
    for number in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(HardtailError, match="it: "):
            read(f'{{"a": [1, {number}]}}', "it")
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


def test_what_counts_as_plainly_decoded_from_a_file() -> None:
    """Its problems are the same for every seed, so that the seed of the data does not matter."""
    drawn = Accuracy(policy="top1", stratum="natural", n=1, exact_match=1.0, seed=7)
    plain = structs.replace(drawn, data=DataFile(file="x", sha256="y"))
    assert not drawn.plainly_decoded_from
    for same in ({}, {"data_seed": 8}, {"decode_precision": "bf16"}):
        assert structs.replace(plain, **same).plainly_decoded_from == "x", same
    for other in ({"decode_seed": 1}, {"commit_rule": "2 a step"}, {"restrict": True}, {"temperature": 0.5}):
        assert not structs.replace(plain, **other).plainly_decoded_from, other


def test_names_that_folders_can_have() -> None:
    for name in ("a", "a b", "é" * 100, ".hidden", "x" * 200):
        assert names_a_folder(name), name
    for name in ("", ".", "..", "a/b", "/", "a\n", "\x1b", "x" * 201, "é" * 101):
        assert not names_a_folder(name), name
    with pytest.raises(ValueError, match="not the name of a folder"):
        RunEntry(name="..", arm="a", task="t", seed=0, steps=1)
    for caveat in ("", " ", "one\n\\input{two}", "\x1b[2J"):
        with pytest.raises(ValueError, match="not a line of text"):
            RunEntry(name="a", arm="a", task="t", seed=0, steps=1, caveat=caveat)
    assert RunEntry(name="a", arm="a", task="t", seed=0, steps=1, caveat="known to it").caveat == "known to it"


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


def test_only_numbers_and_text_are_recorded() -> None:
    assert jsonable({"a": np.float32(0.5), "b": np.arange(2)}) == {"a": 0.5, "b": [0, 1]}
    with pytest.raises(TypeError, match="cannot be recorded"):
        jsonable(object())
