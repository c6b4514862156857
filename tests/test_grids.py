"""Which runs the grids are made of."""

from dataclasses import replace

import pytest

from hardtail import HardtailError
from hardtail.study.grids import GRIDS, entries_named, grid_named


def test_names_are_unique_over_all_grids() -> None:
    names = [entry.name for grid in GRIDS for entry in grid_named(grid)]
    assert len(names) == len(set(names))
    assert [entry.name for entry in entries_named(names)] == names
    with pytest.raises(HardtailError, match="the grids are"):
        grid_named("adition")


def test_grids_and_runs_are_named_in_any_mixture() -> None:
    found = [item.name for item in entries_named(["addition-puma-tf32-s43", "addition", "addition-puma-tf32-s43"])]
    assert found[0] == "addition-puma-tf32-s43"
    assert sorted(found) == sorted(item.name for item in grid_named("addition"))
    with pytest.raises(HardtailError, match="no grid or run 'addition-pum'"):
        entries_named(["addition", "addition-pum"])


def test_a_grid_brings_one_seed_of_everything_first() -> None:
    for name in GRIDS:
        entries = grid_named(name)
        arms = len({entry.arm for entry in entries})
        assert len({entry.arm for entry in entries[:arms]}) == arms
        assert len({entry.recipe.seed for entry in entries[:arms]}) == 1


def test_only_an_arm_that_has_begun_keeps_its_stage_law() -> None:
    """Recorded recipes hold addition's (`test_recorded_runs_are_of_these_recipes`); the others follow the text."""
    names = [f"{task}-puma-paper-s42" for task in ("addition", "maze", "listops", "countdown", "sudoku")]
    laws = [entry.recipe.scheme.law for entry in entries_named(names)]  # type: ignore[attr-defined]
    assert laws == ["around", *["centred"] * 4]


def test_arms_differ_in_what_they_say() -> None:
    """No two arms of the study are the same recipe under two names."""
    recipes: dict[str, str] = {}
    for name in GRIDS:
        for item in grid_named(name):
            key = repr(replace(item.recipe, name=""))
            assert recipes.setdefault(key, item.name) == item.name
    assert entries_named(["addition-papl5-tf32-s42"])[0].recipe.scheme.alpha == 5.0  # type: ignore[attr-defined]
    assert entries_named(["addition-puma-no-threshold-s42"])[0].recipe.scheme.threshold is None  # type: ignore[attr-defined]
    carry, modulo = (entries_named([f"addition-puma-paper{end}-s42"])[0].recipe for end in ("", "-modulo"))
    assert replace(modulo, task=carry.task, precision=carry.precision, name=carry.name) == carry
    assert carry.task.sum == "full"  # type: ignore[attr-defined]
    assert modulo.task.sum == "modulo"  # type: ignore[attr-defined]
    assert entries_named(["addition-papl5-paper-s42"])[0].recipe.scheme.masking.at_least_one is False  # type: ignore[attr-defined]
