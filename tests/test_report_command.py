"""`hardtail report` as a person types it: what it writes, and what it says when the person errs."""

import errno
import json
import os
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from hardtail.core.describe import describe
from hardtail.core.errors import HardtailError
from hardtail.core.registry import TASKS
from hardtail.core.trace_files import save_trace
from hardtail.core.types import Trace
from hardtail.study.recipes import recipe_named
from hardtail.study.runs import Run
from hardtail.training.run import train
from tests.conftest import Command
from tests.report_toys import Markup, addition_traces, lines, results, saved


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return addition_traces(2)


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, hardtail_command: Command, tmp_path: Path) -> Command:
    """`hardtail report` in an empty folder: exit code, standard output, standard error."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return partial(hardtail_command, "report")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few steps."""
    recipe = recipe_named("addition-puma-smoke")
    folder = tmp_path_factory.mktemp("runs") / "run"
    watch = replace(recipe.watch, eval_every=10, gen_every=10, decoded=2, probe_size=4)
    train(replace(recipe, steps=20, train_size=64, watch=watch), folder)
    return folder


def held_in(path: Path) -> dict[str, Any]:
    found = re.search(r'id="content">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_models_are_decoded_on_the_same_instances(report: Command, trained: Path, tmp_path: Path) -> None:
    weights = str(trained / "last.safetensors")
    code, out, err = report(str(trained), weights, "-n", "3", "--results", str(results(tmp_path / "results")))
    assert (code, "report.html" in out) == (0, True), err
    content = held_in(Path("report.html"))
    (stage,) = content["stages"]
    assert [decoder["name"] for decoder in stage["decoders"]] == [
        "run · top1",
        "run · lsb",
        "last · top1",
        "last · lsb",
    ]
    assert stage["strata"] == ["natural"] * 3 + ["chain>=6"] * 3
    assert [run["name"] for run in content["runs"]] == ["run"]
    assert len(content["study"]["runs"]) == 6  # the log is plotted beside those of the recorded runs
    names = {series["group"] for chart in content["charts"] for series in chart["series"]}
    assert {"puma-smoke, seed 42 (not measured)", "puma-tf32"} <= names


def test_models_of_two_readings_share_a_stage(report: Command, trained: Path, tmp_path: Path) -> None:
    recipe = recipe_named("addition-papl-smoke")
    other = replace(recipe, task=replace(recipe.task, operands="any", planting="minimum"))  # type: ignore[call-arg]
    train(replace(other, steps=1, train_size=64), tmp_path / "other")
    code, _, err = report(str(trained), str(tmp_path / "other"), "-n", "3", "--policies", "top1")
    assert code == 0, err
    (stage,) = held_in(Path("report.html"))["stages"]
    assert [decoder["name"] for decoder in stage["decoders"]] == ["run · top1", "other · top1"]
    assert len(stage["strata"]) == 6


def test_policies_and_strata_can_be_chosen(report: Command, trained: Path) -> None:
    words = ("--policies", "random", "--strata", "chain>=4", "-n", "2", "--out", "there/page.html")
    code, _, err = report(str(trained), *words)
    assert code == 0, err
    (stage,) = held_in(Path("there/page.html"))["stages"]
    assert [decoder["policy"] for decoder in stage["decoders"]] == ["random"]
    assert stage["strata"] == ["chain>=4"] * 2


def test_recorded_runs_are_shown_only_if_asked_for(report: Command, tmp_path: Path, traces: list[Trace]) -> None:
    results(Path("results"))  # where they are looked for
    paths = saved(tmp_path, traces)
    code, out, err = report(*paths)
    assert (code, "4 decoders to watch; open it" in out) == (0, True), err
    content = held_in(Path("report.html"))
    assert content["study"] is None
    assert {chart["of"] for chart in content["charts"]} == {"addition"}
    code, out, err = report(*paths, "--study")
    assert (code, "4 decoders to watch, 6 recorded runs; open it" in out) == (0, True), err
    content = held_in(Path("report.html"))
    assert len(content["study"]["runs"]) == 6
    assert {chart["of"] for chart in content["charts"]} == {"addition", "addition, runs"}


def test_without_runs_the_page_shows_recorded_results(report: Command, tmp_path: Path) -> None:
    code, out, err = report("--results", str(results(tmp_path / "results")))
    assert (code, "6 recorded runs; open it" in out) == (0, True), err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--out", "page.txt"), "must end in .html"),
        (("nowhere.npz",), "is not a file"),
        (("nowhere",), "nowhere: there is no such run or file; give"),
        (("--results", "nowhere"), "no index.jsonl"),
        (("-n", "0"), "-n is 0"),
        (("x.npz", "x.npz"), "more than once"),
        ((), "nothing to report on; give a model, a run or a trace, or --study"),
    ],
)
def test_mistakes_are_one_sentence(report: Command, words: tuple[str, ...], told: str) -> None:
    code, _, err = report(*words)
    assert (code, err.count("\n")) == (2, 1)
    assert told in err
    assert not Path("report.html").exists()


def test_a_damaged_or_foreign_trace_is_one_sentence(report: Command, tmp_path: Path, traces: list[Trace]) -> None:
    (path,) = saved(tmp_path, traces[:1])
    with Path(path).open("r+b") as file:
        file.truncate(200)
    assert "hashes differ" in report(path)[2]
    stranger = replace(traces[0], about={"task": "chess", "config": {}})
    save_trace(tmp_path / "stranger.npz", stranger)
    assert "chess" in report(str(tmp_path / "stranger.npz"))[2]
    save_trace(tmp_path / "nameless.npz", replace(traces[0], about={}))
    assert "does not name its task" in report(str(tmp_path / "nameless.npz"))[2]
    other = replace(traces[0], about={**traces[0].about, "config": {"digits": 9}})
    save_trace(tmp_path / "other.npz", other)
    code, _, err = report(str(tmp_path / "other.npz"))
    assert (code, err.count("\n")) == (2, 1)
    save_trace(tmp_path / "cells.npz", replace(traces[0], cell_NT=traces[0].cell_NT + np.int16(99)))
    assert "events outside the answer" in report(str(tmp_path / "cells.npz"))[2]
    save_trace(tmp_path / "tokens.npz", replace(traces[0], token_NT=traces[0].token_NT + np.uint8(99)))
    assert "tokens outside the task's vocabulary" in report(str(tmp_path / "tokens.npz"))[2]


def test_damaged_records_are_refused_before_anything_is_decoded(report: Command, trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    with (run / "log.jsonl").open("a") as file:
        file.write('{"step": ')
    code, _, err = report(str(run), "-n", "3")
    assert (code, err.count("\n"), "not valid JSON" in err) == (2, 1, True)


def test_a_folder_that_is_no_run_is_one_sentence(report: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = report(str(tmp_path / "empty"))
    assert (code, err.count("\n"), "not a run directory" in err) == (2, 1, True)
    lines(tmp_path / "odd" / "log.jsonl", [])
    (tmp_path / "odd" / "recipe.json").write_text('{"fields": 3}')
    with pytest.raises(HardtailError, match=r"recipe\.json: fields: expected `object`"):
        Run.of_folder(tmp_path / "odd")


def test_a_runs_task_has_the_name_that_it_is_registered_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its class is called."""
    monkeypatch.setitem(TASKS._known, "mark_up", "tests.report_toys:Markup")
    monkeypatch.setattr(Markup, "name", "mark_up")
    recipe = recipe_named("addition-puma-smoke").as_json()
    recipe["fields"]["task"] = describe(Markup())
    lines(tmp_path / "run" / "log.jsonl", [])
    (tmp_path / "run" / "recipe.json").write_text(json.dumps(recipe))
    assert Run.of_folder(tmp_path / "run").task == "mark_up"


@pytest.mark.parametrize(
    "words",
    [
        "report m.npz --out",
        "compare m.npz n.npz --latex",
        "demo --out",
        "eval zoo:addition-puma --out",
        "diagnose zoo:addition-puma --out",
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    words: str, hardtail_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def closed(dir: Path) -> NoReturn:
        assert dir == tmp_path
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hardtail.cli.common.TemporaryFile", closed)
    code, out, err = hardtail_command(*words.split(), "new/place.jsonl")
    assert (code, out) == (2, "")
    assert err == "hardtail: new/place.jsonl cannot be written: Permission denied; give another place\n"
    assert not list(tmp_path.iterdir())


def test_a_page_of_something_else_is_not_replaced(report: Command, tmp_path: Path) -> None:
    (mine := tmp_path / "thesis.html").write_text("<p>mine</p>")
    assert report("zoo:addition-random", "--out", str(mine), "-n", "2")[0] == 2
    assert mine.read_text() == "<p>mine</p>"
