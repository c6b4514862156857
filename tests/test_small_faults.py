"""What small faults change and no other test held, in files and problems: practice samples of mutants showed these."""

import io
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hardtail
from hardtail import HardtailError, Instances
from hardtail.core.archives import Header
from hardtail.core.cores import usable_cores
from hardtail.core.files import append_bytes, sole_writer, text_lines
from hardtail.core.hub import Address
from hardtail.core.noise import signed
from hardtail.core.parsing import decoded, decoded_with_infinity
from hardtail.core.schema import LONGEST, check_instance_headers
from hardtail.core.vocabulary import Vocabulary
from hardtail.tasks import reading
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.stored import refuse_unsolved
from tests.conftest import Command
from tests.decoding_toys import problems

# -- files ----------------------------------------------------------------------------------------------------------


def test_the_right_to_write_is_not_given_for_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(HardtailError, match="give a new name or a regular file"), sole_writer(tmp_path / "pipe"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize(
    "words", [["inspect", "."], ["inspect", ""], ["inspect", "/"], ["diagnose", "."], ["view", ""]]
)
def test_a_folder_without_a_name_is_no_file(words: list[str], hardtail_command: Command) -> None:
    code, _, err = hardtail_command(*words)
    assert (code, "Traceback" in err) == (2, False), err


def test_nothing_is_added_to_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    with pytest.raises(HardtailError, match="ends in the middle of a line"):
        append_bytes(path, b"{}\n")
    assert path.read_bytes() == b'{"a": 1}\n{"b"'


@pytest.mark.parametrize("limit", ["100000 0", "max 100000", "x 1", "5", ""])
def test_a_quota_that_says_nothing_is_none(limit: str, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    (tmp_path / "own").write_text("0::/\n")
    assert usable_cores(tmp_path, tmp_path / "own") == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("word", "number"), [(0, 0), ((1 << 63) - 1, (1 << 63) - 1), (1 << 63, -(1 << 63))])
def test_words_are_twos_complements(word: int, number: int) -> None:
    assert signed(word) == number
    assert torch.tensor(signed(word)).item() == number


@pytest.mark.parametrize("limit", [2 * 66 - 1, 2 * 66])
def test_a_text_may_take_as_much_as_its_limit(limit: int) -> None:
    """Each of these lines counts its two characters and 64 bytes."""
    file = io.BytesIO(b"a\nb\n")
    if limit < 2 * 66:
        with pytest.raises(HardtailError, match="allow more"):
            text_lines(file, "it", limit)
    else:
        assert text_lines(file, "it", limit) == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["me", "hf:me", "me/a/b", "hf:me/..", "me/a..b", "me/a@", "me/a@-b", "me/a@x y", "-me/a", "me/a@b..c"]
)
def test_what_names_no_repository_is_refused(text: str) -> None:
    assert Address.parse("hf:me/a@main") == Address("me/a", "main")
    with pytest.raises(HardtailError, match="names no repository"):
        Address.parse(text)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_arrays_of_the_right_shape_and_another_type_are_refused(dtype: str) -> None:
    arrays = problems(4).arrays()
    headers = {name: Header(array.dtype, array.shape) for name, array in arrays.items()}
    assert check_instance_headers(headers) == 4
    strange = headers | {"tokens_NL": Header(np.dtype(dtype), arrays["tokens_NL"].shape)}
    with pytest.raises(HardtailError, match=r"tokens_NL.*does not fit"):
        check_instance_headers(strange)


def test_a_vocabulary_of_words_names_ten_of_them() -> None:
    words = Vocabulary(tuple(f"w{number}" for number in range(30)))
    with pytest.raises(HardtailError) as refused:
        words.encode("nothing")
    assert "w9" in str(refused.value)
    assert "w10" not in str(refused.value)


@pytest.mark.parametrize(("there", "usable"), [(6, 6), (None, 1)])
def test_cores_of_a_system_without_affinities(there: int | None, usable: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("os.cpu_count", lambda: there)
    assert usable_cores(Path("/nowhere"), Path("/nowhere")) == usable


@pytest.mark.parametrize(("least", "most"), [(-(1 << 63), (1 << 64) - 1)])
def test_whole_numbers_of_json_have_64_bits(least: int, most: int) -> None:
    assert decoded(f"[{least}, {most}]", "it") == [least, most]
    for beyond in (least - 1, most + 1):
        with pytest.raises(HardtailError, match="it: "):
            decoded_with_infinity(f"[{beyond}]", "it")


@pytest.mark.parametrize("cells", [LONGEST, LONGEST + 1])
def test_an_answer_has_a_length_that_it_can_have(cells: int) -> None:
    headers = {name: Header(array.dtype, array.shape) for name, array in problems(4).bare().arrays().items()}
    for name in ("maskable_NA", "scored_NA"):
        headers[name] = Header(np.dtype(np.bool_), (4, cells))
    headers["tokens_NL"] = Header(np.dtype(np.uint8), (4, LONGEST))
    if cells == LONGEST:
        assert check_instance_headers(headers) == 4
    else:
        with pytest.raises(HardtailError, match="not a table of a possible size"):
            check_instance_headers(headers)


@pytest.mark.parametrize("words", [("a b", "c"), ("a", "")])
def test_a_word_of_a_vocabulary_is_one_word(words: tuple[str, ...]) -> None:
    with pytest.raises(HardtailError):
        Vocabulary(words)


# -- problems -------------------------------------------------------------------------------------------------------


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
    with pytest.raises(HardtailError, match=r"^problem 10: "):
        next(solved)


class Longer(Addition):
    """Finds its prompts longer than they are."""

    def parse(self, prompts: Sequence[str]) -> Instances:
        found = super().parse(prompts)
        return replace(found, prompt_len_N=found.prompt_len_N + 1)


class Other(Addition):
    """Writes the first sign of its prompts in another way."""

    def parse(self, prompts: Sequence[str]) -> Instances:
        found = super().parse(prompts)
        found.tokens_NL[:, 0] += 1
        return found


@pytest.mark.parametrize("kind", [Longer, Other])
def test_prompts_that_the_task_would_write_otherwise_are_refused(kind: type[Addition]) -> None:
    instances = Addition(digits=3).parse(["123+456", "100+250"])
    refuse_unsolved(Addition(digits=3), instances, "sums.npz")
    with pytest.raises(HardtailError, match="its prompts are not written as the task writes them"):
        refuse_unsolved(kind(digits=3), instances, "sums.npz")


@pytest.mark.parametrize(("side", "size"), [(5, 2), (7, 3), (21, 10), (65, 32)])
def test_a_maze_has_the_size_that_it_is_drawn_in(side: int, size: int) -> None:
    grid = "\n".join("." * side for _ in range(side))
    assert hardtail.task("maze").fitted(grid) == replace(hardtail.task("maze"), size=size)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "field", "least"),
    [
        ("listops", "train_size", 1),
        ("listops", "test_per_depth", 1),
        ("listops", "max_train_depth", 1),
        ("listops", "expand", 0.0),
        ("addition", "digits", 1),
        ("maze", "size", 2),
        ("countdown", "keep_low", 0.0),
        ("countdown", "train_raw", 10),
        ("sudoku", "extra_clues", 0),
    ],
)
def test_the_least_value_of_a_field_is_accepted(name: str, field: str, least: Any) -> None:
    assert getattr(hardtail.task(name, **{field: least}), field) == least
    with pytest.raises(HardtailError, match=field):
        hardtail.task(name, **{field: least - 1})
