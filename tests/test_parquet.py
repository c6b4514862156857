"""Data sets as Parquet: the same arrays bit for bit, readable by other tools, and refused when altered."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

import hardtail
import hardtail as ht
from hardtail import HardtailError
from hardtail.core.parquet import ENTRY, load_parquet, save_parquet
from hardtail.core.registry import TASKS
from hardtail.tasks.datasets import build
from hardtail.tasks.stored import store
from tests.conftest import Command


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    task, path = ht.task("addition", digits=8), tmp_path_factory.mktemp("data") / "x.parquet"
    built = build(task, "test", 0, 20)
    store(path, task, built.instances, built.manifest)
    return path


@pytest.mark.parametrize("name", TASKS.names())
@pytest.mark.parametrize("bare", [False, True])
def test_every_array_comes_back_bit_for_bit(name: str, bare: bool, tmp_path: Path) -> None:
    task = ht.task(name)
    instances = task.sample(4, seed=1)
    instances = instances.bare() if bare else instances
    manifest = build(ht.task("addition", digits=8), "test", 0, 2).manifest
    for ending in ("npz", "parquet"):
        store(tmp_path / f"x.{ending}", task, instances, manifest)
    (plain, one), (again, two) = (ht.load_instances(tmp_path / f"x.{ending}") for ending in ("npz", "parquet"))
    assert one == two
    assert list(plain.arrays()) == list(again.arrays())
    for key, array in plain.arrays().items():
        other = again.arrays()[key]
        assert (array.dtype, array.shape, array.tobytes()) == (other.dtype, other.shape, other.tobytes()), key


def test_other_tools_read_problems_and_answers(written: Path) -> None:
    task = ht.task("addition", digits=8)
    instances, _ = ht.load_instances(written)
    frame = pandas.read_parquet(written)
    assert list(frame["prompt"]) == task.render(instances)
    for prompt, answer in zip(frame["prompt"], frame["answer"], strict=True):
        one, other = map(int, prompt.split("+"))
        assert int(answer) == one + other
    assert (frame["strata/chain"] == instances.strata["chain"]).all()


def test_the_command_writes_it_and_others_read_it(tmp_path: Path, hardtail_command: Command) -> None:
    path = str(tmp_path / "x.parquet")
    words = ("data", "addition", "--split", "test", "-n", "6", "--set", "digits=8", "--out", path)
    code, out, err = hardtail_command(*words)
    assert code == 0, err
    assert "6 instances" in out
    assert not (tmp_path / "x.json").exists()
    assert hardtail_command(*words)[0] == 2  # it already exists
    code, out, err = hardtail_command("inspect", path)
    assert code == 0, err
    assert '"split": "test"' in out


def test_altered_files_are_refused(written: Path, tmp_path: Path) -> None:
    table, path = pyarrow.parquet.read_table(written), tmp_path / "x.parquet"

    def refused(other: pyarrow.Table, match: str) -> None:
        pyarrow.parquet.write_table(other, path)
        with pytest.raises(HardtailError, match=match):
            ht.load_instances(path)

    place = table.column_names.index("prompt_len_N")
    moved = pyarrow.array(table["prompt_len_N"].to_numpy() - 1)
    refused(table.set_column(place, "prompt_len_N", moved), "the hashes differ")
    refused(table.set_column(place, "prompt_len_N", moved.cast(pyarrow.int64())), "is not")
    refused(table.set_column(place, "prompt_len_N", pyarrow.nulls(20, pyarrow.int32())), "empty cells")
    refused(table.drop_columns("tokens_NL"), "is missing")
    refused(table.slice(0, 10), "a different number of instances")
    refused(table.replace_schema_metadata({}), "no manifest of hardtail")
    refused(table.replace_schema_metadata({ENTRY: b"{}"}), "manifest")
    entry = table.schema.metadata[ENTRY].replace(b"|u1", b"|O8", 1)
    refused(table.replace_schema_metadata({ENTRY: entry}), "not plain numbers")
    entry = table.schema.metadata[ENTRY].replace(b"[20,", b"[200000000000,")
    refused(table.replace_schema_metadata({ENTRY: entry}), "unpack to")
    raw = written.read_bytes()
    for cut in (0, 4, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:cut])
        with pytest.raises(HardtailError, match="damaged or not hardtail data"):
            ht.load_instances(path)


def test_long_words_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    """Ten thousand times the same long word is a small file; numpy would cut it to what was hashed."""
    task, path = ht.task("sudoku"), tmp_path / "x.parquet"
    manifest = build(ht.task("addition", digits=8), "test", 0, 2).manifest
    store(path, task, task.sample(2, seed=1), manifest)
    table = pyarrow.parquet.read_table(path)
    (name,) = [name for name in table.column_names if name.startswith("strata/tier")]
    for longer in (12, 1 << 20):
        words = pyarrow.array([word + "x" * longer for word in table[name].to_pylist()])
        pyarrow.parquet.write_table(table.set_column(table.column_names.index(name), name, words), path)
        with pytest.raises(HardtailError, match="longer than"):
            ht.load_instances(path)


def test_every_flipped_byte_is_refused_or_harmless(written: Path, tmp_path: Path) -> None:
    whole, manifest = ht.load_instances(written)
    raw, path = written.read_bytes(), tmp_path / "x.parquet"
    for place in np.random.default_rng(0).integers(0, len(raw), 200):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 0x55]) + raw[place + 1 :])
        try:
            loaded, same = ht.load_instances(path)
        except HardtailError:
            continue
        assert same.sha256 == manifest.sha256
        assert all((loaded.arrays()[key] == array).all() for key, array in whole.arrays().items())


@pytest.mark.parametrize(("name", "kind"), [("maskable_NA", np.uint8), ("prompt_len_N", np.int64)])
def test_a_column_of_another_type_is_named(name: str, kind: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    built = build(hardtail.task("addition", digits=4), "test", n=3)
    path = tmp_path / "data.parquet"
    save_parquet(path, built.instances, built.manifest, {})
    held = pq.read_table(path)
    place, array = held.schema.get_field_index(name), built.instances.arrays()[name].astype(kind)
    column = pa.array(array) if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), 5)
    pq.write_table(held.set_column(place, name, column), path)
    with pytest.raises(HardtailError, match=rf"the column '{name}' \(.*\) is not "):
        load_parquet(path)
