"""Training that needs no remedy: does a model stop taking the shortcut if it sees its own wrong tokens?

    python benchmarks/fine_tune.py addition-papl-paper --minutes 5 --out build/fine-tuned.jsonl

A shipped model is trained on for a few minutes on ordinary problems, in one of these states:

`gold`   hidden at random, everything else right: more of the same, the control
`own`    hidden at random, and a part of that filled at once with the model's own tokens
`path`   on its own decoding path: a few cells more in every step, by confidence, with its own tokens

Own tokens are drawn from p^(1/3): at temperature 1 this model writes next to no wrong token in ordinary problems. The
loss is the mean over hidden cells and wrong written ones, with the gold token as the target. Each model is then
measured on ordinary problems and on the hard tail; a line of the output is one of these measurements.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from arguments import how_many
from hardtail import zoo
from hardtail.core.files import add_line
from hardtail.core.records import as_json
from hardtail.decoding.options import Decoding
from hardtail.measuring.evaluate import chosen_policies, evaluate, measured_instances
from hardtail.measuring.subject import Subject, load_subject
from hardtail.models.denoiser import ModelDenoiser
from hardtail.schemes.base import Corpus, Rows, log_likelihood
from hardtail.study.claims.ours.remedy import HARDEST
from hardtail.tasks import datasets as data

POLICIES = ("threshold", "top1", "p2", "check")
BATCH, RATE, TEMPERATURE, PROBLEMS = 64, 1e-4, 3.0, 20_000
A_STEP = 3
"""Cells that a step of the path commits."""


class States:
    """A batch of states: what is written [B, A], with the mask where a cell is hidden. Shapes: B batch, A cells."""

    def __init__(self, corpus: Corpus, draw: torch.Generator) -> None:
        self.corpus, self.draw = corpus, draw  # on the same device
        self.rows = self.drawn()
        self.written_BA = torch.where(self.rows.maskable_BA, corpus.mask_id, self.rows.gold_BA)

    def drawn(self) -> Rows:
        row_B = torch.randint(len(self.corpus), (BATCH,), generator=self.draw, device=self.draw.device)
        return self.corpus.rows(row_B)

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.draw, device=self.draw.device)

    def tokens_BL(self) -> Tensor:
        return self.rows.tokens_BL.scatter(1, self.rows.at_BA, self.written_BA)

    def sample(self, logits_BAV: Tensor) -> Tensor:
        logits_BAV = logits_BAV.detach().clone()
        logits_BAV[..., self.corpus.mask_id] = -torch.inf
        noise_BAV = self.uniform(*logits_BAV.shape).clamp(min=1e-20)
        return (logits_BAV / TEMPERATURE - (-noise_BAV.log()).log()).argmax(dim=-1)

    def gold(self, model: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.rows = self.drawn()
        key_BA = self.uniform(*self.rows.gold_BA.shape).masked_fill(~self.rows.maskable_BA, 2.0)
        hidden_BA = (key_BA < self.uniform(BATCH, 1)) | (key_BA == key_BA.amin(1, keepdim=True))
        self.written_BA = torch.where(hidden_BA, self.corpus.mask_id, self.rows.gold_BA)

    def own(self, model: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.gold(model)
        with torch.no_grad():
            said_BA = self.sample(model(self.tokens_BL(), self.rows.at_BA))
        key_BA = self.uniform(*said_BA.shape)
        filled_BA = (self.written_BA == self.corpus.mask_id) & (key_BA < self.uniform(BATCH, 1))
        self.written_BA = torch.where(filled_BA, said_BA, self.written_BA)

    def path(self, model: Callable[[Tensor, Tensor], Tensor]) -> None:
        """One step on; complete answers are replaced by new problems."""
        with torch.no_grad():
            logits_BAV = model(self.tokens_BL(), self.rows.at_BA)
        hidden_BA = self.written_BA == self.corpus.mask_id
        sure_BA = logits_BAV.log_softmax(-1).amax(-1).masked_fill(~hidden_BA, -torch.inf)
        commit_BA = torch.zeros_like(hidden_BA).scatter_(1, sure_BA.topk(A_STEP, dim=1).indices, True) & hidden_BA
        self.written_BA = torch.where(commit_BA, self.sample(logits_BAV), self.written_BA)
        over_B = ~(self.written_BA == self.corpus.mask_id).any(dim=1)
        fresh = self.drawn()
        row_B = torch.where(over_B, fresh.row_B, self.rows.row_B)
        self.rows = self.corpus.rows(row_B)
        start_BA = torch.where(self.rows.maskable_BA, self.corpus.mask_id, self.rows.gold_BA)
        self.written_BA = torch.where(over_B[:, None], start_BA, self.written_BA)


def trained(subject: Subject, kind: str, minutes: float, seed: int) -> int:
    """Train the subject's model in place; return the number of steps."""
    assert isinstance(subject.denoiser, ModelDenoiser)
    model, draw = subject.denoiser.model, torch.Generator(subject.device).manual_seed(seed)
    instances = data.build(subject.task, data.TRAIN, seed, PROBLEMS).instances
    corpus = Corpus.on(torch.device(subject.device), instances, subject.denoiser.mask_id)
    states = States(corpus, draw)
    model.requires_grad_(True)
    optimiser = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.01)
    began, steps, last = time.monotonic(), 0, math.nan
    while time.monotonic() - began < 60 * minutes:
        getattr(states, kind)(model)
        asked_BA = states.rows.maskable_BA & (states.written_BA != states.rows.gold_BA)
        logits_BAV = model(states.tokens_BL(), states.rows.at_BA)
        loss = -(log_likelihood(logits_BAV, states.rows.gold_BA) * asked_BA).sum() / asked_BA.sum().clamp(min=1)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        steps += 1
        if steps % 50 == 0:  # a GPU need not wait for the host more often
            last = float(loss.detach())
    model.requires_grad_(False)
    print(f"{subject.name:20} {kind:5} {steps} steps, loss {last:.4f}", flush=True)
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a name of the zoo")
    parser.add_argument("--states", nargs="+", choices=["none", "gold", "own", "path"], default=["gold", "own", "path"])
    parser.add_argument("--minutes", type=float, default=5.0, help="of training, for each kind of state")
    parser.add_argument("-n", type=how_many, default=200, help="instances of each stratum")
    parser.add_argument("--seed", type=int, default=1, help="of the instances that are measured on")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for kind in asked.states:
        subject = load_subject(zoo.PREFIX + asked.model, device=asked.device)
        steps = 0 if kind == "none" else trained(subject, kind, asked.minutes, seed=0)
        for stratum in ("natural", HARDEST[subject.task.name]):
            instances = measured_instances(subject.task, stratum, asked.n, asked.seed)
            for name, policy in chosen_policies(subject.task, (*POLICIES, subject.task.order_names[0])).items():
                record = evaluate(subject, name, policy, instances, stratum, Decoding(device=asked.device)).record
                found = f"{record.exact_match:.3f} in {record.passes:.1f} passes"
                print(f"{subject.name:20} {kind:5} {stratum:10} {name:10} {found}", flush=True)
                if asked.out:
                    about = {"states": kind, "steps_more": steps, "batch": BATCH, "data_seed": asked.seed}
                    add_line(asked.out, json.dumps(as_json(record) | about).encode() + b"\n")


if __name__ == "__main__":
    main()
