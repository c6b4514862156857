"""Work that is spread over workers: the same bytes, errors and interrupts as without them."""

import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail.core.cores import usable_cores
from hardtail.core.errors import HardtailError
from hardtail.core.types import Instances, Trace
from hardtail.decoding import workers
from hardtail.decoding.loop import decode, decode_stream
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import spread, worker_count
from hardtail.measuring.looking import judge
from hardtail.models.denoiser import Function, ModelDenoiser
from hardtail.models.precision import Precision
from hardtail.models.transformer import Shape, Transformer
from hardtail.policies.check import Check
from hardtail.policies.confidence import Top1
from hardtail.policies.named import policy_named
from hardtail.study.recipes import recipe_named
from hardtail.training.run import cpu_threads, train
from tests.decoding_toys import MASK, TOY, hashed_logits, problems, same_trace


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """What torch may use in this thread; the tests are started with one."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def model(precision: Precision = "fp32") -> tuple[ModelDenoiser, Instances]:
    """Wide enough that torch would split its products over two threads, and 70 sums."""
    task = hardtail.task("addition", digits=6)
    wide = Transformer(Shape(1, 2, 128, task.vocabulary.size, task.seq_len))
    wide.initialise(torch.Generator().manual_seed(0))
    with torch.no_grad():
        for parameter in wide.parameters():
            parameter.mul_(3)
    denoiser = ModelDenoiser(wide, task.vocabulary.mask_id, precision)
    return denoiser, task.sample(70, hardtail.Streams(0).named("workers"))


def everything(trace: Trace) -> list[bytes]:
    names = ("answer_NA", "cell_NT", "step_NT", "token_NT", "prob_NT", "gold_prob_NT", "margin_NT", "runner_up_NT")
    return [getattr(trace, name).tobytes() for name in names]


@pytest.mark.parametrize("name", ["top1", "random", "threshold,p=0.3", "loo,rounds=2"])
def test_any_number_of_workers_writes_the_same_bytes(name: str, threads: int) -> None:
    denoiser, instances = model()
    policy = policy_named(name)
    one, two, three, usual = (
        decode(denoiser, instances, policy, Decoding(seed=3, workers=workers)) for workers in (1, 2, 3, None)
    )
    assert len(np.unique(one.prob_NT[one.commit_NT])) > 100  # the model is no constant
    assert everything(one) == everything(two) == everything(three) == everything(usual)
    assert torch.get_num_threads() == threads


def test_a_tiny_training_step_is_not_split(threads: int, tmp_path: Path) -> None:
    """Torch is told to use two cores, but they would wait for each other longer than they compute."""
    seen: set[int] = set()
    tiny = replace(recipe_named("addition-puma-smoke"), steps=1)
    train(tiny, tmp_path, device="cpu", progress=lambda step: seen.add(torch.get_num_threads()))
    assert seen == {1}
    assert torch.get_num_threads() == threads
    assert cpu_threads(recipe_named("addition-random-small")) == min(threads, usable_cores())


def test_one_pass_is_judged_the_same_by_any_number_of_workers(threads: int) -> None:
    denoiser, instances = model()
    found = [
        judge(denoiser, instances, instances.maskable_NA, Decoding(workers=workers), "a model")
        for workers in (1, 2, 3, None)
    ]
    assert found == [found[0]] * 4


def test_bf16_is_the_same_too_and_leaves_the_process_as_it_was() -> None:
    denoiser, instances = model("bf16")
    before = torch.get_float32_matmul_precision()
    one, three = (decode(denoiser, instances, Top1(), Decoding(workers=workers)) for workers in (1, 3))
    assert everything(one) == everything(three)
    assert torch.get_float32_matmul_precision() == before


def test_parts_come_in_order_and_progress_comes_from_the_callers_thread() -> None:
    instances = problems(1200, cells=3)
    moved: list[int] = []
    callers: set[int] = set()

    def progress(done: int) -> None:
        moved.append(done)
        callers.add(threading.get_ident())

    parts = list(decode_stream(TOY, instances, Top1(), Decoding(workers=3), progress=progress))
    assert [len(part) for part in parts] == [512, 512, 176]
    assert same_trace(Trace.concat(parts), decode(TOY, instances, Top1()))
    assert sum(moved) == 1200
    assert callers == {threading.get_ident()}


def test_progress_moves_within_a_batch() -> None:
    moved: list[int] = []
    decode(TOY, problems(32), Top1(), progress=moved.append)
    assert sum(moved) == 32
    assert max(moved) < 32 / 3


def _workers_left() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("hardtail")]


def test_an_error_in_a_worker_is_the_callers() -> None:
    def broken(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return hashed_logits(tokens_BL, at_BA) * torch.nan

    with pytest.raises(HardtailError, match="a cell has no probabilities"):
        decode(Function(broken, MASK), problems(200), Top1(), Decoding(workers=2))
    assert not _workers_left()


def test_nobody_works_on_when_the_rest_is_not_wanted() -> None:
    parts = decode_stream(TOY, problems(5000, cells=3), Top1(), Decoding(workers=2))
    next(parts)
    parts.close()
    assert not _workers_left()


def test_ctrl_c_ends_the_workers_at_their_next_forward_pass() -> None:
    passes = 0

    def interrupting(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        nonlocal passes
        passes += 1
        if passes == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return hashed_logits(tokens_BL, at_BA)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            decode(Function(interrupting, MASK), problems(100_000), Top1(), Decoding(workers=2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not _workers_left()
    assert passes < 20_000  # of 28,000 that the whole would take


def test_a_denoiser_that_is_not_ours_is_called_from_one_thread_unless_asked(threads: int) -> None:
    callers: set[int] = set()

    def seen(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        callers.add(threading.get_ident())
        return hashed_logits(tokens_BL, at_BA)

    decode(Function(seen, MASK), problems(100), Top1())
    assert callers == {threading.get_ident()}
    decode(Function(seen, MASK), problems(100), Top1(), Decoding(workers=1))
    assert callers == {threading.get_ident()}
    callers.clear()
    decode(Function(seen, MASK), problems(100), Top1(), Decoding(workers=2))
    assert threading.get_ident() not in callers


def test_the_number_of_workers_is_that_which_is_asked_for_or_safe() -> None:
    denoiser, _ = model()
    assert worker_count(denoiser, Decoding(workers=5)) == 5
    assert worker_count(TOY, Decoding()) == 1
    with workers.computing_threads(2), torch.autocast("cpu", torch.bfloat16):  # holds for this thread only
        assert worker_count(denoiser, Decoding()) == 1


@pytest.mark.parametrize(("cores", "threads", "wanted"), [(1, 2, 1), (2, 1, 1), (2, 2, 2)])
def test_workers_are_no_more_than_cores_or_threads(
    cores: int, threads: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "usable_cores", lambda: cores)
    with workers.computing_threads(threads):
        assert worker_count(model()[0], Decoding()) == wanted


@pytest.mark.parametrize(("asked", "threads"), [(None, 2), (1, 1)])
def test_a_denoiser_that_is_not_ours_keeps_its_threads_unless_one_worker_is_asked_for(
    asked: int | None, threads: int
) -> None:
    seen: set[int] = set()

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        seen.add(torch.get_num_threads())
        return hashed_logits(tokens_BL, at_BA)

    with workers.computing_threads(2):
        decode(Function(logits, MASK), problems(4), Check(rounds=1), Decoding(workers=asked))
    assert seen == {threads}


def test_our_own_model_computes_in_one_thread_also_if_there_is_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of a result do not depend on how many threads torch would take."""
    subject, seen = hardtail.load("zoo:addition-random"), set[int]()
    assert isinstance(subject.denoiser, ModelDenoiser)
    forward = subject.denoiser._forward

    def noted(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        seen.add(torch.get_num_threads())
        return forward(tokens_BL, at_BA)

    monkeypatch.setattr(subject.denoiser, "_forward", noted)
    monkeypatch.setattr(workers, "usable_cores", lambda: 1)
    with workers.computing_threads(2):
        decode(subject.denoiser, subject.task.sample(2, "natural", seed=0), policy_named("threshold"))
    assert seen == {1}


@pytest.mark.parametrize("policy", ["threshold,p=0.01", "top1", "check,rounds=2"])
def test_every_instance_is_reported_as_done_also_if_all_end_early(policy: str) -> None:
    done = list[int]()
    decode(TOY, problems(70), policy_named(policy), progress=done.append)
    assert sum(done) == 70
    assert min(done) >= 0


@pytest.mark.parametrize("count", [2, 3])
def test_a_few_jobs_for_each_worker_are_taken_ahead_of_the_results(count: int) -> None:
    taken = list[int]()

    def job(number: int) -> int:
        taken.append(number)
        return number

    jobs = map(job, range(50))
    results = spread(jobs, lambda denoiser, moved: lambda job: job * job, TOY, Decoding(workers=count), print)
    assert next(results) == 0
    assert len(taken) == workers.AHEAD * count
    assert [next(results) for _ in range(3)] == [1, 4, 9]
    results.close()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told to keep memory")
def test_memory_of_a_pass_is_kept_for_the_next_one() -> None:
    """Otherwise the system hands out and clears the same pages in every pass, a twenty-fifth of its time."""
    script = """
import resource, torch
from hardtail.decoding.loop import decode
from hardtail.policies.confidence import Top1
from tests.decoding_toys import TOY, problems

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [torch.ones(2 << 20) for _ in range(7)]  # 56 MiB, more than glibc keeps after blocks of 8 MiB
    del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

decode(TOY, problems(3), Top1())
print(*(faults() for _ in range(5)))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=root
    )
    assert int(done.stdout.split()[-1]) < 500  # of 14,336 pages; the first ones may have to grow the heap
