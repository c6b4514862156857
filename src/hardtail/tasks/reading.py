"""Problems that people give: as an argument, in a file, on standard input; of any size the task comes in."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hardtail.errors import HardtailError
from hardtail.files import read_lines
from hardtail.tasks.base import Task
from hardtail.types import Instances

_FILE_ENDINGS = (".txt", ".csv", ".gz", ".jsonl", ".json", ".npz")


@dataclass(frozen=True)
class Solved:
    """One problem among the instances of the task that fits it."""

    task: Task
    instances: Instances
    i: int


def texts(task: Task, given: str) -> list[str]:
    """The problems in `given`: itself, the contents of the file it names, or standard input for `-`."""
    if given == "-":
        return task.prompts([line for line in sys.stdin.read().splitlines() if line.strip()])
    if _names_file(given):
        return task.prompts(read_lines(Path(given)))
    return [given]


def _names_file(given: str) -> bool:
    try:
        found = Path(given).is_file()
    except (OSError, ValueError):  # a maze on one line is too long for a file name
        return False
    if not found and given.endswith(_FILE_ENDINGS):
        raise HardtailError(f"{given}: there is no such file")
    return found


def solve(task: Task, prompts: Sequence[str]) -> list[Solved]:
    """Every problem solved, in the order given; problems of one size are solved together."""
    if not prompts:
        raise HardtailError(f"{task.name}: there is no problem to solve; give one a line")
    groups: dict[Task, list[int]] = {}
    for number, prompt in enumerate(prompts):
        groups.setdefault(task.fitted(prompt), []).append(number)
    solved: list[tuple[int, Solved]] = []
    for fitted, numbers in groups.items():
        try:
            instances = fitted.parse([prompts[number] for number in numbers])
        except HardtailError:
            _blame(fitted, prompts, numbers)
            raise
        solved += [(number, Solved(fitted, instances, i)) for i, number in enumerate(numbers)]
    return [item for _, item in sorted(solved, key=lambda pair: pair[0])]


def _blame(task: Task, prompts: Sequence[str], numbers: Sequence[int]) -> None:
    """Raise the error again with the number of the problem that has it, where there are several."""
    for number in numbers if len(prompts) > 1 else ():
        try:
            task.parse([prompts[number]])
        except HardtailError as error:
            raise HardtailError(f"problem {number + 1}: {error}") from None
