"""Configurations as JSON, with the classes they are of.

A class of this package goes by its own name, so that a description outlives a move of its module; any other class by
`package.module:Class`. Descriptions of before that, which have our modules' old paths too, read the same.
"""

from dataclasses import fields, is_dataclass
from typing import Any

OURS = "hardtail."


def described_name(kind: type) -> str:
    """What descriptions call a class."""
    return short_name(f"{kind.__module__}:{kind.__qualname__}")


def short_name(name: str) -> str:
    """A class as descriptions name it today, from how they named it at any time."""
    return name.partition(":")[2] if name.startswith(OURS) else name


def describe(value: Any) -> Any:
    """Frozen dataclasses as `{"class": …, "fields": {…}}`, everything below them likewise."""
    if is_dataclass(value) and not isinstance(value, type):
        inner = {item.name: describe(getattr(value, item.name)) for item in fields(value)}
        return {"class": described_name(type(value)), "fields": inner}
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    return value


def differences(held: Any, wanted: Any, name: str = "") -> list[str]:
    """The dotted names of the fields in which two configurations, as `describe` has them, are not the same."""
    if held == wanted:
        return []
    whole = [name or "everything"]
    if not (isinstance(held, dict) and isinstance(wanted, dict) and _head(held) == _head(wanted)):
        return whole
    theirs, ours = held.get("fields"), wanted.get("fields")
    if not (isinstance(theirs, dict) and isinstance(ours, dict)):
        return whole
    return [
        found
        for field in {**ours, **theirs}
        for found in differences(theirs.get(field, ...), ours.get(field, ...), f"{name}.{field}".lstrip("."))
    ]


def _head(described: dict[str, Any]) -> dict[str, Any]:
    """Everything but the fields: the class, by its name of today."""
    head = {key: value for key, value in described.items() if key != "fields"}
    if isinstance(name := head.get("class"), str):
        head["class"] = short_name(name)
    return head
