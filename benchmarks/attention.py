"""Attention at the study's five shapes on a GPU: PyTorch's beside our kernels, with and without dropout, of all cells
and of those that the last block computes.

    python benchmarks/attention.py                               # bf16 and tf32
    python benchmarks/attention.py --precision tf32 --tiles 32:4:1 64:4:1 64:8:3

Microseconds of one layer over a batch of 256 on the GPU (a captured graph, so without launches): forward, and forward
with backward. PyTorch chooses its own kernels; in tf32 it is given float32 and allowed to multiply in tf32. `--tiles`
tries sides, warps and stages of our kernels; without it they are those that the package uses where it uses ours.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from hardtail.models.attention import fused, split
from hardtail.models.kernels import attention as attention_kernels
from train_step import SETTINGS, Setting

KINDS = {"bf16": torch.bfloat16, "tf32": torch.float32}
Attention = Callable[[Tensor, Tensor | None], Tensor]
Tile = tuple[int, int, int]
"""Queries and keys of a tile, warps, and stages of the kernels that walk over keys or queries."""


def microseconds(work: Callable[[], object], times: int = 20) -> float:
    """One call on the GPU: the best of a few replays of a graph that holds `times` of them."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            work()
    found: list[float] = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end) / times * 1000)
    return min(found)


def both_ways(attention: Attention, packed: Tensor, query: Tensor | None) -> str:
    """Forward, and forward with backward; with queries of their own, `packed` holds keys and values."""
    free = packed.detach(), None if query is None else query.detach()
    given = [packed] if query is None else [packed, query]
    gradient = torch.randn_like(split(packed, query)[0])
    try:
        forward = microseconds(lambda: attention(*free))
        whole = microseconds(lambda: torch.autograd.grad(attention(packed, query), given, gradient))
    except Exception as error:  # a tile that does not fit is an answer too
        return f"not possible: {type(error).__name__}"
    return f"{forward:6.0f} / {whole:6.0f}"


def attentions(setting: Setting, dropout: float, tiles: list[Tile | None]) -> dict[str, Attention]:
    heads, seed = setting.heads, torch.ones(1, dtype=torch.int32, device="cuda")

    def torchs(packed: Tensor, query: Tensor | None) -> Tensor:
        q, k, v = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in split(packed, query))
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout).transpose(1, 2).flatten(-2)

    def ours(tile: Tile | None) -> Attention:
        def attention(packed: Tensor, query: Tensor | None) -> Tensor:
            if tile is not None:
                side, warps, stages = tile
                kinds = dict.fromkeys(("forward", "backward", "queries", "keys"), (side, side, warps, stages))
                attention_kernels.HOLDING = kinds
                attention_kernels.LOOPING = {2: kinds, 4: kinds}
            return fused(packed, query, seed, heads, dropout)[0]

        return attention

    return {"torch": torchs, **{f"ours {tile or ''}": ours(tile) for tile in tiles}}


def _tile(text: str) -> Tile:
    side, warps, stages = text.split(":")
    return int(side), int(warps), int(stages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--precision", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.0, 0.1])
    parser.add_argument("--tiles", nargs="+", default=[], help="SIDE:WARPS:STAGES of our kernels")
    words = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    tiles: list[Tile | None] = [_tile(text) for text in words.tiles] or [None]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; microseconds, forward / with backward")
    for name in words.shapes:
        setting = SETTINGS[name]
        for precision in words.precision:
            how: dict[str, Any] = {"device": "cuda", "dtype": KINDS[precision], "requires_grad": True}
            packed = torch.randn(256, setting.length, 3 * setting.width, **how)
            pair = torch.randn(256, setting.length, 2 * setting.width, **how)
            query = torch.randn(256, setting.hidden, setting.width, **how)
            for dropout in words.dropout:
                for label, attention in attentions(setting, dropout, tiles).items():
                    for block, given in {"": (packed, None), ", last block": (pair, query)}.items():
                        found = both_ways(attention, *given)
                        print(f"{name + block:21} {precision} dropout {dropout:.1f} {label:16} {found}", flush=True)


if __name__ == "__main__":
    main()
