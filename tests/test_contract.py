"""Every registered task keeps the contract in every preset; a plug-in is tested by being registered."""

import pytest

import hardtail
from hardtail.testing import check_task

READINGS = [(name, preset) for name in hardtail.TASKS.names() for preset in hardtail.TASKS.load(name).presets]


@pytest.mark.parametrize(("name", "preset"), READINGS)
def test_contract(name: str, preset: str) -> None:
    check_task(hardtail.task(name, preset))


@pytest.mark.parametrize("name", hardtail.TASKS.names())
def test_unknown_stratum_names_the_axes(name: str) -> None:
    task = hardtail.task(name)
    with pytest.raises(hardtail.HardtailError, match=task.axes[0]):
        task.sample(1, hardtail.Streams(0).named("x"), "colour=red")


@pytest.mark.parametrize("name", hardtail.TASKS.names())
def test_unknown_preset_and_field_are_refused(name: str) -> None:
    with pytest.raises(hardtail.HardtailError, match="release"):
        hardtail.task(name, "draft")
    with pytest.raises(hardtail.HardtailError, match="no field"):
        hardtail.task(name, flavour="mild")
