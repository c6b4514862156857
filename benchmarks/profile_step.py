"""Where a training step's time goes on a GPU: its kernels by total time, outside the captured graph.

python benchmarks/profile_step.py addition bf16
"""

import sys

import torch
from torch.profiler import ProfilerActivity, profile

from train_step import SETTINGS, build


def main() -> None:
    name, precision = sys.argv[1], sys.argv[2]
    step = build(SETTINGS[name], "random", 256, precision, 0.0)
    print(step.compile())
    for _ in range(3):
        step._once()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(5):
            step._once()
        torch.cuda.synchronize()
    print(trace.key_averages().table(sort_by="cuda_time_total", row_limit=30, max_name_column_width=80))


if __name__ == "__main__":
    main()
