"""Policies by name, as the command line writes them: `top1`, `block,size=4`, `lsb`, `my_package.module:MyPolicy`."""

from collections.abc import Sequence
from difflib import get_close_matches

from hardtail.core.errors import HardtailError
from hardtail.core.fields import configured
from hardtail.core.registry import POLICIES
from hardtail.policies.base import Policy
from hardtail.policies.orders import Logical


def policy_named(text: str, order_names: Sequence[str] = ()) -> Policy:
    """The policy that `text` names: a registered one, `package.module:Class`, or one of the task's orders.

    Fields follow after commas: `threshold,p=0.8`.
    """
    name, *words = (part.strip() for part in text.split(","))
    if name in order_names and name not in POLICIES.names():
        if words:
            raise HardtailError(f"{text!r}: the logical order {name!r} has no fields; write {name!r} alone")
        return Logical(name)
    if ":" not in name and name not in POLICIES.names():
        raise HardtailError(_unknown(name, order_names))
    return configured(POLICIES.load(name), words, name)


def _unknown(name: str, order_names: Sequence[str]) -> str:
    known = [*POLICIES.names(), *order_names]
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? Known: " if close else "give one of "
    return f"there is no policy {name!r}; {hint}{', '.join(known)}, or package.module:Class"
