"""Problems that people give as an argument, in a file or on standard input, in any size that the task comes in."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hardtail.core.errors import HardtailError
from hardtail.core.files import MOST_TEXT, read_lines, text_lines
from hardtail.core.types import Instances
from hardtail.tasks.base import Task

_FILE_LIKE = re.compile(r"[\w./~-]{1,60}")
_FILE_ENDINGS = (".txt", ".csv", ".gz", ".jsonl", ".json", ".npz")

FIRST_BLOCK, BLOCK = 20, 1000
"""How many problems are solved before their results are shown: at first, and from then on."""


@dataclass(frozen=True)
class Solved:
    """One problem among the instances of the task that fits it."""

    task: Task
    instances: Instances
    i: int


def problems(task: Task, given: str, fit: bool, limit: int = MOST_TEXT) -> Iterator[Solved]:
    """Solve the problems in `given`: a problem, the name of a file of problems, or `-` for standard input.

    With `fit`, each problem may have its own size; without, all have the task's. Files may take `limit` bytes of
    memory. Results come as they are found, a block at a time.
    """
    if given == "-":
        yield from _in_blocks(task, task.prompts(_standard_input(limit)), fit)
        return
    path = _file_named(given)
    try:
        alone = solve(task, [given], fit)  # text that reads as a problem is one, even if a file has that name
    except HardtailError as error:
        if path is None:
            hint = "; there is no file of that name either" if _FILE_LIKE.fullmatch(given) else ""
            raise HardtailError(f"{error}{hint}") from None
    else:
        yield from alone
        return
    try:
        yield from _in_blocks(task, task.prompts(read_lines(path, limit)), fit)
    except HardtailError as error:
        raise error if str(path) in str(error) else HardtailError(f"{path}: {error}") from error


def answer_text(item: Solved, given: str, limit: int = MOST_TEXT) -> str:
    """The answer in `given`, which is the answer itself or the name of a file that contains it."""
    path = _file_named(given)
    if path is None:
        return given
    try:
        item.task.read_answer(item.instances, item.i, given)
    except HardtailError:
        return "\n".join(read_lines(path, limit))
    return given  # text that reads as an answer is one, even if a file has that name


def solve(task: Task, prompts: Sequence[str], fit: bool = True, before: int = 0) -> list[Solved]:
    """Every problem solved, in the order given; problems of one size are solved together.

    Errors count problems from 1, after the given number `before` them.
    """
    if not prompts:
        raise HardtailError(f"{task.name}: there is no problem to solve; give one per line")
    groups: dict[Task, list[int]] = {}
    for number, prompt in enumerate(prompts):
        groups.setdefault(task.fitted(prompt) if fit else task, []).append(number)
    solved: dict[int, Solved] = {}
    for fitted, numbers in groups.items():
        counted = [before + number + 1 for number in numbers] if before or len(prompts) > 1 else []
        instances = fitted.parse_numbered([prompts[number] for number in numbers], counted)
        solved |= {number: Solved(fitted, instances, i) for i, number in enumerate(numbers)}
    return [solved[number] for number in range(len(prompts))]


def _in_blocks(task: Task, prompts: Sequence[str], fit: bool) -> Iterator[Solved]:
    """Solve blocks of problems one after another, so that the first results do not wait for the last."""
    yield from solve(task, prompts[:FIRST_BLOCK], fit)
    for start in range(FIRST_BLOCK, len(prompts), BLOCK):
        yield from solve(task, prompts[start : start + BLOCK], fit, before=start)


def _standard_input(limit: int) -> list[str]:
    return text_lines(sys.stdin.buffer, "standard input", limit)


def _file_named(given: str) -> Path | None:
    """The file or pipe that an argument names, if any; an argument that can only be a file name must exist."""
    path = Path(given)
    if not given.strip():
        raise HardtailError("the argument is empty; give a problem, or the name of a file with problems")
    try:
        found, folder = path.exists(), path.is_dir()
    except (OSError, ValueError):  # a maze on one line is too long for a file name
        return None
    if folder:
        raise HardtailError(f"{given} is a folder; give a file")
    if not found and given.endswith(_FILE_ENDINGS):
        raise HardtailError(f"{given}: there is no such file")
    return path if found else None
