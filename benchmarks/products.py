"""The matrix products of a training step in bf16, one by one, on a GPU: cuBLAS's next to ours.

    python benchmarks/products.py --shapes countdown sudoku

Microseconds of one layer's products (batch 256, all cells), and TFLOP/s where it is a product alone: forward with bias,
the gradient of the input, the gradient of the weight in float32, and that for all layers at once, as one batched
product. Then the two products next to GELU, as a product of cuBLAS's and a pass over it, and as one kernel
(`models/kernels/linear.py`). Inputs take turns, so that they do not all lie in the cache.
"""

import argparse
from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor

from attention import microseconds
from hardtail.models.kernels import gelu, tiled_products
from train_step import SETTINGS

BATCH, TURNS = 256, 3
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


def products(rows: int, n: int, k: int, layers: int, ours: ModuleType | None) -> dict[str, float]:
    """Microseconds of each product of a weight [n, k], for one layer."""
    weight_NK, bias_N = random(n, k), random(n)
    x_TMK, g_TMN, out_MN = random(TURNS, rows, k), random(TURNS, rows, n), random(rows, n)
    found = {
        "forward": in_turns(lambda turn: torch.addmm(bias_N, x_TMK[turn], weight_NK.T)),
        "input": in_turns(lambda turn: g_TMN[turn] @ weight_NK),
        "weight": in_turns(lambda turn: torch.mm(g_TMN[turn].T, x_TMK[turn], out_dtype=torch.float32)),
    }
    if ours and ours.pays(weight_NK):
        found["forward, ours"] = in_turns(lambda turn: ours.launch_linear(x_TMK[turn], weight_NK, bias_N, out_MN))
    x_JMK, g_JMN = random(layers, rows, k), random(layers, rows, n)
    batched = microseconds(lambda: torch.bmm(g_JMN.mT, x_JMK, out_dtype=torch.float32), times=5)
    return found | {"weights, batched": batched / layers}


def next_to_gelu(rows: int, width: int, ours: ModuleType | None) -> dict[str, float]:
    """Microseconds of the MLP's wide layer with GELU, and of its gradient with GELU's derivative."""
    wide = LAYERS["widen"][0] * width
    weight_FD, weight_DF, bias_F = random(wide, width), random(width, wide), random(wide)
    x_TMD, h_MF, a_MF = random(TURNS, rows, width), random(rows, wide), random(rows, wide)
    sums_SF = torch.empty((gelu.PROGRAMS, wide), device="cuda")

    def forward(turn: int) -> None:
        gelu.launch_gelu(torch.addmm(bias_F, x_TMD[turn], weight_FD.T), a_MF)

    def backward(turn: int) -> None:
        gelu.launch_gelu_backward(h_MF, x_TMD[turn] @ weight_DF, sums_SF)

    found = {"GELU": in_turns(forward), "derivative": in_turns(backward)}
    if ours:
        few_SF, slope_MF = sums_SF.new_empty((ours.partial_sums(wide), wide)), h_MF.to(ours.SLOPE)
        found["GELU, ours"] = in_turns(lambda turn: ours.launch_gelu(x_TMD[turn], weight_FD, bias_F, slope_MF, a_MF))
        found["derivative, ours"] = in_turns(
            lambda turn: ours.launch_derivative(x_TMD[turn], weight_DF, slope_MF, a_MF, few_SF)
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    shapes, ours = parser.parse_args().shapes, tiled_products(torch.device("cuda"), torch.bfloat16)
    for shape in shapes:
        setting = SETTINGS[shape]
        rows, width = BATCH * setting.length, setting.width
        for layer, (n, k) in LAYERS.items():
            found = products(rows, n * width, k * width, setting.layers, ours)
            rates = {name: 2e-6 * rows * n * k * width**2 / time for name, time in found.items()}
            shown = "  ".join(f"{name} {time:.1f} µs, {rates[name]:.0f}" for name, time in found.items())
            print(f"{shape:10} {layer:8} {shown}", flush=True)
        shown = "  ".join(f"{name} {time:.1f} µs" for name, time in next_to_gelu(rows, width, ours).items())
        print(f"{shape:10} {shown}", flush=True)


if __name__ == "__main__":
    main()
