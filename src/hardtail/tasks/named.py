"""Tasks in files, as `{"name": …, "fields": {…}}`. Only registered classes are loaded, whatever a file names.

The name is the registered one, or `package.module:Class` for a task that is not registered. Older files are read too:
recipes and weights name the class (`{"class": …, "fields": …}`), traces and data sets have `task` and `config`.
"""

import reprlib
from collections.abc import Mapping
from typing import Any

from hardtail.core.describe import described_fields, described_name, registered_name
from hardtail.core.errors import HardtailError, quoted
from hardtail.core.fields import read_fields, spelled
from hardtail.core.registry import TASKS
from hardtail.tasks.base import Task


def task_to_json(task: Task) -> dict[str, Any]:
    """A task as every file holds it."""
    own = task.name in TASKS.names() and TASKS.load(task.name) is type(task)
    return {"name": task.name if own else described_name(type(task)), "fields": described_fields(task)}


def make_task(name: str, preset: str | None = None, **fields: object) -> Task:
    """The task `name`, which may have fields after commas, in one of its readings, with these fields changed."""
    name, *words = spelled(name).split(",")
    kind = TASKS.load(name)
    read = read_fields(kind, words, name)
    if twice := sorted(read.keys() & fields.keys()):
        raise HardtailError(f"{name}: {', '.join(twice)} is set after the name and by an argument; give it once")
    return kind.preset(preset, **read, **fields)


def task_named(text: str) -> Task:
    """The task that a user names, with fields after commas: `addition`, `addition,digits=8`, `my_tasks:Mine,size=4`.

    A class of the user's own is known from then on.
    """
    TASKS.admit(spelled(text).partition(",")[0])
    return make_task(text)


def task_given(task: Task | str) -> Task:
    """The task that a caller gives, by its name or as it is."""
    if isinstance(task, str):
        return task_named(task)
    if not isinstance(task, Task):
        raise HardtailError(f"{task!r} is not a task; give a name, such as 'addition', or a Task, such as Mine(size=4)")
    return task


def task_from_json(said: object) -> Task:
    """The registered task that a file names, with its fields."""
    if not isinstance(said, dict) or not isinstance(said.get("fields", {}), dict):
        raise HardtailError(
            f"its task is {reprlib.repr(said)}; it must be a name and fields, as `hardtail train` writes them"
        )
    name = registered_name(said)
    if (kind := _registered(name)) is None:
        raise HardtailError(
            f"the task {name if name is None else quoted(name)} is not registered here "
            f"(known: {', '.join(TASKS.names())}); name it "
            f"with --task package.module:Class, or register it with an entry point {TASKS.group!r}"
        )
    try:
        return kind.preset(**said.get("fields", {}))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise HardtailError(f"its fields do not fit the task {kind.name} ({error})") from error


def kind_named(name: str) -> type[Task] | None:
    """The registered class whose tasks have this name; also one that was registered by its path."""
    if name in TASKS.names():
        return TASKS.load(name)
    by_path = (TASKS.load(path) for path in TASKS.names() if ":" in path)
    return next((kind for kind in by_path if kind.name == name), None)


def _registered(name: str | None) -> type[Task] | None:
    """The registered class that a file names; the classes of a script have `__main__` as their module."""
    if name is None or name in TASKS.names():
        return None if name is None else TASKS.load(name)
    _, script, own = name.partition("__main__:")
    kinds = map(TASKS.load, TASKS.names())
    return next((kind for kind in kinds if name == described_name(kind) or (script and own == kind.__qualname__)), None)


def task_of(about: Mapping[str, Any], whose: str) -> Task:
    """The task of a trace or a data set, from its manifest; `whose` names the file in errors."""
    if about.get("task") is None:
        raise HardtailError(
            f"{whose} does not name its task; give a file that `hardtail eval --traces` or `data` wrote"
        )
    try:
        return task_from_json(said_task(about))
    except HardtailError as error:
        raise HardtailError(f"{whose} does not name a task that can be used here: {error}") from error


def said_task(about: Mapping[str, Any]) -> object:
    """The task in a manifest, in today's form."""
    task = about.get("task")
    return {"name": task, "fields": about.get("config")} if isinstance(task, str) else task


def profile_of_file(name: object, profile: Any) -> Any:
    """A recorded profile of the task `name` with today's names of its keys."""
    if not isinstance(name, str) or name not in TASKS.names():
        return profile
    return _renamed(profile, TASKS.load(name).profile_renamed)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(inner, names) for key, inner in value.items()}
    return [_renamed(inner, names) for inner in value] if isinstance(value, list) else value
