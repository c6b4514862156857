"""Decoding at the study's five shapes: the obvious loop beside ours, in one run, on a CPU or a GPU.

    python benchmarks/decode.py                              # what this machine has
    python benchmarks/decode.py --shapes addition -n 10000 --all-steps
    python benchmarks/decode.py --precision bf16 --against fp32

The obvious loop is eager, takes 128 instances at a time, computes the whole sequence, and asks after every step whether
anything is left. Both commit by top-1 probability, in the same precision unless told otherwise, on
random weights and tokens; on a GPU ours runs the written passes in bf16 and a compiled model otherwise, whose
compilation is not timed, and on a CPU it spreads the instances over single-threaded workers.
One step costs the same whatever is hidden and however many cells it commits, so by default a decode has only a few
steps, each with its share of the cells, and instances per second are worked out for one cell a step; `--all-steps`
takes them all.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from torch import Tensor

from arguments import how_many
from hardtail.core.types import Instances
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import Denoiser, Function, ModelDenoiser
from hardtail.models.precision import Precision, computing
from hardtail.models.transformer import Transformer
from hardtail.policies.base import Commit
from hardtail.policies.confidence import Top1
from in_turn import in_turn
from train_step import MASK, SETTINGS

OBVIOUS_BATCH = 128
ON_GPU = {"addition": 8192, "maze": 1024, "listops": 4096, "countdown": 2048, "sudoku": 2048}
"""Instances, so that either loop takes about a second."""


def eagerly(model: Transformer, precision: Precision, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
    """A pass as the model is defined, also where `ModelDenoiser` has written ones."""
    with computing(precision, tokens_BL.device):
        return model(tokens_BL, at_BA)


@torch.no_grad()
def obvious(denoiser: Denoiser, instances: Instances, steps: int, device: torch.device) -> Tensor:
    """The loop as it is usually written; returns the answers. Every instance has as many cells to fill."""
    done: list[Tensor] = []
    for start in range(0, len(instances), OBVIOUS_BATCH):
        part = instances.take(slice(start, start + OBVIOUS_BATCH))
        tokens = torch.from_numpy(part.tokens_NL).long().to(device)
        at = torch.from_numpy(part.answer_at_NA).to(device)
        hidden = torch.from_numpy(part.maskable_NA).to(device, copy=True)
        everything = torch.arange(tokens.shape[1], device=device).expand(len(part), -1)
        left, step = int(part.maskable_NA[0].sum()), 0
        tokens.scatter_(1, at, torch.where(hidden, MASK, tokens.gather(1, at)))
        while hidden.any():
            logits = denoiser.logits(tokens, everything)
            logits = logits.gather(1, at[..., None].expand(-1, -1, logits.shape[-1])).float()
            logits[..., MASK] = -torch.inf
            surest, token = logits.softmax(-1).max(-1)
            count = math.ceil(left / (steps - step))
            cell = surest.masked_fill(~hidden, -1).topk(count).indices
            tokens.scatter_(1, at.gather(1, cell), token.gather(1, cell))
            hidden.scatter_(1, cell, False)
            left, step = left - count, step + 1
        done.append(tokens.gather(1, at))
    return torch.cat(done)


def seconds(work: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    shape: str
    precision: Precision
    against: Precision
    """The obvious loop's precision."""
    n: int
    steps: int
    device: str
    rounds: int

    def ready(self) -> Callable[[], str]:
        """Compile and compare; what is returned times both loops and writes the line."""
        setting, device = SETTINGS[self.shape], torch.device(self.device)
        model = Transformer(setting.shape(0.0)).initialise(torch.Generator().manual_seed(0)).to(device)
        usual = Function(partial(eagerly, model, self.against), MASK)
        faster = ModelDenoiser(model, MASK, self.precision, compiled=device.type == "cuda")
        steps = min(self.steps, setting.hidden)
        instances = setting.instances(self.n)
        few = instances.take(slice(OBVIOUS_BATCH))
        answers = obvious(usual, few, steps, device)
        doing = Decoding(Commit(steps=steps), device=str(device))
        ours_NA = decode(faster, few, Top1(), doing).answer_NA
        same = (answers.cpu().numpy() == ours_NA).all(axis=1).mean()
        if device.type == "cuda":  # another batch is compiled anew
            decode(faster, instances, Top1(), doing)

        def measure() -> str:
            share = self.n * steps / setting.hidden
            plain: list[float] = []
            ours: list[float] = []
            for _ in range(self.rounds):  # in turn, so that other work on the machine slows both down
                plain.append(share / seconds(lambda: obvious(usual, instances, steps, device), device))
                ours.append(share / seconds(lambda: decode(faster, instances, Top1(), doing), device))
            ratio = median(fast / slow for slow, fast in zip(plain, ours, strict=True))
            loops = f"{self.against:>7} {max(plain):10.2f} {self.precision:>9} {max(ours):10.2f}"
            return f"{self.shape:10} {setting.hidden:5} {self.n:6} {loops} {ratio:6.2f}× {same:9.1%}"

        return measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = ("fp32", "tf32", "bf16")
    parser.add_argument("--shapes", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("-n", type=how_many, help="instances [128 on a CPU, 1,024 to 8,192 on a GPU]")
    parser.add_argument("--steps", type=how_many, help="steps of a decode [8 on a CPU, 16 on a GPU]")
    parser.add_argument("--all-steps", action="store_true", help="one for each cell")
    parser.add_argument("--precision", nargs="+", choices=kinds, default=["fp32"])
    parser.add_argument("--against", choices=kinds, help="precision of the obvious loop [the same as ours]")
    parser.add_argument(
        "--rounds", type=how_many, default=3, help="pairs of timings; the best rates and the median ratio"
    )
    parser.add_argument("--jobs", type=how_many, default=1, help="rows that compile at the same time")
    parser.add_argument("--hold", nargs="+", type=int, default=[], help="processes to stop during timing")
    words = parser.parse_args()
    cuda = torch.cuda.is_available()
    steps = 10**6 if words.all_steps else words.steps or (16 if cuda else 8)
    print(f"{torch.cuda.get_device_name() if cuda else 'CPU'}, torch {torch.__version__}, {steps} steps at most")
    print("shape      cells      n obvious   a second      ours   a second  ratio same answers", flush=True)
    rows = [
        Row(
            shape,
            precision,
            words.against or precision,
            words.n or (ON_GPU[shape] if cuda else OBVIOUS_BATCH),
            steps,
            "cuda" if cuda else "cpu",
            words.rounds,
        )
        for precision in words.precision
        for shape in words.shapes
    ]
    for _, line in in_turn(rows, words.jobs, words.hold):
        print(line, flush=True)


if __name__ == "__main__":
    main()
