"""Problems that people give as an argument, in a file or on standard input, in any size that the task comes in."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hardtail.core.errors import HardtailError
from hardtail.core.files import read_lines, text_lines
from hardtail.core.types import Instances
from hardtail.tasks.base import Task

_FILE_LIKE = re.compile(r"[\w./~-]{1,60}")
_FILE_ENDINGS = (".txt", ".csv", ".gz", ".jsonl", ".json", ".npz")


@dataclass(frozen=True)
class Solved:
    """One problem among the instances of the task that fits it."""

    task: Task
    instances: Instances
    i: int


def problems(task: Task, given: str, fit: bool) -> list[Solved]:
    """Solve the problems in `given`: a problem, the name of a file of problems, or `-` for standard input.

    With `fit`, each problem may have its own size; without, all have the task's.
    """
    if given == "-":
        return solve(task, task.prompts(_standard_input()), fit)
    path = _file_named(given)
    try:
        return solve(task, [given], fit)  # text that reads as a problem is one, even if a file has that name
    except HardtailError as error:
        if path is not None:
            return solve(task, task.prompts(read_lines(path)), fit)
        hint = "; there is no file of that name either" if _FILE_LIKE.fullmatch(given) else ""
        raise HardtailError(f"{error}{hint}") from None


def answer_text(item: Solved, given: str) -> str:
    """The answer in `given`, which is the answer itself or the name of a file that contains it."""
    path = _file_named(given)
    if path is None:
        return given
    try:
        item.task.read_answer(item.instances, item.i, given)
    except HardtailError:
        return "\n".join(read_lines(path))
    return given  # text that reads as an answer is one, even if a file has that name


def solve(task: Task, prompts: Sequence[str], fit: bool = True) -> list[Solved]:
    """Every problem solved, in the order given; problems of one size are solved together."""
    if not prompts:
        raise HardtailError(f"{task.name}: there is no problem to solve; give one per line")
    groups: dict[Task, list[int]] = {}
    for number, prompt in enumerate(prompts):
        groups.setdefault(task.fitted(prompt) if fit else task, []).append(number)
    solved: dict[int, Solved] = {}
    for fitted, numbers in groups.items():
        try:
            instances = fitted.parse([prompts[number] for number in numbers])
        except HardtailError:
            for number in numbers if len(prompts) > 1 else ():  # name the problem that is at fault
                try:
                    fitted.parse([prompts[number]])
                except HardtailError as error:
                    raise HardtailError(f"problem {number + 1}: {error}") from None
            raise
        solved |= {number: Solved(fitted, instances, i) for i, number in enumerate(numbers)}
    return [solved[number] for number in range(len(prompts))]


def _standard_input() -> list[str]:
    try:
        return text_lines(sys.stdin.buffer.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise HardtailError(f"standard input is not text: {error}") from None


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
