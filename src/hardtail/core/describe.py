"""Configurations as JSON, with their classes.

A class of this package goes by its own name, so that a description stays valid when its module moves; any other class
by `package.module:Class`. A task is `{"name": …, "fields": {…}}` (`tasks.named`). Older descriptions, which name tasks
by their classes and our classes by old paths, compare as equal.
"""

from dataclasses import fields, is_dataclass
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.registry import TASKS


def described_name(kind: type) -> str:
    """What descriptions call a class."""
    return short_name(f"{kind.__module__}:{kind.__qualname__}")


def short_name(name: str) -> str:
    """Today's name of a class, from its name in a description of any age."""
    return name.partition(":")[2] if name.startswith("hardtail.") else name


def describe(value: Any) -> Any:
    """Dataclasses as `{"class": …, "fields": {…}}`, at any depth."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"class": described_name(type(value)), "fields": described_fields(value)}
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    return value


def described_fields(config: Any) -> dict[str, Any]:
    """The fields of a dataclass, each as `describe` writes it."""
    return {item.name: describe(getattr(config, item.name)) for item in fields(config)}


def registered_name(described: dict[str, Any]) -> str | None:
    """The name of the described task if its class is registered, else the class as `describe` names it."""
    if isinstance(name := described.get("name"), str):
        return name
    if not isinstance(kind := described.get("class"), str):
        return None
    own = short_name(kind)
    return next((name for name, path in TASKS.paths().items() if short_name(path) == own), own)


def differences(held: Any, wanted: Any, name: str = "") -> list[str]:
    """The dotted names of the fields in which two configurations, as `describe` writes them, differ."""
    if held == wanted:
        return []
    if not (isinstance(held, dict) and isinstance(wanted, dict)):
        return [name or "everything"]
    (mine, yours), theirs, ours = map(_head, (held, wanted)), held.get("fields"), wanted.get("fields")
    if mine != yours or not (isinstance(theirs, dict) and isinstance(ours, dict)):
        other = [key for key in {**mine, **yours} if mine.get(key, ...) != yours.get(key, ...) and key != "name"]
        return [name] if name else other or ["everything"]
    return [
        found
        for field in {**ours, **theirs}
        for found in differences(theirs.get(field, ...), ours.get(field, ...), f"{name}.{field}".lstrip("."))
    ]


def refuse_other_task(held: Any, wanted: dict[str, Any], file: str, whose: str) -> None:
    """Raise HardtailError unless the data in a file is of the task that a model or a recipe (`whose`) wants."""
    if not (fields := differences(held, wanted)):
        return
    name, other = registered_name(wanted), registered_name(held) if isinstance(held, dict) else None
    if other not in (None, name):
        raise HardtailError(f"{file} holds data of {other}, the {whose} is of {name}; give data of {name}")
    raise HardtailError(
        f"{file} does not hold data of {name} in this {whose}'s configuration: it differs in {', '.join(fields)}"
    )


def _head(described: dict[str, Any]) -> dict[str, Any]:
    """Everything but the fields, the class by today's name."""
    rest = {key: value for key, value in described.items() if key not in ("name", "class", "fields")}
    return rest | {"name": registered_name(described)}
