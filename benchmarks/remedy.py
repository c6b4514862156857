"""The figures of docs/remedy.md at size: the claims of `hardtail claims --source ours` that shipped models can decide.

    HARDTAIL_DATA=build/remedy python benchmarks/remedy.py --draw                        # first, where numba is
    HARDTAIL_DATA=build/remedy python benchmarks/remedy.py --device cuda --minutes 4     # then, on a GPU

Each measurement is one policy on one set of instances, with its passes and its wall time, and after some of them how
well a look at the answers tells wrong ones from right ones. It is added at once to `OUT/RUN.jsonl`, in the form of a
run's `evaluations.jsonl`; what is there already is not measured again, so the next call continues. The first
measurement of a policy on a GPU includes the time to capture its step.
"""

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from arguments import how_many
from hardtail import zoo
from hardtail.core.records import Accuracy, read_measurements
from hardtail.decoding.options import Decoding
from hardtail.measuring.evaluate import evaluate, keep, measured_instances, records_of
from hardtail.measuring.subject import Subject, load_subject
from hardtail.models.precision import Precision
from hardtail.policies.named import policy_named
from hardtail.study.claims.ours.remedy import ADDITION, COMB_LADDER, DETECTED, HARDEST, OTHERS

ZOO = {model.name: model for model in zoo.models()}
SEEDS = (0, 1, 2)
ASKED = ("threshold", "top1")
"""The policies whose answers are looked at again."""
GPU_BATCH = 2048
"""A check takes as many steps as its slowest row, so all instances go into one batch."""
PRECISIONS: dict[str, Precision] = {"addition": "fp32", "maze": "bf16", "listops": "bf16"}
"""On a GPU; mazes and ListOps were trained in bf16."""


@dataclass(frozen=True)
class Work:
    """One policy of one model, on one stratum of one data seed."""

    model: str
    seed: int
    stratum: str
    policy: str


def works(models: list[str], seeds: list[int]) -> Iterator[Work]:
    """All of them, the most telling first: one seed after another of the models with claims, then the other models."""
    claimed = [model for model in models if model in ADDITION or model in OTHERS]
    others = [model for model in models if model not in claimed]
    for seed, model in [(seed, model) for group in (claimed, others) for seed in seeds for model in group]:
        yield from _of_model(seed, model)


def _of_model(seed: int, model: str) -> Iterator[Work]:
    task = ZOO[model].task
    strata = dict.fromkeys(("natural", DETECTED[task], HARDEST[task]))
    ladder = COMB_LADDER if task == "addition" else "ladder"
    for policy in ("threshold", "check", ladder, "top1", "logical"):
        if policy == "logical" and task == "maze" and seed:
            continue  # it takes nearly as long as all others together, and no claim is about it
        yield from (Work(model, seed, stratum, policy) for stratum in strata)


def measured(path: Path) -> set[tuple[str, str, int | None, int]]:
    """What a file has already."""
    found = (record for record in read_measurements(path) if isinstance(record, Accuracy))
    return {(record.policy, record.stratum, record.data_seed, record.n) for record in found}


def subject_on(model: str, device: str, precision: Precision | None) -> Subject:
    """The shipped model; on a GPU, mazes are compiled, which takes half a minute and halves their time."""
    if device == "cpu":
        return load_subject(zoo.PREFIX + model, precision=precision or "fp32")
    task = ZOO[model].task
    chosen = precision or PRECISIONS[task]
    return load_subject(zoo.PREFIX + model, device=device, precision=chosen, compiled=task == "maze")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ["maze-random", "listops-random", *(name for name in ZOO if name.startswith("addition")), "maze-puma"]
    parser.add_argument("--models", nargs="+", choices=ZOO, default=default, help="names of the zoo, in this order")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("-n", type=how_many, default=2000, help="instances of each stratum and data seed")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after this time")
    parser.add_argument("--draw", action="store_true", help="only draw the instances into the folder HARDTAIL_DATA")
    parser.add_argument("--out", type=Path, default=Path("build/remedy"))
    asked = parser.parse_args()
    deadline = time.monotonic() + 60 * asked.minutes
    subjects: dict[str, Subject] = {}
    for work in works(asked.models, asked.seeds):
        if work.model not in subjects:
            device = "cpu" if asked.draw else asked.device
            subjects[work.model] = subject_on(work.model, device, asked.precision)
        subject = subjects[work.model]
        if asked.draw:
            measured_instances(subject.task, work.stratum, asked.n, work.seed)
            continue
        name = subject.task.order_names[0] if work.policy == "logical" else work.policy
        into = asked.out / f"{ZOO[work.model].run}.jsonl"
        if (name, work.stratum, work.seed, asked.n) in measured(into):
            continue
        if time.monotonic() > deadline:
            print("the time is up; the next call continues", flush=True)
            return
        began = time.monotonic()
        subject = replace(subject, origin=replace(subject.origin, data_seed=work.seed))
        instances = measured_instances(subject.task, work.stratum, asked.n, work.seed)
        batch = None if asked.device == "cpu" else GPU_BATCH
        decoding, policy = Decoding(batch=batch, device=asked.device), policy_named(name, subject.task.order_names)
        found = evaluate(subject, name, policy, instances, work.stratum, decoding, trust=work.policy in ASKED)
        keep(into, records_of([found]))
        record = found.record
        print(
            f"{work.model:20} {work.seed} {work.stratum:13} {name:34} {record.exact_match:.4f} "
            f"{record.passes:7.2f} passes {record.wall:7.2f} s of {time.monotonic() - began:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
