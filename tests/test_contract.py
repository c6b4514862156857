"""Every registered task keeps the contract in every preset; a plug-in is tested by being registered."""

from typing import Any, ClassVar

import numpy as np
import pytest
from rich.text import Text

import hardtail
from hardtail.core.types import Trace
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.parts import Look, Roles
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
    with pytest.raises(hardtail.HardtailError, match=f"give one of {next(iter(hardtail.TASKS.load(name).presets))}"):
        hardtail.task(name, "draft")
    with pytest.raises(hardtail.HardtailError, match="no field"):
        hardtail.task(name, flavour="mild")


class LeavesOut(Addition):
    def drawing(self, one: hardtail.Instances, look: Look) -> Text:
        return Text(look(0)[0])


class Nameless(Addition):
    def roles(self, instances: hardtail.Instances) -> Roles:
        return Roles((), np.zeros(instances.maskable_NA.shape, dtype=np.uint8))


class Unprofiled(Addition):
    def profile(self, trace: Trace) -> Any:
        return None


class Homeless(Addition):
    name: ClassVar[str] = "homeless"


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (LeavesOut, "leaves out a cell"),
        (Nameless, "a role without a name"),
        (Unprofiled, "a type without a profile"),
        (Homeless, "not registered by the task's name"),
    ],
)
def test_broken_optional_parts_are_found(kind: type[Addition], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_task(kind(digits=4), n=9)
