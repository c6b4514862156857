"""Configurations as JSON, with the classes they are of; and the hash that names them."""

import hashlib
import json
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


def content_name(value: Any) -> str:
    """Twelve hex digits that name a configuration by its content."""
    return hashlib.sha256(json.dumps(describe(value), sort_keys=True).encode()).hexdigest()[:12]
