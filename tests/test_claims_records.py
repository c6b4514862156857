"""Claims read what the study writes: names of runs, orders and strata, and the records of real runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import hardtail
from hardtail.core.records import as_json
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import chosen_policies
from hardtail.measuring.evaluate import evaluate_all, keep, records_of
from hardtail.measuring.explain import diagnosed, explain_model
from hardtail.measuring.subject import load_subject
from hardtail.study.claims import Results, Verdict, all_claims
from hardtail.study.claims.combined import Pooled, Weighted
from hardtail.study.claims.evidence import GATES, Gate
from hardtail.study.claims.facts import Unseen
from hardtail.study.claims.figures import Figure, PerRun, Profiled, Reached, ShareRight
from hardtail.study.grids import GRIDS
from hardtail.study.measure import study_policies
from hardtail.study.recipes import recipe_named
from hardtail.study.runs import diagnosed_strata
from hardtail.study.store import Store
from hardtail.training.run import train

TASKS = {
    "addition": "chain>=4",
    "maze": "natural",
    "listops": "depth=3",
    "countdown": "heldout=1",
    "sudoku": "tier=easy",
}
"""Each task with a stratum that is quickly drawn."""


def _parts(figure: Figure) -> list[Any]:
    return list(figure.parts) if isinstance(figure, Weighted | Pooled) else [figure]


def figures(task: str) -> list[Any]:
    """Every recorded figure of a task that any claim needs."""
    cells = (cell for claim in all_claims().values() for check in claim.checks for cell in check.cells)
    found = dict.fromkeys(part for cell in cells for part in _parts(cell.figure))
    return [figure for figure in found if isinstance(figure, PerRun) and figure.task == task]


@pytest.mark.parametrize("task", TASKS)
def test_the_study_measures_what_claims_need(task: str) -> None:
    """A misspelt order or stratum would be *not measured* for ever."""
    kind = hardtail.task(task)
    revealed = {"one pass, half revealed"} if kind.reveals else set()
    for figure in figures(task):
        if isinstance(figure, ShareRight):
            assert figure.policy in {*study_policies(kind), *revealed}, figure
            assert figure.stratum in kind.strata(), figure
        if isinstance(figure, Profiled):
            assert figure.policy in ("top1", kind.order_names[0]), figure


@pytest.mark.parametrize("task", TASKS)
def test_claims_want_the_strata_that_the_study_diagnoses(task: str) -> None:
    assert list(diagnosed_strata(task)) == [part.stratum for part in diagnosed(hardtail.task(task), (), None)]


def test_the_grids_have_the_runs_that_claims_need() -> None:
    arms = {entry.arm for grid in GRIDS.values() for entry in grid()}
    for task in TASKS:
        for scheme in {figure.scheme for figure in figures(task)}:
            assert {f"{task}-{scheme}", f"{task}-{scheme}-tf32"} & arms
    for scheme in {figure.scheme for figure in figures("addition")}:
        assert f"addition-{scheme}-paper" in arms


@pytest.mark.parametrize("task", TASKS)
def test_records_of_a_real_run_are_found_and_two_steps_bear_nothing_out(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_named(f"{task}-puma-smoke")
    watch = replace(recipe.watch, gen_every=2 if task == "addition" else 0, decoded=2, probe_size=5)
    folder, decoding = tmp_path / "run", Decoding()
    train(replace(recipe, steps=2, train_size=64, watch=watch), folder, device="cpu")
    subject = load_subject(str(folder), kind="last")
    needed = dict.fromkeys(figure.policy for figure in figures(task) if isinstance(figure, ShareRight))
    policies = chosen_policies(subject.task, [name for name in needed if name in study_policies(subject.task)])
    found = evaluate_all(subject, policies, [TASKS[task]], 1, decoding, data_seed=subject.seed)
    keep(folder / "evaluations.jsonl", records_of(list(found)))
    diagnoses = explain_model(subject, (), [TASKS[task]], 1, decoding)
    # One stratum, which is quickly drawn, stands for all that a run of the study is diagnosed on.
    keep(
        folder / "diagnoses.jsonl",
        [structs.replace(item, strata=diagnosed_strata(task)) for item in diagnoses],
    )
    store = Store(tmp_path / "results")
    store.add(f"{task}-puma-s42", f"{task}-puma", folder)
    results = Results(store, checkpoint="last")

    about_runs = [claim for claim in all_claims().values() if not claim.id.startswith("data.")]
    assert {claim.judge(results).verdict for claim in about_runs} <= {Verdict.UNMEASURED, Verdict.NOT}
    monkeypatch.setitem(GATES, task, Gate(0.0, TASKS[task]))
    by_policy = {diagnosis.policy: as_json(diagnosis) for diagnosis in diagnoses}
    seen = set()
    for figure in figures(task):
        if isinstance(figure, Profiled):
            readings = (figure, *figure.beside())
            for path in (path for held in readings for path in (held.path, *held.of, *held.more, held.cases)):
                inner: Any = by_policy[figure.policy]
                for step in filter(None, path.split(".")):
                    assert step in inner, f"{path}: a diagnosis has no {step!r}"
                    inner = inner[step]
            assert figure.scheme != "puma" or figure.diagnosed(results) == {42}, figure
        elif isinstance(figure, Unseen):
            assert not figure.samples(results)  # it needs a run of random masking beside it
        elif figure.scheme == "puma" and (isinstance(figure, Reached) or figure.stratum == TASKS[task]):
            assert figure.samples(results), figure
        seen.add(type(figure))
    assert Profiled in seen
