"""Files that are not what they seem: devices, pipes and links, nested JSON, archives that unpack to too much."""

import gzip
import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hardtail import HardtailError
from hardtail.core import archives, files
from hardtail.core.files import append_bytes, atomic, load_instances, manifest_path, read_lines, sole_writer
from hardtail.core.records import Coverage, Finished, read_json, write_record
from hardtail.core.trace_files import load_trace
from tests.conftest import Command
from tests.hostile import data_set, small_addition, trace_file, untrained_run

# -- writing ----------------------------------------------------------------------------------------------------------

Place = Callable[[Path], Path]


def device(folder: Path) -> Path:
    """The null device, under a name of its own: nothing here touches the real one."""
    path = folder / "device"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    return path


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def link(folder: Path) -> Path:
    (folder / "victim").write_text("precious\n")
    (folder / "link").symlink_to(folder / "victim")
    return folder / "link"


def directory(folder: Path) -> Path:
    (folder / "folder").mkdir()
    return folder / "folder"


def _replace(path: Path) -> None:
    with atomic(path) as file:
        file.write(b"new\n")


def _lock(path: Path) -> None:
    with sole_writer(path):
        pass


WRITERS: dict[str, Callable[[Path], None]] = {
    "replace": _replace,
    "append": lambda path: append_bytes(path, b"new\n"),
    "add a line": lambda path: files.add_line(path, b"new\n"),
    "write a record": lambda path: write_record(path, Coverage(by_count=(1,), by_count_and_rank=((1,),))),
}


@pytest.mark.parametrize("place", [device, pipe, link, directory])
@pytest.mark.parametrize("writer", WRITERS)
def test_only_new_paths_and_regular_files_are_written(writer: str, place: Place, tmp_path: Path) -> None:
    path = place(tmp_path)
    before = path.lstat()
    with pytest.raises(HardtailError, match=r"is a (device|pipe|symbolic link|folder); give a new name"):
        WRITERS[writer](path)
    after = path.lstat()
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert not [left for left in tmp_path.iterdir() if left.name.startswith(".")]
    if place is link:
        assert path.read_text() == "precious\n"


@pytest.mark.parametrize("place", [device, pipe, link])
def test_a_lock_is_only_taken_for_what_can_be_written(place: Place, tmp_path: Path) -> None:
    path = place(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(HardtailError, match="give a new name"):
        _lock(path)
    assert sorted(tmp_path.iterdir()) == before


def test_links_in_a_run_folder_are_not_followed(tmp_path: Path) -> None:
    """`lock → victim` was truncated and `log.jsonl → victim` overwritten when such a run was continued."""
    from hardtail.training.run import train
    from tests.test_run_files import quick, stop_after

    victim, folder = tmp_path / "victim", tmp_path / "run"
    victim.write_text("precious\n")
    train(quick(), folder, should_stop=stop_after(1))
    for name in ("lock", "log.jsonl"):
        path = folder / name
        path.unlink(missing_ok=True)
        path.symlink_to(victim)
        with pytest.raises(HardtailError, match=f"{name} is a symbolic link; give a new name"):
            train(quick(), folder)
        path.unlink()
        path.hardlink_to(victim)  # a second name of the same file cannot be told, but must not be written to
    assert not train(quick(), folder, should_stop=stop_after(1)).finished
    assert victim.read_text() == "precious\n"


@pytest.mark.parametrize("place", [device, pipe, link])
def test_commands_refuse_such_an_out_before_they_work(place: Place, tmp_path: Path, hardtail_command: Command) -> None:
    path, run = place(tmp_path), str(untrained_run(tmp_path / "run"))
    trace = str(trace_file(tmp_path / "trace.npz", small_addition()))
    data = tmp_path / "data.npz"
    path.rename(data)  # the writer of data asks for that ending
    for words in (
        ("eval", run, "-n", "1", "--out", str(data)),
        ("diagnose", run, "-n", "1", "--out", str(data)),
        ("diagnose", trace, "--out", str(data)),
        ("report", trace, "--out", str(data)),
        ("demo", "--out", str(data)),
        ("data", "addition", "-n", "1", "--force", "--out", str(data)),
    ):
        code, out, err = hardtail_command(*words)
        assert (code, out) == (2, ""), words
        assert "; give a new name or a regular file to write" in err
        assert len(err.splitlines()) == 1
    assert not stat.S_ISREG(data.lstat().st_mode)


# -- reading ----------------------------------------------------------------------------------------------------------


def test_an_endless_device_is_not_read(tmp_path: Path) -> None:
    zero = tmp_path / "finished.json"
    zero.symlink_to("/dev/zero")
    with pytest.raises(HardtailError, match=r"finished\.json is a device; give a regular file"):
        read_json(zero, Finished)
    with pytest.raises(HardtailError, match="line 1 has more than 100,000 characters"):
        read_lines(zero)
    trace = trace_file(tmp_path / "trace.npz", small_addition())
    for path in (trace, manifest_path(trace)):
        held = path.read_bytes()
        path.unlink()
        path.symlink_to("/dev/zero")
        with pytest.raises(HardtailError, match=r"is not a file|is a device"):
            load_trace(trace)
        path.unlink()
        path.write_bytes(held)


def test_a_huge_file_of_records_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "finished.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(HardtailError, match="has 1,099,511,627,776 bytes"):
        read_json(tmp_path / "finished.json", Finished)


NESTED = '{"fields": ' + "[" * 200_000
DEEP = '{"format": 1, "fields": ' + "[" * 300 + "]" * 300 + "}"


@pytest.mark.parametrize("text", [NESTED, DEEP], ids=["without end", "300 levels"])
def test_nested_json_is_a_sentence_in_every_command(text: str, tmp_path: Path, hardtail_command: Command) -> None:
    run, task = untrained_run(tmp_path / "run"), small_addition()
    data, trace = data_set(tmp_path / "data.npz", task), trace_file(tmp_path / "trace.npz", task)
    results = tmp_path / "results"
    results.mkdir()
    for path in (run / "recipe.json", manifest_path(data), manifest_path(trace), results / "index.jsonl"):
        path.write_text(text)
    for words in (
        ("eval", str(run)),
        ("diagnose", str(run)),
        ("diagnose", str(trace)),
        ("report", str(run)),
        ("report", str(trace)),
        ("report", "--results", str(results)),
        ("view", str(trace)),
        ("inspect", str(data)),
        ("claims", "--results", str(results)),
        ("study", "--results", str(results)),
        ("train", "addition-random-smoke", "--out", str(run)),
        ("train", "addition-random-smoke", "--out", str(tmp_path / "new"), "--data", str(data)),
    ):
        code, _, err = hardtail_command(*words)
        assert code == 2, words
        assert "not valid JSON" in err or "nested more than 64 levels deep" in err
        assert len(err) < 1000


@pytest.mark.parametrize(
    "words", [["inspect", "."], ["inspect", ""], ["inspect", "/"], ["diagnose", "."], ["view", ""]]
)
def test_a_folder_without_a_name_is_no_file(words: list[str], hardtail_command: Command) -> None:
    code, _, err = hardtail_command(*words)
    assert (code, "Traceback" in err) == (2, False), err


# -- bombs ------------------------------------------------------------------------------------------------------------


def _bomb(path: Path, count: int, method: int = zipfile.ZIP_DEFLATED) -> None:
    """An archive of zeros, without a process that ever holds them."""
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("tokens_NL.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (count, 1 << 20)})
        for _ in range(count):
            file.write(bytes(1 << 20))


def test_an_archive_that_unpacks_to_too_much_is_refused_by_its_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.npz"
    manifest_path(path).write_text(json.dumps({"format": 1, "count": 40, "sha256": "0" * 64}))
    monkeypatch.setattr(archives, "ALWAYS_UNPACKED", 32 << 20)
    monkeypatch.setattr(archives.Archive, "array", lambda held, name: pytest.fail(f"{name} was unpacked"))
    _bomb(path, 40)
    with pytest.raises(HardtailError, match=r"bytes unpack to 41,943,\d+, more than 200 times as many"):
        load_instances(path)
    _bomb(path, 1, zipfile.ZIP_LZMA)
    with pytest.raises(HardtailError, match="compressed in a way that hardtail does not use"):
        load_instances(path)
    data_set(path, small_addition())
    said = json.loads(manifest_path(path).read_text())
    manifest_path(path).write_text(json.dumps(said | {"count": 2}))
    with pytest.raises(HardtailError, match="its manifest says 2 instances"):
        load_instances(path)


def test_headers_that_lie_about_a_size(tmp_path: Path) -> None:
    path = data_set(tmp_path / "data.npz", small_addition())
    for shape in ((3, 1 << 50), (-3, 15), (1 << 40, 15), ("3", 15)):
        with zipfile.ZipFile(path, "w") as archive, archive.open("tokens_NL.npy", "w") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            file.write(bytes(45))
        with pytest.raises(HardtailError, match="is damaged or not hardtail data"):
            load_instances(path)


def test_text_is_read_up_to_a_limit_that_a_flag_raises(tmp_path: Path, hardtail_command: Command) -> None:
    bomb, long = tmp_path / "bomb.txt.gz", tmp_path / "long.txt"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(20):
            file.write(b"1+2\n" * 1000)
    with pytest.raises(HardtailError, match=r"bomb\.txt\.gz takes more than 1 MB of memory; .*`--limit`"):
        read_lines(bomb, 1 << 20)
    assert len(read_lines(bomb)) == 20_000
    code, _, err = hardtail_command("solve", "addition", str(bomb), "--limit", "1", "--json")
    assert (code, err[:9]) == (2, "hardtail:")
    assert "allow more (`--limit`)" in err
    assert (
        hardtail_command("data", "addition", "--from", str(bomb), "--limit", "1", "--out", str(tmp_path / "a.npz"))[0]
        == 2
    )
    long.write_text("1+2\n" + "1" * 5_000_000 + "\n")
    for words in (("solve", "addition", str(long)), ("check", "addition", str(long), "3")):
        code, _, err = hardtail_command(*words)
        assert code == 2
        assert "line 2 has more than 100,000 characters" in err
        assert len(err) < 300
