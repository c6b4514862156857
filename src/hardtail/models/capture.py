"""Work on a GPU as one CUDA graph: captured once, then replayed without the host launching its kernels one by one."""

from collections.abc import Callable
from contextlib import suppress

import torch


def captured(work: Callable[[], None], device: torch.device, warm_up: int) -> Callable[[], None]:
    """A replay of `work`, which first runs `warm_up` times, so that kernels are compiled and chosen.

    Raises RuntimeError if the work cannot be captured because it asks the host for a value.
    """
    with torch.cuda.device(device):  # torch makes streams on, and captures from, the current GPU
        usual = torch.cuda.current_stream()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(usual)
        try:
            with torch.cuda.stream(aside):
                for _ in range(warm_up):
                    work()
        finally:  # a caller that restores its state after a failure must wait for this
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
    """Before torch 2.13, random numbers wait for the end of a failed capture; a capture that succeeds ends it."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with suppress(RuntimeError), torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
        torch.zeros(1, device="cuda")
