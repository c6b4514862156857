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
from itertools import product
from pathlib import Path
from typing import NamedTuple

from arguments import how_many
from hardtail import zoo
from hardtail.core.pretrained import ZOO
from hardtail.core.provenance import origin
from hardtail.core.records import Accuracy, Trust, read_measurements
from hardtail.decoding.options import Decoding
from hardtail.measuring.calibration import APART, calibrate
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.evaluate import Evaluating, evaluate, keep, records_of
from hardtail.measuring.influence import WAYS
from hardtail.measuring.subject import Subject, load_subject
from hardtail.models.precision import Precision
from hardtail.policies.base import Commit
from hardtail.policies.ladder import Ladder
from hardtail.policies.named import policy_named
from hardtail.study.claims.ours.figures import ANY_LIMIT
from hardtail.study.claims.ours.remedy import (
    ADDITION,
    CALIBRATED,
    COMB_CALIBRATED,
    COMB_LADDER,
    DETECTED,
    HARDEST,
    LATER,
    OTHERS,
    RESTARTED,
    RESTARTS,
)

MODELS = {model.name: model for model in zoo.models()}
SEEDS = (0, 1, 2)
CALIBRATING = 500
"""Natural problems that set a limit."""
ASKED = ("threshold", "top1")
"""The policies whose answers are looked at again."""
GPU_BATCH = 2048
"""A check takes as many steps as its slowest row, so all instances go into one batch."""
BY_COUNT = ("top1", "max-logit", "margin", "entropy", "random", "l2r", "r2l", "block", "remdm", "p2")
"""The policies that commit as many cells as they are told to."""
RIVALS = (
    *(f"threshold,p={p}" for p in (0.9, 0.99, 0.999, 0.9999, 0.99999)),
    *(f"factor,f={f}" for f in (1, 0.1, 0.01, 0.001)),
    *(f"eb,gamma={gamma}" for gamma in (0.1, 0.01, 0.001, 0.0001)),
    *(f"klass,p={p}" for p in (0.9, 0.99, 0.999)),
    *(f"topk,k={k}" for k in (8, 4, 2)),
    *(f"loo,rounds={rounds}" for rounds in (1, 4)),
    "loo",
)
"""The policies that decide it themselves, from fast to slow."""
DECODED_IN: dict[str, Precision] = {"addition": "fp32"}
"""On a GPU; all other tasks in bf16, as their models were trained."""


@dataclass(frozen=True)
class Work:
    """One policy of one model, on one stratum of one data seed."""

    model: str
    seed: int
    stratum: str
    policy: str
    each: int = 1
    """Cells to commit per step, for policies that do not decide it themselves."""


def works(models: list[str], seeds: list[int]) -> Iterator[Work]:
    """All of them, the most telling first: one seed after another of the models with claims, then the other models."""
    claimed = [model for model in models if model in {*ADDITION, *OTHERS, *LATER, *RESTARTED}]
    others = [model for model in models if model not in claimed]
    for seed, model in [(seed, model) for group in (claimed, others) for seed in seeds for model in group]:
        yield from _of_model(seed, model)


def _of_model(seed: int, model: str) -> Iterator[Work]:
    task = MODELS[model].task
    strata = dict.fromkeys(("natural", DETECTED[task], HARDEST[task]))
    ladder = COMB_LADDER if task == "addition" else "ladder"
    for policy in ("threshold", "check", ladder, "top1", "logical"):
        if policy == "logical" and task == "maze" and seed:
            continue  # it takes nearly as long as all others together, and no claim is about it
        yield from (Work(model, seed, stratum, policy) for stratum in strata)
    _, again = RESTARTED.get(model, ("", ()))
    yield from (Work(model, seed, stratum, RESTARTS) for stratum in again)


def calibrated(models: list[str], seeds: list[int]) -> Iterator[Work]:
    """Ladders with a limit of their own for each model; what they are compared with, `works` measures."""
    for seed, model in [(seed, model) for seed in seeds for model in models]:
        task = MODELS[model].task
        for stratum in ("natural", HARDEST[task]):
            yield Work(model, seed, stratum, COMB_CALIBRATED if task == "addition" else CALIBRATED)


def with_limit(subject: Subject, policy: str, decoding: Decoding) -> str:
    """The name of a ladder with the limit that natural problems set."""
    name = policy.removesuffix(ANY_LIMIT)
    ladder = policy_named(name)
    assert isinstance(ladder, Ladder)
    found = calibrate(subject, name, ladder, CALIBRATING, decoding, data_seed=SEEDS[0])
    print(found.words, flush=True)
    return found.name


def equal_passes(models: list[str], seeds: list[int]) -> Iterator[Work]:
    """Every policy at several costs, on the hardest problems: more cells a step, or a stricter bound."""
    for seed, model in [(seed, model) for seed in seeds for model in models]:
        stratum = HARDEST[MODELS[model].task]
        for policy in ("check", *RIVALS):
            yield Work(model, seed, stratum, policy)
        for each, policy in [(each, policy) for each in (8, 4, 2, 1) for policy in BY_COUNT]:
            yield Work(model, seed, stratum, policy, each)


def groups(models: list[str], seeds: list[int]) -> Iterator[Work]:
    """A check with groups that the model chose, next to combs, random groups and blocks, on the hardest problems."""
    policies = [f"check,hide={hide}" for hide in ("comb", *WAYS, "random", "random,parts=4", "block")]
    for model, seed, policy in product(models, seeds, policies):
        yield Work(model, seed, HARDEST[MODELS[model].task], policy)


class Measured(NamedTuple):
    """What tells one measurement from another."""

    policy: str
    stratum: str
    data_seed: int | None
    n: int
    commit_rule: str
    decode_precision: str
    device: str | None
    trust: bool
    """Whether the answers were looked at again, too."""


def measured(path: Path) -> set[Measured]:
    """What a file has already."""
    return {
        Measured(
            record.policy,
            record.stratum,
            record.data_seed,
            record.n,
            record.commit_rule,
            record.decode_precision,
            record.device,
            trust=isinstance(record, Trust),
        )
        for record in read_measurements(path)
        if isinstance(record, Accuracy | Trust)
    }


PLANS = {"claims": works, "calibrated": calibrated, "equal": equal_passes, "groups": groups}


def subject_on(model: str, device: str, precision: Precision | None) -> Subject:
    """The shipped model; on a GPU, mazes are compiled, which takes half a minute and halves their time."""
    if device == "cpu":
        return load_subject(ZOO + model, precision=precision or "fp32")
    task = MODELS[model].task
    chosen = precision or DECODED_IN.get(task, "bf16")
    return load_subject(ZOO + model, device=device, precision=chosen, compiled=task == "maze")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ["maze-random", "listops-random", *(name for name in MODELS if name.startswith("addition")), "maze-puma"]
    parser.add_argument("--models", nargs="+", choices=MODELS, default=default, help="names of the zoo, in this order")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--strata", nargs="+", help="only these")
    parser.add_argument("-n", type=how_many, default=2000, help="instances of each stratum and data seed")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after this time")
    parser.add_argument("--plan", choices=PLANS, default="claims", help="what is measured")
    parser.add_argument("--draw", action="store_true", help="only draw the instances into the folder HARDTAIL_DATA")
    parser.add_argument("--out", type=Path, default=Path("build/remedy"))
    asked = parser.parse_args()
    deadline = time.monotonic() + 60 * asked.minutes
    subjects: dict[str, Subject] = {}
    limited: dict[str, str] = {}
    for work in PLANS[asked.plan](asked.models, asked.seeds):
        if asked.strata and work.stratum not in asked.strata:
            continue
        if work.model not in subjects:
            device = "cpu" if asked.draw else asked.device
            subjects[work.model] = subject_on(work.model, device, asked.precision)
        subject = subjects[work.model]
        if asked.draw:
            measured_instances(subject.task, work.stratum, asked.n, work.seed)
            if asked.plan == "calibrated":
                measured_instances(subject.task, "natural", CALIBRATING, SEEDS[0] + APART)
            continue
        name = subject.task.order_names[0] if work.policy == "logical" else work.policy
        batch = None if asked.device == "cpu" else GPU_BATCH
        calibrated = CALIBRATING if name.endswith(ANY_LIMIT) else None
        if calibrated:
            if work.model not in limited:
                limited[work.model] = with_limit(subject, name, Decoding(batch=batch, device=asked.device))
            name = limited[work.model]
        into = asked.out / f"{MODELS[work.model].run}.jsonl"
        commit, trust = Commit(work.each), work.policy in ASKED and asked.plan == "claims"
        made_with = str(commit), subject.origin.decode_precision, origin(asked.device)["device"]
        if Measured(name, work.stratum, work.seed, asked.n, *made_with, trust) in measured(into):
            continue
        if time.monotonic() > deadline:
            print("the time is up; the next call continues", flush=True)
            return
        began = time.monotonic()
        subject = replace(subject, origin=replace(subject.origin, data_seed=work.seed))
        instances = measured_instances(subject.task, work.stratum, asked.n, work.seed)
        decoding = Decoding(commit, batch, asked.device)
        policy = policy_named(name, subject.task.order_names)
        how = Evaluating(trust=trust)
        found = evaluate(subject, name, policy, instances, work.stratum, decoding, how, calibrated=calibrated)
        keep(into, records_of([found]))
        record = found.record
        print(
            f"{work.model:20} {work.seed} {work.stratum:13} {name:34} {commit!s:8} {record.exact_match:.4f} "
            f"{record.passes:7.2f} passes {record.wall:7.2f} s of {time.monotonic() - began:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
