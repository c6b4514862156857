"""A person names the wrong thing: the sentence says what it is, and what to give instead."""

from pathlib import Path

import pytest

from tests.conftest import Command
from tests.hostile import untrained_run


def refused(hardtail_command: Command, *words: str) -> str:
    code, out, err = hardtail_command(*words)
    assert (code, out) == (2, ""), words
    return err.splitlines()[-1]


@pytest.mark.parametrize("command", ["eval", "diagnose"])
def test_records_are_not_added_to_another_file(command: str, hardtail_command: Command, tmp_path: Path) -> None:
    notes = tmp_path / "notes.json"
    notes.write_text("[1]\n")
    run = str(untrained_run(tmp_path / "run"))
    assert f"--out {notes}: records are added to a file whose name ends in .jsonl" in refused(
        hardtail_command, command, run, "-n", "1", "--out", str(notes)
    )
    assert notes.read_text() == "[1]\n"
