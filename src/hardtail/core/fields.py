"""The fields of a configuration (a task, a scheme, a policy): `field=value` words, and whether the values fit."""

from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from hardtail.core.errors import HardtailError

T = TypeVar("T")
LARGE = 1 << 62
"""Whole numbers end here: a tensor holds no more, and sums of two must fit."""


def configured(kind: type[T], given: Sequence[str], name: str) -> T:
    """An instance of the dataclass `kind` with the fields that the words `given` set; errors start with `name`."""
    values = read_fields(kind, given, name)
    items = fields(kind)  # type: ignore[arg-type]
    needed = [item.name for item in items if item.default is MISSING and item.default_factory is MISSING]
    if missing := [field for field in needed if field not in values]:
        raise HardtailError(f"{name}: {missing[0]} has no default; write '{name},{missing[0]}=VALUE'")
    return kind(**values)


def read_fields(kind: type[Any], given: Sequence[str], name: str) -> dict[str, Any]:
    """The values of `given` in the types that the fields of the dataclass `kind` have; errors start with `name`."""
    hints = get_type_hints(kind)
    known = [item.name for item in fields(kind)]
    values: dict[str, Any] = {}
    for word in given:
        field, equals, value = word.partition("=")
        if not equals or field not in known:
            accepted = f"write FIELD=VALUE with one of {', '.join(known)}" if known else "there are none to set"
            raise HardtailError(f"{name}: {word!r} sets no field; {accepted}")
        if field in values:
            raise HardtailError(f"{name}: {field} is given twice; give it once")
        values[field] = _convert(f"{name}: {field}", value, hints[field])
    return values


def check_fields(config: Any, name: str, wide: Sequence[str] = ()) -> None:
    """Refuse a field of another type than it declares, or none of its options; errors start with `name`.

    Whole numbers of the fields `wide` may be of any size.
    """
    try:
        hints = get_type_hints(type(config))
    except NameError:  # a name that only a type checker imports: nothing is known of these fields
        return
    for item in fields(config):
        value, hint = getattr(config, item.name), hints[item.name]
        if get_origin(hint) is Literal and value not in get_args(hint):
            options = ", ".join(map(repr, get_args(hint)))
            raise HardtailError(f"{name}: {item.name} is {value!r}; it is one of {options}")
        if hint in (int, float, bool, str) and not isinstance(value, (int, float) if hint is float else hint):
            raise HardtailError(f"{name}: {item.name} is {value!r}; it takes a value of type {hint.__name__}")
        if hint is int and item.name not in wide and not -LARGE < value < LARGE:
            raise HardtailError(f"{name}: {item.name} is {value}; a whole number here is below 2^62")


def _convert(what: str, value: str, hint: Any) -> Any:
    if get_origin(hint) is UnionType and NoneType in get_args(hint):  # float | None
        if value.lower() == "none":
            return None
        hint = next(member for member in get_args(hint) if member is not NoneType)
    if is_dataclass(hint):
        raise HardtailError(f"{what} is a configuration with fields of its own; one word cannot set it")
    if hint is bool:
        if value.lower() not in ("true", "false"):
            raise HardtailError(f"{what} is {value!r}; it is true or false")
        return value.lower() == "true"
    if hint in (int, float):
        try:
            return hint(value)
        except ValueError:
            raise HardtailError(f"{what} is {value!r}; it takes a number") from None
    if members := [member for member in get_args(hint) if isinstance(member, type)]:  # tuple[int, ...]
        return tuple(_convert(what, part, members[0]) for part in value.split(","))
    return value
