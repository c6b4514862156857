"""What a head or a planner, fitted on ordinary problems, knows about the hard tail; the model itself stays frozen.

    python benchmarks/learned.py addition-papl-paper addition-random --out build/learned

Three heads for each model (`training.heads`): is this written token right (PRISM), is this cell the next in the logical
order, would the model still say the same once all other cells are written. The first is asked which answers are wrong
(AUROC of its doubt), and names the suspects of `policies.learned.Suspects`; the others order the cells. A line of
`OUT/RUN.jsonl` is one measurement, and `OUT/RUN.HEAD.jsonl` has the first loss of a fit and the mean of its last ones.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from arguments import how_many
from hardtail import zoo
from hardtail.core.pretrained import ZOO
from hardtail.core.records import Head, LogLine, Trust, append_jsonl
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.evaluate import evaluate, keep
from hardtail.measuring.statistics import auroc
from hardtail.measuring.subject import Subject, load_subject
from hardtail.models.heads import CellHead
from hardtail.policies.base import Policy
from hardtail.policies.confidence import Top1
from hardtail.policies.learned import Planned, Suspects
from hardtail.policies.parallel import Threshold
from hardtail.study.claims.ours.remedy import DETECTED
from hardtail.training.heads import Agreeing, Fit, InOrder, Teacher, Written, fitted

TEACHERS: dict[str, Teacher] = {"written": Written(), "order": InOrder(), "agreeing": Agreeing()}
BATCH = 32
LAST = 50
"""The losses at the end of a fit whose mean is reported."""


@torch.inference_mode()
def doubt(head: CellHead, trace: Trace, device: str) -> Tensor:
    """-log p that every written token is right, added up over the cells of each answer."""
    instances = trace.instances
    tokens_NL, at_NA = (torch.from_numpy(array).long() for array in (instances.tokens_NL, instances.answer_at_NA))
    tokens_NL = tokens_NL.scatter(1, at_NA, torch.from_numpy(trace.answer_NA).long())
    batches = zip(torch.split(tokens_NL, BATCH), torch.split(at_NA, BATCH), strict=True)
    said_NA = torch.cat([head(tokens_BL.to(device), at_BA.to(device)).cpu() for tokens_BL, at_BA in batches])
    return torch.where(torch.from_numpy(instances.maskable_NA), -F.logsigmoid(said_NA), 0.0).sum(dim=1)


def measure(subject: Subject, heads: dict[str, CellHead], stratum: str, n: int, seed: int, into: Path) -> None:
    subject = replace(subject, origin=replace(subject.origin, data_seed=seed))
    instances, decoding = measured_instances(subject.task, stratum, n, seed), Decoding(device=subject.device)
    policies: dict[str, Policy] = {
        "suspects,k=4": Suspects(head=heads["written"], k=4),
        "suspects,k=11": Suspects(head=heads["written"], k=11),
        "planned by order": Planned(heads["order"]),
        "planned by agreement": Planned(heads["agreeing"]),
    }
    for name, policy in policies.items():
        record = evaluate(subject, name, policy, instances, stratum, decoding).record
        keep(into, [record])
        found = f"{record.exact_match:.3f} in {record.passes:.1f} passes, {record.wall:.0f} s"
        print(f"{subject.name:20} {stratum:10} {name:22} {found}", flush=True)
    shared = {name: getattr(record, name) for name in Head.__struct_fields__}
    drafts: dict[str, Policy] = {"threshold": Threshold(), "top1": Top1()}
    for name, policy in drafts.items():
        trace = decode(subject.denoiser, instances, policy, decoding)
        area = auroc(doubt(heads["written"], trace, subject.device).numpy(), ~trace.exact_N)
        wrong = int((~trace.exact_N).sum())
        about = shared | {"policy": name, "stratum": stratum, "n": n}
        keep(into, [Trust(**about, score="head's doubt", passes=1, wrong=wrong, **area._asdict())])
        shown = "none" if area.auroc is None else f"{area.auroc:.3f}"
        print(f"{subject.name:20} {stratum:10} head's doubt, {name}: AUROC {shown}, {wrong} of {n} wrong", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="names of the zoo")
    parser.add_argument("-n", type=how_many, default=200, help="instances of each stratum")
    parser.add_argument("--seed", type=int, default=1, help="of the instances")
    parser.add_argument("--steps", type=how_many, default=Fit.steps, help="of each fit")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("build/learned"))
    asked = parser.parse_args()
    for name in asked.models:
        subject = load_subject(ZOO + name, device=asked.device)
        heads = {}
        for about, teacher in TEACHERS.items():
            heads[about], losses = fitted(subject, teacher, Fit(steps=asked.steps))
            last = sum(losses[-LAST:]) / len(losses[-LAST:])
            lines = [LogLine(step=1, loss=losses[0]), LogLine(step=len(losses), loss=last)]
            append_jsonl(asked.out / f"{zoo.find(name).run}.{about}.jsonl", lines)
            print(f"{name:20} {about:10} loss {losses[0]:.3f} to {last:.4f}", flush=True)
        for stratum in ("natural", DETECTED[subject.task.name]):
            measure(subject, heads, stratum, asked.n, asked.seed, asked.out / f"{zoo.find(name).run}.jsonl")


if __name__ == "__main__":
    main()
