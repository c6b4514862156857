"""Countdown as text: puzzles, rows of CD4 files, and chains of equations."""

import json
import re
from collections.abc import Sequence

from hardtail.core.errors import HardtailError, quoted
from hardtail.tasks.countdown.solver import HIGHEST_NUMBER, OPERATIONS

NUMBERS = 4
HIGHEST_TARGET = 999
_EXAMPLE = "a puzzle is 4 numbers and a target, e.g. '86,28,13,31,96'"
_EQUATION = re.compile(r"(0|[1-9][0-9]*)([-+*/])(0|[1-9][0-9]*)=(0|[1-9][0-9]*)")
_NEGATIVE = re.compile(r"([0-9]+)-([0-9]+)=-[0-9]+")
_BETWEEN = re.compile(r"\s*,\s*|\s+")

Step = tuple[int, int, int, int]


def read_puzzle(prompt: str) -> list[int]:
    """The numbers and the target of a prompt, separated by commas or spaces; `|` or `=` may follow them."""
    text = prompt.strip().removesuffix("|").removesuffix("=").strip()
    parts = _BETWEEN.split(text) if text else []
    for place, part in enumerate(parts):
        if not part:
            raise HardtailError(f"countdown: a number is missing in {quoted(prompt)}; {_EXAMPLE}")
        if not (part.isascii() and part.isdigit()):
            raise HardtailError(f"countdown: {quoted(part)} in {quoted(prompt)} is not a whole number; {_EXAMPLE}")
        top = HIGHEST_TARGET if place == len(parts) - 1 else HIGHEST_NUMBER
        if len(parts) == NUMBERS + 1 and not (len(part) <= 4 and 1 <= int(part) <= top):
            what = "target" if place == NUMBERS else "number"
            raise HardtailError(
                f"countdown: the {what} {part[:20]} in {quoted(prompt)} is out of range; it must be 1 to {top}"
            )
    if len(parts) != NUMBERS + 1:
        raise HardtailError(f"countdown: {quoted(prompt)} has {len(parts)} numbers; {_EXAMPLE}")
    return [int(part) for part in parts]


def read_row(line: str, number: int) -> tuple[str, str]:
    """Puzzle and chain (empty where there is none) of a line: a row of a CD4 file, or just the puzzle."""
    if not line.lstrip().startswith("{"):
        return line, ""
    try:
        row = json.loads(line)
        prompt, chain = row["input"], row.get("output", "")
        if isinstance(prompt, str) and isinstance(chain, str):
            return prompt, "".join(chain.split())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise HardtailError(
        f"problem {number}: countdown: {quoted(line)} is not a row such as "
        '{"input": "86,28,13,31,96", "output": "86+28=114,31-13=18,114-18=96"}'
    )


def read_chain(text: str, numbers: Sequence[int], target: int) -> tuple[list[Step], str | None]:
    """The steps of a chain and what is wrong with it (None: nothing)."""
    pool, ever = list(numbers), set(numbers)
    steps: list[Step] = []
    for number, equation in enumerate(text.split(","), start=1):
        here = f"equation {number}: "
        step, wrong = read_equation(equation)
        if step is None:
            return steps, f"{here}{wrong}"
        left, _, right, result = step
        for operand in (left, right):
            if operand not in pool:
                known = f"there is no {operand} left" if operand in ever else f"there is no number {operand}"
                return steps, here + known
            pool.remove(operand)
        if wrong:
            return steps, here + wrong
        pool.append(result)
        ever.add(result)
        steps.append(step)
    if len(pool) > 1:
        return steps, f"the {pool[0]} is not used"
    if pool[0] != target:
        return steps, f"ends in {pool[0]}, not in the target {target}"
    return steps, None


def read_equation(text: str) -> tuple[Step | None, str | None]:
    """The step of an equation (None: the text is not an equation) and what is wrong with it (None: it is true)."""
    match = _EQUATION.fullmatch(text)
    if below_zero := _NEGATIVE.fullmatch(text):
        return None, f"{below_zero[1]}-{below_zero[2]} is negative; take the smaller number from the larger"
    if match is None:
        return None, f"{quoted(text)} is not an equation such as '86+28=114'"
    left, sign, right, result = int(match[1]), match[2], int(match[3]), int(match[4])
    true = {"+": left + right, "-": left - right, "*": left * right, "/": left // max(right, 1)}[sign]
    fault = None if true == result else f"{left}{sign}{right} is {true}, not {result}"
    if true < 0:
        fault = f"{left}{sign}{right} is negative; take the smaller number from the larger"
    if sign == "/" and right == 0:
        fault = f"{left}/{right} divides by zero"
    elif sign == "/" and left % right:
        fault = f"{left}/{right} is not a whole number"
    return (left, OPERATIONS.index(sign), right, result), fault
