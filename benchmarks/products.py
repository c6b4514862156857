"""The matrix products of a training step in bf16, one by one, on a GPU: how near each comes to the GPU's ceiling.

    python benchmarks/products.py --shapes countdown sudoku

Microseconds of one layer's products (batch 256, all cells) and their TFLOP/s: forward with bias, the gradient of the
input, the gradient of the weight in float32. Each with cuBLAS's choice and with that of its newer interface
(cublasLt), and the gradients of weights also for all layers at once, as one batched product. Inputs take turns, so
that they do not all lie in the cache.
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

from attention import microseconds
from train_step import SETTINGS

BATCH, TURNS = 256, 3
LIBRARIES = ("cublas", "cublaslt")
LAYERS = {"qkv": (3, 1), "project": (1, 1), "widen": (4, 1), "narrow": (1, 4)}
"""Columns and rows of each layer's weight, in units of the width."""


def random(*shape: int) -> Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def in_turns(work: Callable[[int], object]) -> float:
    """Microseconds of one call, whose argument says which of the inputs to use."""

    def all_turns() -> None:
        for turn in range(TURNS):
            work(turn)

    return microseconds(all_turns) / TURNS


def products(rows: int, n: int, k: int, layers: int) -> dict[str, float]:
    """Microseconds of each product of a weight [n, k], for one layer."""
    weight_NK, bias_N = random(n, k), random(n)
    x_TMK, g_TMN = random(TURNS, rows, k), random(TURNS, rows, n)
    found = {
        "forward": in_turns(lambda turn: torch.addmm(bias_N, x_TMK[turn], weight_NK.T)),
        "input": in_turns(lambda turn: g_TMN[turn] @ weight_NK),
        "weight": in_turns(lambda turn: torch.mm(g_TMN[turn].T, x_TMK[turn], out_dtype=torch.float32)),
    }
    x_JMK, g_JMN = random(layers, rows, k), random(layers, rows, n)
    batched = microseconds(lambda: torch.bmm(g_JMN.mT, x_JMK, out_dtype=torch.float32), times=5)
    return found | {"weights, batched": batched / layers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    for shape in parser.parse_args().shapes:
        setting = SETTINGS[shape]
        rows, totals = BATCH * setting.length, dict.fromkeys(LIBRARIES, 0.0)
        for layer, (n, k) in LAYERS.items():
            n, k = n * setting.width, k * setting.width
            for library in LIBRARIES:
                torch.backends.cuda.preferred_blas_library(library)
                found = products(rows, n, k, setting.layers)
                shown = "  ".join(
                    f"{name} {time:6.1f} µs {2e-6 * rows * n * k / time:4.0f}" for name, time in found.items()
                )
                print(f"{shape:10} {layer:8} {library:9} {shown}", flush=True)
                totals[library] += sum(found.values()) - found["weights, batched"]
        print(f"{shape:10} one layer: {', '.join(f'{name} {time:.0f} µs' for name, time in totals.items())}")


if __name__ == "__main__":
    main()
