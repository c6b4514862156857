"""How options look in help: a placeholder, a sentence, and the default, which the sentence may name in brackets."""

import re
import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import partial
from inspect import signature
from types import NoneType, UnionType
from typing import Union, get_args, get_type_hints

from tyro.conf import Positional, arg
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructTypeInfo,
    UnsupportedTypeAnnotationError,
)

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.fields import Bounds

RULES = ConstructorRegistry()
"""Where tyro's own rules would not do: for `X | None` and for the help of a dataclass's fields."""


def refuse_outside(kind: object, given: Mapping[str, object]) -> None:
    """Refuse a number outside the `Bounds` in its option's type; `kind` is the command, or a group of options."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        value = given.get(name)
        if is_dataclass(value):
            refuse_outside(type(value), vars(value))
        for bounds in getattr(hint, "__metadata__", ()):
            if isinstance(bounds, Bounds) and isinstance(value, int | float) and value not in bounds:
                raise HardtailError(f"{flag_of(name, hint)} is {reprlib.repr(value)}; it must be {bounds}")


def unread(command: Callable[..., object], given: Mapping[str, object], read: Collection[str]) -> str | None:
    """The first option, by its parameter, that a user gave although it is not among those that are read."""
    options = (option for option in signature(command).parameters.values() if option.kind is not option.POSITIONAL_ONLY)
    return next((of.name for of in options if of.name not in read and given[of.name] != of.default), None)


def flag_of(name: str, hint: object = None) -> str:
    """An option as people write it: `--data-seed`, `-n`, or the name that it was given instead of its parameter's."""
    given = (getattr(held, "name", None) for held in getattr(hint, "__metadata__", ()))
    said = next(filter(None, given), name)
    return f"-{said}" if len(said) == 1 else f"--{said.replace('_', '-')}"


def option(help: str, metavar: str | None = None, *, name: str | None = None, aliases: Sequence[str] = ()) -> object:
    """Describe an option. The default follows the sentence, unless it is nothing or the sentence names it."""
    return arg(
        name=name,
        metavar=metavar,
        help=help,
        help_behavior_hint=lambda default: "" if _says_nothing(default, help) else f"(default: {default})",
        aliases=list(aliases),
    )


def _says_nothing(default: str, help: str) -> bool:
    return default in ("", "None", "False") or help.endswith("]")


@RULES.struct_rule
def _reflowed(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The rule for dataclasses: tyro alone keeps the line breaks of the docstrings below fields."""
    if not is_dataclass(info.type) or _reflowed in info.markers:  # the mark leads to tyro's own rule
        return None
    spec = ConstructorRegistry.get_struct_spec(replace(info, markers=(*info.markers, _reflowed)))
    if not isinstance(spec, StructConstructorSpec):
        return None
    return replace(
        spec, fields=tuple(replace(field, helptext=partial(_one_line, field.helptext)) for field in spec.fields)
    )


def _one_line(help: str | Callable[[], str | None] | None) -> str | None:
    text = help() if callable(help) else help
    return text and " ".join(text.split())


@RULES.primitive_rule
def _whole(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    """The rule for whole numbers: tyro alone passes on what Python says, and takes other scripts' digits."""
    if info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: _read_whole(words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    )


def _read_whole(word: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]{1,999}", word):
        raise ValueError(f"{quoted(word)} is not a whole number; write one in digits, such as 1000")
    return int(word)


@RULES.primitive_rule
def _several(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[tuple[str, ...]] | None:
    """The rule for options that take several words: tyro alone reads `--policies $UNSET` as the default."""
    if info.type_origin is not tuple or get_args(info.type) != (str, ...) or Positional in info.markers:
        return None
    return PrimitiveConstructorSpec(
        nargs="*",
        metavar="STR [STR ...]",
        instance_from_str=_read_several,
        is_instance=lambda value: isinstance(value, tuple) and all(isinstance(word, str) for word in value),
        str_from_instance=list,
    )


def _read_several(words: Sequence[str]) -> tuple[str, ...]:
    if not words:
        raise ValueError("there is no value; give at least one, or leave the option out")
    return tuple(words)


@RULES.primitive_rule
def _optional(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[object] | None:
    """The rule for `X | None`, where X is written as one word: tyro alone shows `int | None` as `{None}|INT`."""
    kinds = [kind for kind in get_args(info.type) if kind is not NoneType]
    if info.type_origin not in (Union, UnionType) or len(kinds) != 1:
        return None
    inner = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kinds[0], info.markers))
    if isinstance(inner, UnsupportedTypeAnnotationError) or inner.nargs != 1:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=inner.metavar,
        instance_from_str=lambda words: None if words == ["None"] else inner.instance_from_str(words),
        is_instance=lambda value: value is None or inner.is_instance(value),
        str_from_instance=lambda value: ["None"] if value is None else inner.str_from_instance(value),
        choices=None if inner.choices is None else (*inner.choices, "None"),
    )
