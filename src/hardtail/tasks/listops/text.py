"""ListOps expressions as text: reading what people write, and finding the parts of an expression."""

import re

from hardtail.core.errors import HardtailError, quoted
from hardtail.tasks.listops.solver import OPERATORS

_EXAMPLE = "e.g. '[X 3 [N 2 5] 7]'"
_MEANINGS = "X (maximum), N (minimum), D (median) and S (sum modulo 10)"
_NUMBER = re.compile(r"[0-9]{2,}")


def spans(expression: str) -> list[tuple[int, int]]:
    """Where each sub-expression starts and ends, in the order of the trace: the order of the closing brackets."""
    opened: list[int] = []
    found = []
    for at, character in enumerate(expression):
        if character == "[":
            opened.append(at)
        elif character == "]":
            found.append((opened.pop(), at + 1))
    return found


def folded(expression: str) -> str:
    """An expression whose sub-expressions are drawn as `[…]`."""
    while (shorter := re.sub(r"(?<!^)\[[^\[\]]*\]", "…", expression)) != expression:
        expression = shorter
    return expression.replace("…", "[…]")


def canonical(prompt: str) -> str:
    """The expression with one space before every argument and no other; raises HardtailError if it is malformed."""
    text = prompt.strip().removesuffix("=").rstrip()
    offset = prompt.find(text[:1])
    spaced = any(character.isspace() for character in text)
    if not text.startswith("["):
        raise HardtailError(f"listops: {quoted(prompt)} is not an expression; write one in brackets, {_EXAMPLE}")
    opened: list[int] = []
    before = ""
    for at, character in enumerate(text):
        if character.isspace():
            continue
        if fault := _fault_at(text, at, before, bool(opened), spaced):
            found, problem = fault
            raise HardtailError(f"listops: {found}, character {offset + at + 1} of {quoted(prompt)}, {problem}")
        if character == "[":
            opened.append(at)
        elif character == "]":
            opened.pop()
        before = character
    if opened:
        raise HardtailError(
            f"listops: the bracket that opens at character {offset + opened[-1] + 1} of {quoted(prompt)} is never "
            "closed"
        )
    return re.sub(r"(?<!^)([\[0-9])", r" \1", "".join(text.split()))


def _fault_at(text: str, at: int, before: str, inside: bool, spaced: bool) -> tuple[str, str] | None:
    """What must not be at a place, and why; None if nothing is wrong.

    `before` is the last character that is not a space, `inside` whether a bracket is open, and `spaced` whether the
    text has any spaces: without them, each digit in a row of digits is an argument.
    """
    character = text[at]
    if before and not inside:
        problem = "closes no bracket" if character == "]" else "follows an expression that is complete"
    elif before == "[":
        if character in OPERATORS:
            return None
        problem = f"is not an operator; the operators are {_MEANINGS}"
    elif character == "]":
        if before not in OPERATORS:
            return None
        return f"'[{before}]'", f"has no arguments; write at least one, {_EXAMPLE}"
    elif character in "0123456789":
        number = _NUMBER.match(text, at) if spaced else None
        if number is None:
            return None
        return number[0][:40], f"is above 9; arguments are single digits, {_EXAMPLE}"
    elif character == "[":
        return None
    else:
        problem = f"is neither a digit nor a bracket; write an expression such as {_EXAMPLE.removeprefix('e.g. ')}"
    return repr(character), problem
