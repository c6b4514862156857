"""Vocabularies of more than 256 tokens, from drawing to the page; small ones stay as small as they were."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import hardtail
from hardtail import HardtailError, Instances, Streams
from hardtail.core.files import load_instances, save_instances
from hardtail.core.manifest import Manifest
from hardtail.core.trace_files import load_trace, save_trace
from hardtail.core.types import Array, Tokens
from hardtail.core.vocabulary import Vocabulary
from hardtail.decoding.loop import decode
from hardtail.models.denoiser import Function
from hardtail.policies.named import policy_named
from hardtail.testing import check_task
from hardtail.traces.canvases import canvases_of, trace_of_canvases
from tests.conftest import Command
from tests.wide_toys import NUMBERS, RunningSums

PATH = "tests.wide_toys:RunningSums"
TASK = RunningSums()


def scattered(tokens_BL: Tensor, at_BA: Tensor, size: int) -> Tensor:
    """Logits that depend on the whole row, and differ from cell to cell and from token to token."""
    key_BAV = tokens_BL.sum(dim=1)[:, None, None] + 31 * at_BA[..., None] + 7 * torch.arange(size)
    return torch.sin(key_BAV.float() * 12.9898)


def test_the_task_keeps_the_contract() -> None:
    check_task(TASK)


class Halves(RunningSums):
    """Asks for the first two sums; what the other cells hold does not matter."""

    def answer_text(self, instances: Instances, i: int, answer_A: Array | None = None) -> str:
        return " ".join(super().answer_text(instances, i, answer_A).split()[:2])

    def read_answer(self, instances: Instances, i: int, text: str) -> Tokens:
        return np.concatenate([self.vocabulary.encode(text), instances.answer(i)[2:]])

    def check(self, instances: Instances, answer_NA: Array) -> NDArray[np.bool_]:
        return (answer_NA == instances.answer_NA)[:, :2].all(axis=1)

    def fault(self, instances: Instances, i: int, answer_A: Array) -> str | None:
        return None if self.check(instances.take(slice(i, i + 1)), answer_A[None])[0] else "a sum is wrong"


def test_the_contract_breaks_words_that_are_written_and_no_padding() -> None:
    """Of an answer in words it counts the words, not their letters."""
    check_task(Halves())


def test_every_command_takes_a_wide_task(hardtail_command: Command, tmp_path: Path) -> None:
    run, traces, page = str(tmp_path / "run"), tmp_path / "traces", tmp_path / "page.html"
    own = ["--task", PATH, "--strata", "natural", "-n", "4"]

    def told(*words: str) -> str:
        code, out, err = hardtail_command(*words)
        assert code == 0, err
        return out

    assert "finished at step 4" in told("train", "tests.wide_toys:recipe", "--out", run)
    _, record = json.loads(told("eval", run, *own, "--policies", "top1", "--traces", str(traces), "--json"))
    assert (record["task"], record["n"]) == ("running-sums", 4)
    (trace,) = traces.glob("*.npz")
    assert load_trace(trace).token_NT.dtype == np.int32
    assert "instances" in told("diagnose", run, *own)
    assert "step " in told("view", str(trace), "--task", PATH)
    told("report", str(trace), "--task", PATH, "--out", str(page))
    assert '"n299"' in page.read_text(), "the page knows the words"
    data = tmp_path / "test.npz"
    told("data", PATH, "--split", "test", "--out", str(data))
    assert load_instances(data)[0].tokens_NL.max() > 255


def test_a_wide_trace_is_what_it_was_after_saving(tmp_path: Path) -> None:
    sums = TASK.sample(6, Streams(0).named("wide"))
    denoiser = Function(lambda tokens_BL, at_BA: scattered(tokens_BL, at_BA, TASK.vocabulary.size), NUMBERS + 1)
    trace = decode(denoiser, sums, policy_named("top1"), about={"task": {"name": PATH, "fields": {}}})
    assert trace.answer_NA.max() > 255, "nothing was cut to a byte"
    assert np.array_equal(trace.answer_NA, np.take_along_axis(trace.token_NT, np.argsort(trace.cell_NT), axis=1))
    save_trace(tmp_path / "wide.npz", trace)
    held = load_trace(tmp_path / "wide.npz")
    for name, array in trace.arrays().items():
        assert np.array_equal(held.arrays()[name], array, equal_nan=array.dtype.kind == "f"), name
    again = trace_of_canvases(sums, list(canvases_of(trace)), trace.mask_id)
    assert np.array_equal(again.token_NT, trace.token_NT)


def test_small_vocabularies_stay_bytes() -> None:
    task = hardtail.task("addition", digits=4)
    sums = task.sample(3, Streams(0).named("small"))
    denoiser = Function(lambda tokens_BL, at_BA: scattered(tokens_BL, at_BA, 14), task.vocabulary.mask_id)
    trace = decode(denoiser, sums, policy_named("top1"))
    assert {array.dtype for array in (sums.tokens_NL, trace.answer_NA, trace.token_NT)} == {np.dtype(np.uint8)}


def test_tokens_that_no_vocabulary_has_are_refused(tmp_path: Path) -> None:
    sums = TASK.sample(2, Streams(0).named("bad"))
    sums.tokens_NL[0, 0] = -1
    save_instances(tmp_path / "bad.npz", sums, Manifest())
    with pytest.raises(HardtailError, match="tokens outside 0"):
        load_instances(tmp_path / "bad.npz")


def test_words_are_read_and_written() -> None:
    vocabulary = Vocabulary(("the", "cat", "sat"), pad="PAD", mask="MASK")
    assert vocabulary.decode(vocabulary.encode("the  cat MASK")) == "the cat MASK"
    sums = TASK.parse(["n299 n2 n0 n0"])
    assert TASK.answer_text(sums, 0) == "n299 n1 n1 n1"
    assert (TASK.read_answer(sums, 0, "n299 n1  n1 n1") == sums.answer(0)).all()
    with pytest.raises(HardtailError, match="'dog' is not one of the words the, cat, sat"):
        vocabulary.encode("the dog")
    with pytest.raises(HardtailError, match="has 2 words; give 4"):
        TASK.read_answer(sums, 0, "n1 n2")
    with pytest.raises(HardtailError, match="the sign 'a' twice"):
        Vocabulary("aba")
    with pytest.raises(HardtailError, match="a word has no space"):
        Vocabulary(("a b", "c"))
