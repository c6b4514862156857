"""The cost of a grid before it is paid for."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hardtail.core.errors import HardtailError
from hardtail.core.files import save_instances
from hardtail.study.cost import COUNTED, _counted_decode, _Known, grid_cost, makespan
from hardtail.study.grids import Entry, entries_named
from hardtail.study.measure import study_policies
from hardtail.study.store import Store
from hardtail.study.workplaces import FolderRuns
from hardtail.tasks import datasets as data
from hardtail.training.estimate import estimate
from tests.conftest import Command

RECORDED = Store(Path(__file__).parents[1] / "results")


def test_each_worker_takes_the_next_run_when_it_is_free() -> None:
    assert makespan([3.0, 2.0, 2.0, 1.0], 1) == 8.0
    assert makespan([3.0, 2.0, 2.0, 1.0], 2) == 4.0  # 3 + 1 next to 2 + 2
    assert makespan([3.0, 2.0, 2.0, 1.0], 100) == 3.0
    assert makespan([], 2) == 0.0
    with pytest.raises(HardtailError, match="the number of GPUs is 0"):
        makespan([1.0], 0)


def test_time_comes_from_the_nearest_recorded_run(tmp_path: Path) -> None:
    walls = {run.name: run.entry for run in RECORDED.runs()}
    (known,) = entries_named(["addition-papl-tf32-s43"])
    other_arm = Entry("mine", replace(known.recipe, name="mine", steps=100))
    wide = Entry("wide", replace(known.recipe, sizes=replace(known.recipe.sizes, width=256)))
    found = {run.entry.arm: run for run in grid_cost([known, other_arm, wide], tmp_path, RECORDED, 500).runs}
    same = walls["addition-papl-tf32-s42"]
    assert same.wall is not None
    assert found[known.arm].source == same.name
    assert found[known.arm].training == pytest.approx(same.wall / same.steps * known.recipe.steps)
    like = walls[found["mine"].source]
    assert (like.task, like.wall is not None, "papl" in like.arm) == ("addition", True, True)
    assert found["mine"].training == pytest.approx((like.wall or 0) / like.steps * 100)
    assert found["wide"].source == COUNTED
    assert found["wide"].training == pytest.approx(estimate(wide.recipe).gpu_seconds)
    assert found["wide"].measuring == found["mine"].measuring > 0


def test_of_several_recorded_runs_the_fastest_counts(tmp_path: Path) -> None:
    (known,) = entries_named(["addition-random-tf32-s42"])
    entry = Entry(known.arm, replace(known.recipe, seed=999))  # which nobody records
    walls = {run.name: run.entry.wall for run in RECORDED.runs() if run.entry.arm == entry.arm}
    assert len(walls) > 1
    (found,) = grid_cost([entry], tmp_path, RECORDED, 500).runs
    assert walls[found.source] == min(wall for wall in walls.values() if wall)


def test_what_is_recorded_costs_nothing(tmp_path: Path, hardtail_command: Command) -> None:
    where = ("--runs", str(tmp_path), "--results", str(RECORDED.folder))
    _, out, _ = hardtail_command("study", "plan", "addition-papl-tf32-s42", *where)
    assert out == "all 1 runs are recorded; nothing is left to do\n"
    code, out, _ = hardtail_command("study", "plan", "listops", "--gpus", "4", *where)
    assert code == 0
    recorded = sum(entry.name in RECORDED.names() for entry in entries_named(["listops"]))
    assert f"{9 - recorded} runs are left, {recorded} recorded: " in out
    assert "longest run: listops-" in out
    code, _, error = hardtail_command("study", "plan", *where)
    assert (code, "plan needs grids or runs" in error) == (2, True)


@pytest.mark.parametrize(
    ("name", "ledger_only", "decodes"),
    [
        ("sudoku-random-s42", False, 32_000 + 4_800),  # and the diagnosis
        ("sudoku-random-s42", True, 16_000 + 4_800),
        ("countdown-random-s42", False, 17_500 + 3_000),  # with half-revealed answers
    ],
)
def test_measuring_takes_every_decode_of_both_kinds_of_weights(
    name: str, ledger_only: bool, decodes: int, tmp_path: Path
) -> None:
    (entry,) = entries_named([name])
    made = grid_cost([entry], tmp_path / "runs", Store(tmp_path / "results"), 500, ledger_only=ledger_only).runs[0]
    assert made.measuring == pytest.approx(2 * decodes * _counted_decode(entry.recipe))


def test_the_problems_of_a_test_file_are_decoded_in_every_order(tmp_path: Path) -> None:
    (entry,) = entries_named(["addition-random-smoke-s42"])
    task = entry.recipe.task
    built = data.build(task, "test", n=30)
    save_instances(tmp_path / "mine-test.npz", built.instances, built.manifest)
    store = Store(tmp_path / "results")
    with_file, alone = (
        grid_cost([entry], tmp_path / "runs", store, 50, data_file=file).runs[0].measuring
        for file in (tmp_path / "mine.npz", None)
    )
    more = 2 * 30 * len(study_policies(task)) * _counted_decode(entry.recipe)
    assert with_file - alone == pytest.approx(more)


@pytest.mark.parametrize(
    ("device", "wall", "counts"),
    [("NVIDIA H200", 600.0, True), ("CPU x86_64", 600.0, False), ("NVIDIA H200", None, False)],
)
def test_time_on_a_gpu_is_known_from_runs_on_a_gpu(device: str, wall: float | None, counts: bool) -> None:
    (entry,) = entries_named(["maze-puma-s42"])
    ran = SimpleNamespace(arm=entry.arm, device=device, wall=wall, steps=1000)
    run = SimpleNamespace(entry=ran, name="earlier", folder=Path(), task="maze", evaluations=[])
    store: Any = SimpleNamespace(runs=lambda: [run])
    known = _Known(store)
    known.__dict__["_works"] = []  # no recipe is read
    found = known.step_seconds(entry)
    assert found == ((0.6, "earlier") if counts else (estimate(entry.recipe).gpu_seconds / entry.recipe.steps, COUNTED))


@pytest.mark.parametrize(
    ("state", "step", "left"), [("missing", 0, 1.0), ("started", 1000, 0.9), ("trained", 10_000, 0.0)]
)
def test_steps_that_are_saved_are_not_paid_again(
    state: str, step: int, left: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = entries_named(["maze-puma-s42"])
    entry = replace(entry, recipe=replace(entry.recipe, steps=10_000))
    monkeypatch.setattr(FolderRuns, "stages", lambda runs, names: dict.fromkeys(names, (state, step)))
    found = grid_cost([entry], tmp_path / "runs", Store(tmp_path / "results"), 50)
    (run,) = found.runs
    assert run.training == pytest.approx(left * estimate(entry.recipe).gpu_seconds)
    assert found.seconds == run.seconds == run.training + run.measuring
    assert (found.longest, found.recorded) == (run, 0)
