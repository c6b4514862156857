"""Problems from long files, read and solved block by block."""

import re
from pathlib import Path

import pytest

from hardtail import HardtailError
from hardtail.tasks import reading
from hardtail.tasks.addition.task import Addition


def test_every_problem_of_a_long_file_is_solved_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those after the first two blocks; a fault is counted from the first line."""
    monkeypatch.setattr(reading, "FIRST_BLOCK", 3)
    monkeypatch.setattr(reading, "BLOCK", 4)
    task, sums = Addition(digits=3), [f"{number:03}+{2 * number:03}" for number in range(10, 23)]
    path = tmp_path / "sums.txt"
    path.write_text("\n".join(sums))
    found = list(reading.problems(task, str(path), fit=False))
    assert [item.task.answer_text(item.instances, item.i) for item in found] == [f"{30 + 3 * k:04}" for k in range(13)]
    path.write_text("\n".join([*sums[:9], "12x+001", *sums[9:]]))
    solved = reading.problems(task, str(path), fit=False)
    assert [next(solved).i for _ in range(7)] == [0, 1, 2, 0, 1, 2, 3]
    with pytest.raises(HardtailError, match=rf"^{re.escape(str(path))}: problem 10: "):
        next(solved)
