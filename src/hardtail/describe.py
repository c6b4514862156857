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
