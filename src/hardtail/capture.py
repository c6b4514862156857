"""Work on a GPU as one CUDA graph: captured once, then replayed without the host launching its kernels one by one."""

from collections.abc import Callable

import torch


def captured(work: Callable[[], None], device: torch.device, warm_up: int) -> Callable[[], None]:
    """A replay of `work`, which is done `warm_up` times before, as first uses compile and choose kernels.

    Work that cannot be captured, because it asks the host for a value, is a RuntimeError.
    """
    with torch.cuda.device(device):  # torch makes streams on, and captures from, the current GPU
        usual = torch.cuda.current_stream()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(usual)
        with torch.cuda.stream(aside):
            for _ in range(warm_up):
                work()
        usual.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=aside):
                work()
        finally:  # after a failure torch would leave `aside` as the current stream
            torch.cuda.set_stream(usual)
    return graph.replay
