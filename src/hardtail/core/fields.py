"""The fields of a configuration (a task, a scheme, a policy): `field=value` words, and which values are accepted."""

import math
import operator
import re
import reprlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from hardtail.core.errors import FieldError, HardtailError, quoted

T = TypeVar("T")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,4})?|[-+]?(?:inf|nan)")
"""A number as people write it in ASCII: Python would also accept other scripts' digits, spaces and underscores."""
LARGE = 1 << 62
"""The limit of whole numbers that have no upper bound of their own, so that the sum of two still fits in a tensor."""


@dataclass(frozen=True)
class Bounds:
    """The numbers that a field accepts: `Annotated[float, Bounds(gt=0, le=1)]`."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    """Infinity here means that the number must be finite."""

    def __contains__(self, value: float) -> bool:
        tests = (operator.ge, self.ge), (operator.gt, self.gt), (operator.le, self.le), (operator.lt, self.lt)
        return all(test(value, bound) for test, bound in tests if bound is not None)

    def __str__(self) -> str:
        words = ("at least", self.ge), ("above", self.gt), ("at most", self.le), ("below", self.lt)
        said = [f"{word} {_short(bound)}" for word, bound in words if bound is not None and bound != math.inf]
        return " and ".join([*said, *["finite"] * (self.lt == math.inf)])


AtLeastOne = Annotated[int, Bounds(ge=1)]
Probability = Annotated[float, Bounds(ge=0, le=1)]
NonNegative = Annotated[float, Bounds(ge=0, lt=math.inf)]


class Checked:
    """A dataclass whose fields are checked when it is made."""

    def __post_init__(self) -> None:
        check_fields(self, type(self).__name__)


def spelled(text: str) -> str:
    """A name with fields after commas, as records have it: without blanks around the commas."""
    return ",".join(part.strip() for part in text.split(","))


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
    hints = hints_of(kind)
    known = [item.name for item in fields(kind)]
    values: dict[str, Any] = {}
    for word in given:
        field, equals, value = word.partition("=")
        if not equals or field not in known:
            accepted = f"write FIELD=VALUE with one of {', '.join(known)}" if known else "there are none to set"
            raise HardtailError(f"{name}: {word!r} does not set a field; {accepted}")
        if field in values:
            raise HardtailError(f"{name}: {field} is given twice; give it once")
        if field not in hints:
            raise HardtailError(f"{name}: {field} cannot be written as text; set it in Python")
        values[field] = _convert(f"{name}: {field}", value, hints[field])
    return values


def hints_of(kind: type[Any], include_extras: bool = False) -> dict[str, Any]:
    """The types of the fields, without those whose names only a type checker imports."""
    with suppress(NameError):
        return get_type_hints(kind, include_extras=include_extras)
    found: dict[str, Any] = {}
    for owner in reversed(kind.__mro__):
        for name, annotation in vars(owner).get("__annotations__", {}).items():
            alone = type(kind.__name__, (), {"__annotations__": {name: annotation}, "__module__": owner.__module__})
            found.pop(name, None)
            with suppress(NameError):
                found |= get_type_hints(alone, include_extras=include_extras)
    return found


def check_fields(config: Any, name: str) -> None:
    """Refuse a value of the wrong type, outside its bounds, or not among its options; errors start with `name`."""
    hints = hints_of(type(config), include_extras=True)
    for item in fields(config):
        if (hint := hints.get(item.name)) is None:
            continue
        value = getattr(config, item.name)
        if NoneType in get_args(hint):
            if value is None:
                continue
            hint = _not_none(hint)
        bounds = [extra for extra in get_args(hint) if isinstance(extra, Bounds)]
        hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        refuse = partial(_refuse, name, item.name, value)
        if get_origin(hint) is Literal and value not in get_args(hint):
            refuse(f"it must be one of {', '.join(map(repr, get_args(hint)))}")
        if hint in (int, float, bool, str) and not isinstance(value, (int, float) if hint is float else hint):
            refuse(f"it must be a value of type {hint.__name__}")
        if refused := [bound for bound in bounds if value not in bound]:
            refuse(f"it must be {refused[0]}")
        if hint is int and all(bound.lt is None for bound in bounds) and not -LARGE < value < LARGE:
            refuse("a whole number must be between -2^62 and 2^62")


def _refuse(owner: str, field: str, value: object, accepted: str) -> NoReturn:
    raise FieldError(owner, field, f"is {_given(value)}; {accepted}")


def _given(value: object) -> str:
    """A value as messages repeat it."""
    return quoted(value) if isinstance(value, str) else reprlib.repr(value)


def _short(number: float) -> str:
    """A bound in words: large powers of two as such, other whole numbers in groups of three."""
    power = math.frexp(number)[1] - 1
    if power > 20 and number == 2.0**power:
        return f"2^{power}"
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def accepted(hint: Any) -> str:
    """What a field of this type can be set to, in words."""
    if NoneType in get_args(hint):
        return f"{accepted(_not_none(hint))}, or none"
    if get_origin(hint) is Literal:
        return ", ".join(map(str, get_args(hint)))
    bounds = [str(extra) for extra in get_args(hint) if isinstance(extra, Bounds)]
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return ", ".join([words.get(hint, "set in Python"), *bounds])


def _not_none(hint: Any) -> Any:
    """Return `float` for `float | None`."""
    return next(member for member in get_args(hint) if member is not NoneType)


def _convert(what: str, value: str, hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint):
        if value.lower() == "none":
            return None
        hint = _not_none(hint)
    if is_dataclass(hint):
        raise HardtailError(f"{what} is a configuration with fields of its own; a single value cannot set it")
    if hint is bool:
        if value.lower() not in ("true", "false"):
            raise HardtailError(f"{what} is {value!r}; it must be true or false")
        return value.lower() == "true"
    if hint in (int, float):
        try:
            if not _NUMBER.fullmatch(value):
                raise ValueError
            return hint(value)
        except ValueError:
            raise HardtailError(
                f"{what} is {quoted(value)}; it must be a {'whole ' if hint is int else ''}number"
            ) from None
    if get_origin(hint) is Literal:  # what is none of the options is refused when the object is made
        return next((option for option in get_args(hint) if str(option) == value), value)
    if get_origin(hint) in (tuple, list, Sequence) and isinstance(member := get_args(hint)[0], type):
        return tuple(_convert(what, part, member) for part in value.split(","))
    if hint not in (str, Any):
        raise HardtailError(f"{what} cannot be written as text; set it in Python")
    return value
