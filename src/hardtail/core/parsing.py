"""JSON and TOML from a file become typed records here, or a HardtailError with the file, the line and the field."""

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from hardtail.core.errors import HardtailError

T = TypeVar("T")
_MANY_DIGITS = re.compile(rb"[0-9]{19}")
DEEPEST = 64
"""The most levels of lists and objects in each other; what we write has at most ten."""
TOO_DEEP = f"it is nested more than {DEEPEST} levels deep"


def decoded(raw: bytes | str, where: str) -> Any:
    """The value of some JSON; errors start with `where` it is from."""
    return _decoded(msgspec.json.decode, raw, where)


def decoded_with_infinity(raw: bytes | str, where: str) -> Any:
    """The same for JSON in which numbers may be `NaN` and `Infinity`, as Python writes them."""
    return _decoded(json.loads, raw, where)


def _decoded(decode: Callable[[bytes | str], Any], raw: bytes | str, where: str) -> Any:
    try:
        value = decode(raw)
    except (ValueError, RecursionError) as error:
        raise HardtailError(f"{where}: this is not valid JSON ({error})") from error
    if fault := _fault(value, raw):
        raise HardtailError(f"{where}: {fault}; the record is damaged")
    return value


def decoded_toml(raw: bytes, where: str) -> dict[str, Any]:
    """The value of some TOML; errors start with `where` it is from."""
    try:
        value = tomllib.loads(raw.decode())
        fault = _fault_inside(value)
    except RecursionError:
        fault = TOO_DEEP
    except ValueError as error:
        raise HardtailError(f"{where}: this is not valid TOML ({error})") from error
    if fault:
        raise HardtailError(f"{where}: {fault}")
    return value


def converted(held: Any, kind: type[T], where: str) -> T:
    """Decoded JSON as a record; errors start with `where` it is from."""
    try:
        return msgspec.convert(held, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise damaged(error, where) from error


def damaged(error: Exception, where: str) -> HardtailError:
    """msgspec's "Expected `int`, got `str` - at `$.n`" as "n: expected `int`, got `str`"."""
    message, _, at = str(error).partition(" - at ")
    field = re.sub(r"^[`$.]+|`$", "", at)
    return HardtailError(
        f"{where}: {field + ': ' if field else ''}{message[:1].lower()}{message[1:]}; the record is damaged"
    )


def _fault(value: Any, raw: bytes | str) -> str | None:
    """What is wrong with decoded JSON, if anything. Its depth is limited, so that code which walks through it does not
    run out of stack; whole numbers must fit in 64 bits."""
    text = raw.encode() if isinstance(raw, str) else raw
    if text.count(b"[") + text.count(b"{") <= DEEPEST and not _MANY_DIGITS.search(text):
        return None
    return _fault_inside(value)


def _fault_inside(value: Any) -> str | None:
    level = [value]
    for _ in range(DEEPEST + 1):
        if any(type(item) is int and not -(1 << 63) <= item < 1 << 64 for item in level):
            return "a whole number has more than 64 bits"
        inside = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [child for children in inside for child in children]
        if not level:
            return None
    return TOO_DEEP
