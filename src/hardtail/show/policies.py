"""The decoding orders in a terminal, each with a sentence."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from inspect import cleandoc, getsource
from itertools import pairwise
from textwrap import dedent, fill

from hardtail.core.errors import HardtailError
from hardtail.core.fields import accepted, hints_of
from hardtail.core.registry import POLICIES, TASKS
from hardtail.core.tables import Table
from hardtail.policies.base import Policy
from hardtail.policies.named import name_of, policy_named


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
    return [
        Table("policies: what is committed first", ("name", "what it does"), tuple(rows)),
        Table(
            "logical orders of the tasks, which are policies too", ("name", "task", "what it does"), tuple(_orders())
        ),
    ]


def _orders() -> Iterator[tuple[str, str, str]]:
    """Every logical order, its task, and what it does."""
    for name in TASKS.names():
        try:
            task = TASKS.load(name)
        except HardtailError:
            continue  # `hardtail tasks` says why
        yield from ((order, task.name, task.words.orders.get(order, "")) for order in task.order_names)


def policy_card(name: str, width: int) -> tuple[str, list[Table]]:
    """What a policy does, in full and in lines of this width, and a table of its fields if it has any."""
    orders = {order: (task, words) for order, task, words in _orders()}
    if name in orders:
        task, words = orders[name]
        return fill(": ".join(filter(None, (name, words))) + f"; a logical order of {task}", width), []
    kind = type(policy_named(name, tuple(orders)))
    hints, meanings = hints_of(kind, include_extras=True), _meanings(kind)
    rows = []
    for field in fields(kind):
        inner = "policies, joined by /, their" if isinstance(field.default, tuple) else "a policy, its"
        known = accepted(hints[field.name]) if field.name in hints else "set in Python"
        values = f"{inner} fields by +" if field.name in kind.inner else known
        rows.append((field.name, _default(field.default), values, meanings.get(field.name, "")))
    columns = ("field", "default", "accepts", "meaning")[: 4 if any(row[3] for row in rows) else 3]
    table = Table("", columns, tuple(row[: len(columns)] for row in rows))
    return _filled(f"{name}: {cleandoc(kind.__doc__ or '')}", width), [table] if rows else []


def _filled(text: str, width: int) -> str:
    """A docstring in lines of this width: paragraphs, and lists of a word and what it means."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line or not lines or not lines[-1] or re.match(r"\S+  +\S", line):
            lines.append(line)
        else:
            lines[-1] += f" {line.strip()}"
    return "\n".join(fill(line, width, subsequent_indent="  " if "  " in line else "") for line in lines)


def _meanings(kind: type) -> dict[str, str]:
    """The sentences below the fields of a class and of those that it extends."""
    found: dict[str, str] = {}
    for own in reversed(kind.__mro__[: kind.__mro__.index(Policy)]):
        try:
            body = ast.parse(dedent(getsource(own))).body[0]
        except OSError:  # a class without a file, as in a notebook
            continue
        assert isinstance(body, ast.ClassDef)
        for item, below in pairwise(body.body):
            match item, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found[name] = " ".join(words.split())
    return found


def _default(value: object) -> str:
    """A field's default as a user would write it: a policy by its name, several joined by slashes."""
    if isinstance(value, tuple):
        return "/".join(map(_default, value))
    if value is None:
        return "none"
    return name_of(value) if isinstance(value, Policy) else str(value)


def _sentence(kind: type) -> str:
    """The first sentence of a class's docstring in one line, without references in brackets."""
    text = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    text = re.sub(r" \((?:[^()]* et al\. \d+|docs/[^()]*)\)", "", text)
    return re.split(r"(?<!et al)\. ", text, maxsplit=1)[0].rstrip(".") + "."
