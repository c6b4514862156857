"""Measurements are on disk before they are shown, and a run's own task is found where a user names it."""

import io
import json
import sys
from pathlib import Path

import pytest

from hardtail import cli
from hardtail.core.registry import TASKS
from hardtail.study.runs import Run
from tests.conftest import Command
from tests.hostile import small_addition, trace_file, untrained_run


class Closed(io.StringIO):
    """The pipe to a `head` that has seen enough."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_closed_pipe_loses_no_records(more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = untrained_run(tmp_path / "run")
    trace = trace_file(tmp_path / "trace.npz", small_addition())
    out = tmp_path / "diagnoses.jsonl"
    for words, kept in (
        (["eval", str(run), "-n", "2", "--strata", "natural", "--policies", "top1"], run / "evaluations.jsonl"),
        (["diagnose", str(trace), "--out", str(out)], out),
    ):
        monkeypatch.setattr(sys, "argv", ["hardtail", *words, *more])
        monkeypatch.setattr(sys, "stdout", Closed())
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 141
        assert {json.loads(line)["kind"] for line in kept.read_text().splitlines()} & {"accuracy", "diagnosis"}


def test_a_run_of_a_task_that_a_user_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hardtail_command: Command
) -> None:
    run = untrained_run(tmp_path / "run")
    said = json.loads((run / "recipe.json").read_text())
    said["fields"]["task"]["name"] = "sums_of_mine:Mine"
    (run / "recipe.json").write_text(json.dumps(said))
    (tmp_path / "sums_of_mine.py").write_text(
        "from hardtail.tasks.addition.task import Addition\n\n\nclass Mine(Addition):\n    name = 'mine'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(TASKS, "_known", dict(TASKS._known))
    code, _, err = hardtail_command("report", str(run), "--out", "page.html")
    assert code == 2
    assert f"{run} does not name a task that can be used here" in err
    assert "name it with --task package.module:Class" in err
    hardtail_command("inspect", "none.npz", "--task", "sums_of_mine:Mine")
    assert Run.of_folder(run).task == "mine"
