"""Tasks that a file names. Only registered classes are loaded, whatever the file says."""

from collections.abc import Mapping
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.registry import TASKS
from hardtail.tasks.base import Task


def task_of_file(name: object, config: object, whose: str) -> Task:
    """The registered task `name` in the configuration that was saved with it."""
    if not isinstance(name, str) or name not in TASKS.names():
        raise HardtailError(f"{whose} is of the task {name!r}; known are {', '.join(TASKS.names())}")
    if not isinstance(config, dict):
        raise HardtailError(f"{whose} does not say how its task {name} is configured")
    try:
        return TASKS.load(name).preset("release", **config)
    except (TypeError, HardtailError) as error:
        raise HardtailError(f"{whose} has a configuration that its task cannot have ({error})") from error


def profile_of_file(name: object, profile: Any) -> Any:
    """A recorded profile of the task `name` with today's names of its keys."""
    if not isinstance(name, str) or name not in TASKS.names():
        return profile
    return _renamed(profile, TASKS.load(name).profile_renamed())


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(inner, names) for key, inner in value.items()}
    return [_renamed(inner, names) for inner in value] if isinstance(value, list) else value
