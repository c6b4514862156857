"""Policies by name, as the command line writes them: `top1`, `block,size=4`, `lsb`, `my_package.module:MyPolicy`."""

from collections.abc import Sequence
from dataclasses import fields, replace
from difflib import get_close_matches

from hardtail.core.errors import HardtailError
from hardtail.core.fields import configured
from hardtail.core.registry import POLICIES, TASKS
from hardtail.policies.base import Policy
from hardtail.policies.orders import Logical

Inner = Policy | tuple[Policy, ...]


def policy_named(text: str, order_names: Sequence[str] = ()) -> Policy:
    """The policy that `text` names: a registered one, `package.module:Class`, or one of the task's orders.

    Fields follow after commas: `threshold,p=0.8`. A field that holds policies separates them by slashes and their own
    fields by plus signs: `ladder,rungs=threshold+p=0.8/top1`.
    """
    name, *words = (part.strip() for part in text.split(","))
    if name in order_names and name not in POLICIES.names():
        if words:
            raise HardtailError(f"{text!r}: the logical order {name!r} has no fields; write {name!r} alone")
        return Logical(name)
    if ":" not in name and name not in POLICIES.names():
        raise HardtailError(_unknown(name, order_names))
    kind = POLICIES.load(name)
    held = [word for word in words if word.partition("=")[0] in kind.inner]
    made = configured(kind, [word for word in words if word not in held], name)
    return replace(made, **_inner(made, held, name, order_names)) if held else made


def name_of(policy: Policy) -> str:
    """The text that `policy_named` reads as this policy. A class that is not registered goes by its own name. Fields
    that cannot be written, such as a head, are left out, and policies inside an inner policy are only hinted at."""
    if isinstance(policy, Logical):
        return policy.order
    kind = f"{type(policy).__module__}:{type(policy).__qualname__}"
    name = next((name for name, path in POLICIES.paths().items() if path == kind), type(policy).__name__)
    changed = {item.name: value for item in fields(policy) if (value := getattr(policy, item.name)) != item.default}
    written = {field: text for field, value in changed.items() if (text := _written(value)) is not None}
    return ",".join([name, *(f"{field}={text}" for field, text in written.items())])


def _written(value: object) -> str | None:
    """A field's value as `policy_named` reads it; None if it has no such form."""
    if isinstance(value, Policy):
        name = name_of(value)
        return f"{name.partition(',')[0]}+…" if "+" in name or "/" in name else name.replace(",", "+")
    if isinstance(value, tuple) and not any(isinstance(part, tuple) for part in value):
        parts = [_written(part) for part in value]
        return None if None in parts else "/".join(map(str, parts))
    return str(value) if isinstance(value, str | int | float | None) else None


def _inner(made: Policy, words: Sequence[str], name: str, order_names: Sequence[str]) -> dict[str, Inner]:
    """The policies that fields of `made` are set to: one, or several where its default is a tuple."""
    found: dict[str, Inner] = {}
    for word in words:
        field, _, value = word.partition("=")
        policies = tuple(policy_named(part.replace("+", ","), order_names) for part in value.split("/"))
        several = isinstance(getattr(made, field), tuple)
        if field in found or not (several or len(policies) == 1):
            raise HardtailError(f"{name}: {word!r} is one policy too many; give {field} once, with one policy")
        found[field] = policies if several else policies[0]
    return found


def _unknown(name: str, order_names: Sequence[str]) -> str:
    known = [*POLICIES.names(), *order_names]
    if (owner := next((task for task in TASKS.builtin if name in TASKS.load(task).order_names), None)) is not None:
        return f"{name!r} is a logical order of {owner} alone; give one of {', '.join(known)}"
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? Known: " if close else "give one of "
    return f"there is no policy {name!r}; {hint}{', '.join(known)}, or package.module:Class"
