"""One training step at the study's five shapes: plain eager PyTorch beside ours, in one run, on a CPU or a GPU.

    python benchmarks/train_step.py                              # what this machine has
    python benchmarks/train_step.py --precision tf32+bf16 --dropout 0.1 --shapes addition maze
    python benchmarks/train_step.py --jobs 16                    # models compile side by side, then time in turn
    python benchmarks/train_step.py --tiles on off --shapes countdown sudoku --no-plain    # with and without `linear`
    python benchmarks/train_step.py --tiles all off --shapes addition --no-plain           # also where it is not used

The plain step has the same maths the way it is usually written: batches drawn and masked on the host, autocast, the
whole sequence computed, `torch.optim.AdamW`, an EMA by a loop over parameters. Data is random tokens in the tasks'
shapes.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

from arguments import how_many
from hardtail.core.types import Instances
from hardtail.models.attention import HAS_TRITON
from hardtail.models.kernels import TILED_WIDTH
from hardtail.models.precision import Precision
from hardtail.models.transformer import Block, Shape, Transformer
from hardtail.schemes import Corpus, Focal, Mixture, Papl, Puma, Random, Scheme
from hardtail.schemes.puma import official, oracle_order, paper
from hardtail.schemes.stages import Fixed
from hardtail.training.optimiser import AdamW
from hardtail.training.step import AttentionPrecision, Step
from in_turn import in_turn, standing_still

MASK = 1
PRECISIONS: dict[str, tuple[Precision, AttentionPrecision]] = {
    "fp32": ("fp32", "same"),
    "tf32": ("tf32", "same"),
    "tf32+bf16": ("tf32", "bf16"),
    "bf16": ("bf16", "same"),
}
"""`tf32+bf16` computes attention in bf16 and all else in tf32."""
TILES = {"on": TILED_WIDTH, "all": 0, "off": sys.maxsize}
"""The width of a model from which our own products are used: as usual, always, never."""


@dataclass(frozen=True)
class Setting:
    """A task's shape, as far as speed knows it."""

    layers: int
    heads: int
    width: int
    vocab: int
    length: int
    answer: int
    hidden: int
    """Maskable cells."""
    prompt: int | None
    """Where the answer starts; None where it varies."""
    stages: int

    def shape(self, dropout: float) -> Shape:
        return Shape(self.layers, self.heads, self.width, self.vocab, self.length, dropout=dropout)

    def instances(self, n: int) -> Instances:
        rng = np.random.default_rng(0)
        tokens = rng.integers(2, self.vocab, (n, self.length), dtype=np.uint8)
        if self.prompt is None:
            starts = rng.integers(self.length // 4, self.length - self.answer, n, dtype=np.int32)
        else:
            starts = np.full(n, self.prompt, dtype=np.int32)
        maskable = rng.permuted(np.arange(self.answer) < self.hidden, axis=0)
        everywhere = np.tile(maskable, (n, 1))
        ranks = np.where(everywhere, np.arange(self.answer, dtype=np.int16), np.int16(-1))
        return Instances(tokens, starts, everywhere, everywhere, orders={"any": ranks})

    def flops(self, batch: int) -> float:
        """Floating-point operations of one step of the full computation: forward once, backward twice."""
        d, tokens = self.width, batch * self.length
        per_token = self.layers * (2 * 12 * d * d + 4 * self.length * d) + 2 * d * self.vocab
        return 3.0 * tokens * per_token


SETTINGS = {
    "addition": Setting(2, 2, 128, 14, 99, 33, 33, 66, 16),
    "maze": Setting(3, 3, 192, 9, 884, 441, 197, 442, 40),
    "listops": Setting(3, 3, 192, 37, 200, 20, 20, None, 10),
    "countdown": Setting(12, 12, 384, 36, 60, 40, 40, None, 20),
    "sudoku": Setting(8, 8, 256, 13, 163, 81, 56, 82, 40),
}


def schemes(setting: Setting) -> dict[str, Scheme]:
    puma = Puma(stages=Fixed(setting.stages))
    return {
        "random": Random(),
        "papl": Papl(),
        "puma": puma,
        "mixture": Mixture(puma, Random()),
        "focal": Focal(),
        "puma-paper": paper(puma.stages),
        "puma-official": official(puma.stages),
        "oracle": oracle_order(puma.stages),
    }


class Plain:
    """The step as it is usually written."""

    def __init__(self, setting: Setting, instances: Instances, batch: int, precision: str, dropout: float) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = Transformer(setting.shape(dropout)).initialise(torch.Generator().manual_seed(0)).to(self.device)
        self.ema = [parameter.detach().clone() for parameter in self.model.parameters()]
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
        self.data, self.batch, self.precision = instances, batch, precision
        self.rng = np.random.default_rng(0)
        self.dropout = dropout

    def __call__(self) -> None:
        rows = self.rng.choice(len(self.data), self.batch, replace=False)
        gold = torch.from_numpy(self.data.tokens_NL[rows]).long().to(self.device)
        at = torch.from_numpy(self.data.answer_at_NA[rows]).to(self.device)
        maskable = self.data.maskable_NA[rows]
        hidden = torch.from_numpy((self.rng.random(maskable.shape) < self.rng.random((self.batch, 1))) & maskable)
        hidden = hidden.to(self.device)
        shown = gold.scatter(1, at, torch.where(hidden, MASK, gold.gather(1, at)))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            logits = self._logits(shown)
        answer = logits.gather(1, at[..., None].expand(-1, -1, logits.shape[-1])).float()
        nll = F.cross_entropy(answer.flatten(0, 1), gold.gather(1, at).flatten(), reduction="none").view_as(at)
        loss = ((nll * hidden).sum(1) / hidden.sum(1).clamp(min=1)).mean()
        self.optimiser.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        with torch.no_grad():
            for mean, parameter in zip(self.ema, self.model.parameters(), strict=True):
                mean.lerp_(parameter, 1e-4)

    def _logits(self, tokens: torch.Tensor) -> torch.Tensor:
        model, rate = self.model, self.dropout
        x = F.dropout(model.embed(tokens) + model.position.weight[: tokens.shape[1]], rate)
        for block in model.blocks:
            assert isinstance(block, Block)
            packed = block.qkv(block.norm_attention(x)).view(*x.shape[:2], 3, block.heads, -1)
            q, k, v = packed.permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=rate)
            x = x + F.dropout(block.project(mixed.transpose(1, 2).flatten(-2)), rate)
            x = x + F.dropout(block.narrow(F.gelu(block.widen(block.norm_mlp(x)))), rate)
        return F.linear(model.norm(x), model.embed.weight)


def milliseconds(work: Callable[[], None], seconds: float) -> float:
    """Mean time of a call, after warming up, over about `seconds`."""

    def timed(times: int) -> float:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(times):
            work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter() - began

    timed(3)
    once = timed(3) / 3
    times = max(int(seconds / once), 3)
    return min(timed(times) for _ in range(3)) / times * 1000


def matmul_ceiling(precision: str) -> float:
    """Operations per second of a large matrix product on random data."""
    cuda = torch.cuda.is_available()
    size = 8192 if cuda else 1024
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    left = torch.randn(size, size, device="cuda" if cuda else "cpu", dtype=kind)
    right = torch.randn_like(left)
    out = torch.empty_like(left)

    def product() -> None:
        torch.mm(left, right, out=out)

    return 2 * size**3 / (milliseconds(product, 0.3) / 1000)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    shape: str
    scheme: str
    precision: str
    dropout: float
    batch: int
    seconds: float
    tiles: str = "on"
    """Where the products of `models.kernels.linear` are used: one of `TILES`."""

    @property
    def setting(self) -> Setting:
        return SETTINGS[self.shape]

    def plain(self) -> float:
        _allow(self.precision)
        plain = Plain(self.setting, self.setting.instances(8 * self.batch), self.batch, self.precision, self.dropout)
        return milliseconds(plain, self.seconds)

    def ready(self) -> Callable[[], tuple[float, str]]:
        """Compile; what is returned times a step, and says how it runs."""
        _allow(self.precision)
        use_tiles(self.tiles)
        step = build(self.setting, self.scheme, self.batch, self.precision, self.dropout)
        began = time.perf_counter()
        how = step.compile()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        how = f"{how}, tiles {self.tiles}, {time.perf_counter() - began:.0f} s to get ready"
        return lambda: (milliseconds(step, self.seconds), how)


def build(setting: Setting, scheme: str, batch: int, precision: str, dropout: float) -> Step:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Transformer(setting.shape(dropout)).initialise(torch.Generator().manual_seed(0)).to(device)
    corpus = Corpus.on(device, setting.instances(8 * batch), MASK, "any")
    number, attention = PRECISIONS[precision]
    return Step(
        model.train(),
        schemes(setting)[scheme],
        corpus,
        AdamW(),
        batch=batch,
        steps=100_000,
        seed=0,
        precision=number,
        attention=attention,
    )


def teraflops(rate: float) -> str:
    """Operations per second as a figure of the table; on a CPU it is a small part of one."""
    return f"{rate / 1e12:.1f}" if rate >= 1e13 else f"{rate / 1e12:.3f}"


def use_tiles(tiles: str) -> None:
    if HAS_TRITON:
        forward: Any = import_module("hardtail.models.forward")
        forward.TILED_WIDTH = TILES[tiles]


def _allow(precision: str) -> None:
    torch.set_float32_matmul_precision("highest" if precision == "fp32" else "high")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    known = list(schemes(SETTINGS["addition"]))
    parser.add_argument(
        "--schemes", nargs="+", choices=known, default=known[:4], help="all of them: " + " ".join(known)
    )
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=["bf16"])
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.0])
    parser.add_argument("--tiles", nargs="+", choices=TILES, default=["on"], help="widths that use our own products")
    parser.add_argument("--batch", type=how_many, default=256)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--jobs", type=how_many, default=1, help="rows that compile at the same time")
    parser.add_argument("--hold", nargs="+", type=int, default=[], help="processes to stop during timing")
    parser.add_argument("--no-plain", action="store_true", help="leave the plain eager step out")
    words = parser.parse_args()

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{device}, torch {torch.__version__}, batch {words.batch}")
    ceilings = {}
    with standing_still(words.hold):
        for precision in words.precision:
            _allow(precision)
            ceilings[precision] = matmul_ceiling(precision)
            print(f"{precision}: matrix products run at {teraflops(ceilings[precision])} TFLOP/s")
    rows = [
        Row(shape, scheme, precision, dropout, words.batch, words.seconds, tiles)
        for scheme, precision, dropout, shape, tiles in itertools.product(
            words.schemes, words.precision, words.dropout, words.shapes, words.tiles
        )
    ]
    print("shape      precision dropout scheme         plain ms  ours ms  ratio  TFLOP/s of ceiling", flush=True)
    plain: dict[tuple[str, str, float], float | None] = {}
    for place, (ours, how) in in_turn(rows, words.jobs, words.hold):
        row = rows[place]
        key = row.shape, row.precision, row.dropout
        if key not in plain:
            plain[key] = None if words.no_plain else row.plain()
        beside = plain[key]
        theirs, ratio = ("-", "-") if beside is None else (f"{beside:.2f}", f"{beside / ours:.1f}×")
        rate = row.setting.flops(words.batch) / ours * 1000
        print(
            f"{row.shape:10} {row.precision:9} {row.dropout:7.1f} {row.scheme:13} {theirs:>9} {ours:8.3f} "
            f"{ratio:>6} {teraflops(rate):>8} {rate / ceilings[row.precision]:9.1%}  {how}",
            flush=True,
        )


if __name__ == "__main__":
    main()
