"""The decoding orders in a terminal, each with a sentence."""

import re
from dataclasses import fields

from hardtail.core.errors import HardtailError
from hardtail.core.registry import POLICIES, TASKS
from hardtail.core.tables import Table


def policy_tables() -> list[Table]:
    """All registered policies with their fields, then the tasks' logical orders, which are policies too."""
    rows = []
    for name in POLICIES.names():
        try:
            kind = POLICIES.load(name)
        except HardtailError as error:
            rows.append((name, str(error)))
            continue
        set_as = ", ".join(f"{field.name}={_default(field.default)}" for field in fields(kind))
        rows.append((name, _sentence(kind) + (f" Fields: {set_as}" if set_as else "")))
    orders = []
    for name in TASKS.names():
        try:
            task = TASKS.load(name)
        except HardtailError:
            continue  # `hardtail tasks` says why
        orders += [(order, task.name, task.words.orders.get(order, "")) for order in task.order_names]
    return [
        Table("policies: what is committed first", ("name", "what it does"), tuple(rows)),
        Table("logical orders of the tasks, which are policies too", ("name", "task", "what it does"), tuple(orders)),
    ]


def _default(value: object) -> str:
    """A field's default as a user would write it: a policy by its name, several joined by slashes."""
    if isinstance(value, tuple):
        return "/".join(map(_default, value))
    return next((name for name in POLICIES.names() if POLICIES.load(name) is type(value)), str(value))


def _sentence(kind: type) -> str:
    """The first sentence of a class's docstring in one line, without references in brackets."""
    text = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    text = re.sub(r" \((?:[^()]* et al\. \d+|docs/[^()]*)\)", "", text)
    return re.split(r"(?<!et al)\. ", text, maxsplit=1)[0].rstrip(".") + "."
