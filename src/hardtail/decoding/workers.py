"""Jobs on a CPU, spread over workers that each compute in a single thread; results are the same for any number of them.

A worker is a thread of its own, with its own batch. Splitting every matrix product over the cores instead makes the
cores wait for each other hundreds of times in a step, which takes many times as long when other programs use them too;
workers never wait for each other. Torch releases the interpreter's lock while it computes, so threads fill the cores.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from hardtail.core.cores import usable_cores
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import Denoiser, ModelDenoiser
from hardtail.models.precision import matmul_precision
from hardtail.models.transformer import Transformer

Job = TypeVar("Job")
Result = TypeVar("Result")
Progress = Callable[[int], None]
"""Called with the number of instances that were just finished."""
Begin = Callable[[Denoiser, Progress], Callable[[Job], Result]]
"""Makes what one worker does with a job, from the denoiser and the function that it reports progress to."""
AHEAD = 2
"""Jobs for each worker that are under way or waiting, so that none is idle while results are taken."""
REPORT_EVERY = 0.2
"""Seconds between reports of progress while workers work."""
MAPPED = 31 << 20
"""Bytes of the block by which glibc learns to keep memory: just under the largest one that it learns from."""


def spread(
    jobs: Iterable[Job], begin: Begin[Job, Result], denoiser: Denoiser, decoding: Decoding, progress: Progress
) -> Generator[Result, None, None]:
    """The results of the jobs, in their order. `progress` is called in this thread only."""
    count = worker_count(denoiser, decoding)
    on_cpu = torch.device(decoding.device).type == "cpu"
    if on_cpu:
        _keep_freed_memory()
    if on_cpu and isinstance(denoiser, ModelDenoiser) and not torch.is_autocast_enabled("cpu"):
        with computing_threads(1):
            denoiser = denoiser.packed()
    if count > 1:
        yield from _Crew(count, denoiser, progress).results(jobs, begin)
        return
    work = begin(denoiser, progress)
    single = on_cpu and (decoding.workers == 1 or is_ours(denoiser))
    for job in jobs:
        with computing_threads(1) if single else nullcontext():
            result = work(job)
        yield result


def _keep_freed_memory() -> None:
    """Let glibc keep the memory of a pass for the next one, for which the system would clear the same pages again.

    When a program frees a block that was mapped, glibc takes blocks of up to that size from its heaps from then on, and
    gives back only what lies free at the end of a heap beyond twice that size. Nothing is written into this block.
    """
    torch.empty(MAPPED, dtype=torch.uint8, device="cpu")


def worker_count(denoiser: Denoiser, decoding: Decoding) -> int:
    """How many workers share the instances: those asked for, or as many as torch may use of the cores that there are.

    By default a denoiser that is not ours has one, because it may not expect calls from several threads.
    """
    if torch.device(decoding.device).type != "cpu" or torch.is_autocast_enabled("cpu"):  # that holds for one thread
        return 1
    return decoding.workers or (min(usable_cores(), torch.get_num_threads()) if is_ours(denoiser) else 1)


def is_ours(denoiser: Denoiser) -> bool:
    """Whether this is our own transformer, which takes any number of rows, from any thread."""
    if isinstance(denoiser, _Stoppable):
        denoiser = denoiser.denoiser
    if not isinstance(denoiser, ModelDenoiser):
        return False
    return isinstance(denoiser.model, Transformer) and not denoiser.compiled


def predicts_some(denoiser: Denoiser) -> bool:
    """Whether it is asked about some of the answer cells. Other denoisers may need the places of all, and torch would
    compile a pass for each number of cells, half a minute at a time."""
    return isinstance(denoiser, ModelDenoiser) and not (denoiser.model.whole_answers or denoiser.compiled)


@contextmanager
def computing_threads(count: int) -> Iterator[None]:
    """Let torch compute with this many threads in this thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Crew:
    """Workers, and what they share with the thread that waits for them: the wish to stop, and progress."""

    def __init__(self, count: int, denoiser: Denoiser, progress: Progress) -> None:
        self.count, self.denoiser, self.progress = count, denoiser, progress
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.moved = 0
        self.own = threading.local()
        """What each worker does with a job."""

    def results(self, jobs: Iterable[Job], begin: Begin[Job, Result]) -> Iterator[Result]:
        denoiser = _Stoppable(self.denoiser, self.stopping)

        def work(job: Job) -> Result:
            with torch.inference_mode():
                if not hasattr(self.own, "work"):
                    self.own.work = begin(denoiser, self._move)
                result: Result = self.own.work(job)
                return result

        before = torch.get_num_threads()
        pool = ThreadPoolExecutor(self.count, "hardtail", torch.set_num_threads, (1,))
        pending: deque[Future[Result]] = deque()
        # The setting is the process's: set here once, so that workers find it set and need not change it.
        ours = self.denoiser if isinstance(self.denoiser, ModelDenoiser) else None
        with matmul_precision(ours.precision) if ours else nullcontext():
            try:
                for job in jobs:
                    pending.append(pool.submit(work, job))
                    if len(pending) == AHEAD * self.count:
                        yield self._awaited(pending.popleft())
                while pending:
                    yield self._awaited(pending.popleft())
            finally:  # also after an error, an interrupt, or when nobody wants the rest
                self.stopping.set()
                pool.shutdown(cancel_futures=True)
                torch.set_num_threads(before)  # threads that start from now on take this number, not the workers'

    def _awaited(self, future: "Future[Result]") -> Result:
        while not wait([future], REPORT_EVERY).done:
            self._report()
        self._report()
        return future.result()

    def _report(self) -> None:
        with self.lock:
            moved, self.moved = self.moved, 0
        if moved:
            self.progress(moved)

    def _move(self, instances: int) -> None:
        with self.lock:
            self.moved += instances


class _NotWantedError(Exception):
    """Ends the job of a worker whose result nobody waits for."""


@dataclass(frozen=True)
class _Stoppable:
    """A denoiser whose forward passes end the job once the crew stops."""

    denoiser: Denoiser
    stopping: threading.Event

    @property
    def mask_id(self) -> int:
        return self.denoiser.mask_id

    def logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        if self.stopping.is_set():
            raise _NotWantedError
        return self.denoiser.logits(tokens_BL, at_BA)
