"""`field=value` words as fields of a task."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from hardtail.errors import HardtailError
from hardtail.tasks.base import Task


def read_fields(kind: type[Task], given: Sequence[str]) -> dict[str, Any]:
    """The values of `given` in the types that the task's fields have."""
    hints = get_type_hints(kind)
    known = [item.name for item in fields(kind)]
    values: dict[str, Any] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            raise HardtailError(
                f"{kind.name}: {word!r} sets no field; write FIELD=VALUE with one of {', '.join(known)}"
            )
        values[name] = _convert(kind, name, value, hints[name])
    return values


def _convert(kind: type[Task], name: str, value: str, hint: Any) -> Any:
    if hint is bool:
        if value.lower() not in ("true", "false"):
            raise HardtailError(f"{kind.name}: {name} is {value!r}; it is true or false")
        return value.lower() == "true"
    if hint in (int, float):
        try:
            return hint(value)
        except ValueError:
            raise HardtailError(f"{kind.name}: {name} is {value!r}; it takes a number") from None
    if members := [member for member in get_args(hint) if isinstance(member, type)]:  # tuple[int, ...]
        return tuple(_convert(kind, name, part, members[0]) for part in value.split(","))
    return value
