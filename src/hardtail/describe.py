"""Configurations as JSON, with the classes they are of."""

from dataclasses import fields, is_dataclass
from typing import Any


def describe(value: Any) -> Any:
    """Frozen dataclasses as `{"class": …, "fields": {…}}`, everything below them likewise."""
    if is_dataclass(value) and not isinstance(value, type):
        inner = {item.name: describe(getattr(value, item.name)) for item in fields(value)}
        return {"class": f"{type(value).__module__}:{type(value).__qualname__}", "fields": inner}
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    return value


def differences(held: Any, wanted: Any, name: str = "") -> list[str]:
    """The dotted names of the fields in which two configurations, as `describe` has them, are not the same."""
    if held == wanted:
        return []
    whole = [name or "everything"]
    if not (isinstance(held, dict) and isinstance(wanted, dict) and held.get("class") == wanted.get("class")):
        return whole
    theirs, ours = held.get("fields"), wanted.get("fields")
    if not (isinstance(theirs, dict) and isinstance(ours, dict)):
        return whole
    inner = [
        found
        for field in {**ours, **theirs}
        for found in differences(theirs.get(field, ...), ours.get(field, ...), f"{name}.{field}".lstrip("."))
    ]
    return inner or whole
