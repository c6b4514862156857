"""What small faults change and no other test held: a practice sample of mutants showed each of these."""

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.archives import Header
from hardtail.core.cores import usable_cores
from hardtail.core.files import append_bytes, sole_writer, text_lines
from hardtail.core.hub import Address
from hardtail.core.noise import signed
from hardtail.core.schema import check_instance_headers
from hardtail.core.vocabulary import Vocabulary
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.diagnosis.coverage import Histogram, compare, visits
from hardtail.policies.base import Guess, Policy, State
from hardtail.policies.check import Check
from hardtail.schemes import Corpus
from hardtail.schemes.mixture import Mixture
from hardtail.schemes.puma import Puma, official
from hardtail.schemes.stages import Fixed
from hardtail.tasks import reading
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.datasets import KEPT, build
from tests.decoding_toys import MASK, TOY, problems
from tests.planted import adder

# -- files ----------------------------------------------------------------------------------------------------------


def test_the_right_to_write_is_not_given_for_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(HardtailError, match="give a new name or a regular file"), sole_writer(tmp_path / "pipe"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_nothing_is_added_to_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    with pytest.raises(HardtailError, match="ends in the middle of a line"):
        append_bytes(path, b"{}\n")
    assert path.read_bytes() == b'{"a": 1}\n{"b"'


def test_kept_data_sets_are_found_under_the_names_they_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer hash would make every kept data set unknown."""
    monkeypatch.setenv(KEPT, str(tmp_path))
    build(Addition(digits=3), "test", seed=1, n=4)
    (path,) = tmp_path.glob("*.npz")
    assert len(path.stem) == len("addition-test-") + 16


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


# -- policies and schemes -------------------------------------------------------------------------------------------


def test_pumas_release_has_eight_stages() -> None:
    wanted = Puma(Fixed(8), "interval", None, start="spread", refill="fraction", new_k="rebuild")
    assert official() == wanted
    assert official(Fixed(5), 0.7).stages == Fixed(5)
    assert official(Fixed(5), 0.7).threshold == 0.7


@pytest.mark.parametrize("place", ["first", "second"])
def test_a_mixture_of_mixtures_is_refused(place: str) -> None:
    with pytest.raises(HardtailError, match="must not be mixtures themselves"):
        Mixture(**{place: Mixture()})  # type: ignore[arg-type]


@pytest.mark.parametrize(("bare", "known"), [(False, "zigzag"), (True, "none: build the data without --bare")])
def test_an_order_that_data_do_not_have_is_refused_with_those_they_have(bare: bool, known: str) -> None:
    instances = problems(40)
    instances = instances.bare() if bare else instances
    with pytest.raises(HardtailError, match=f"no order 'lsb'; they have {known}$"):
        Corpus.on(torch.device("cpu"), instances, MASK, "lsb")


@dataclass(frozen=True)
class OneForAll(Policy):
    """Keeps one number for the whole batch."""

    def begin(self, state: State) -> dict[str, Tensor]:
        return {"once": torch.zeros(1)}

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA


def test_a_policy_inside_another_keeps_something_for_every_row() -> None:
    with pytest.raises(HardtailError, match=r"keeps 'once' \[1\]; inside another policy"):
        decode(TOY, problems(30), Check(OneForAll(), then="refill", rounds=3))


@dataclass(frozen=True)
class Only(Policy):
    """Wants one cell, and refuses all others until it is written."""

    cell: int = 4

    def score(self, guess: Guess, state: State) -> Tensor:
        wanted_A = torch.arange(state.hidden_BA.shape[1]) == self.cell
        return torch.where(wanted_A, 0.0, -torch.inf).expand_as(guess.top_BA)


def test_a_refused_cell_is_no_runner_up() -> None:
    instances = problems(200)
    full = instances.take(np.flatnonzero(instances.maskable_NA.all(axis=1))[:3])
    trace = decode(TOY, full, Only())
    assert (trace.cell_NT[:, 0] == 4).all()
    assert (trace.runner_up_NT[:, 0] == -1).all()
    assert np.isnan(trace.margin_NT[:, 0]).all()


def test_notes_are_about_the_instances_and_not_the_rest_of_the_batch() -> None:
    trace = decode(TOY, problems(5), Check(rounds=1), Decoding(batch=16))
    assert {name: len(note_N) for name, note_N in trace.notes.items()} == dict.fromkeys(trace.notes, 5)
    assert trace.notes


# -- coverage -------------------------------------------------------------------------------------------------------


def test_ranks_count_only_where_training_counted_them() -> None:
    """With an order, with one that training did not count by, and with none."""
    task = Addition(digits=3)
    trace = decode(adder(task), task.sample(20, Streams(1).named("coverage")), Check(rounds=1))
    by_rank = visits(trace, "lsb")
    merged = by_rank.with_ranks(1)
    assert merged.rank_KR.tolist() == by_rank.rank_KR.sum(axis=1, keepdims=True).tolist()
    assert by_rank.with_ranks(6).rank_KR.shape[1] == 6
    two = Histogram(merged.count_K, np.repeat(merged.rank_KR, 2, axis=1))
    assert two.with_ranks(2).rank_KR.tolist() == two.rank_KR.tolist()
    assert compare(trace, by_rank, "lsb").rank_distance == pytest.approx(0)
    for trained, order in ((merged, "lsb"), (by_rank, None)):
        gap = compare(trace, trained, order)
        assert (gap.order, gap.rank_distance, gap.rare_commits) == (None, None, None)
        assert gap.count_distance == pytest.approx(0)


@pytest.mark.parametrize(("orders", "known"), [((), "none"), (("zigzag",), "zigzag")])
def test_an_order_that_a_trace_does_not_have_is_refused(orders: Sequence[str], known: str) -> None:
    instances = problems(4)
    held = replace(instances, orders={name: instances.orders[name] for name in orders})
    trace = decode(TOY, held, Check(rounds=1))
    with pytest.raises(HardtailError, match=f"its orders are: {known}$"):
        compare(trace, visits(trace), "lsb")
