"""Work on a GPU as one CUDA graph: captured once, then replayed without the host launching its kernels one by one."""

from collections.abc import Callable
from contextlib import suppress

import torch


def captured(work: Callable[[], None], device: torch.device, warm_up: int) -> Callable[[], None]:
    """A replay of `work`, which is done `warm_up` times before, as first uses compile and choose kernels.

    Work that cannot be captured, because it asks the host for a value, is a RuntimeError.
    """
    with torch.cuda.device(device):  # torch makes streams on, and captures from, the current GPU
        usual = torch.cuda.current_stream()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(usual)
        try:
            with torch.cuda.stream(aside):
                for _ in range(warm_up):
                    work()
        finally:  # who puts a state back after a failure comes after what was begun
            usual.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=aside):
                work()
        except BaseException:
            torch.cuda.set_stream(usual)  # torch would leave `aside` as the current stream
            _end_of_capture()
            raise
    return graph.replay


def _end_of_capture() -> None:
    """After one that failed, random numbers wait for its end in torch before 2.13; one that succeeds brings it."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with suppress(RuntimeError), torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
        torch.zeros(1, device="cuda")
