"""Where a training step's time goes on a GPU: its kernels by total time, outside the captured graph.

python benchmarks/profile_step.py addition --precision tf32 --dropout 0.1
"""

import argparse

import torch
from torch.profiler import ProfilerActivity, profile

from arguments import how_many
from hardtail.models.precision import matmul_precision
from train_step import PRECISIONS, SETTINGS, build, schemes

STEPS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SETTINGS)
    parser.add_argument("--scheme", choices=schemes(SETTINGS["addition"]), default="random")
    parser.add_argument("--precision", choices=PRECISIONS, default="bf16")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--kernels", type=how_many, default=30, help="rows of the table")
    words = parser.parse_args()
    step = build(SETTINGS[words.shape], words.scheme, 256, words.precision, words.dropout)
    print(step.compile())
    with matmul_precision(step.precision):  # outside the graph, another precision would compile the step again
        for _ in range(3):
            step._once()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            for _ in range(STEPS):
                step._once()
            torch.cuda.synchronize()
    print(f"{STEPS} steps")
    print(trace.key_averages().table(sort_by="cuda_time_total", row_limit=words.kernels, max_name_column_width=80))


if __name__ == "__main__":
    main()
