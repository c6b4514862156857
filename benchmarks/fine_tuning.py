"""Fine-tune shipped models on states that they write themselves, and measure what that does (docs/remedy-details.md).

    HARDTAIL_DATA=data/remedy python benchmarks/fine_tuning.py --draw                                # where numba is
    HARDTAIL_DATA=data/remedy python benchmarks/fine_tuning.py --device cuda --jobs 8 --minutes 6    # on a GPU

Every model and scheme (`study.fine_tuning`) is a run in `OUT/MODEL-then-SCHEME`, trained and measured by a process of
its own, `--jobs` at a time; `before` measures the shipped model. A measurement is added at once to `OUT/NAME.jsonl`.
What is there already is not done again, and a run that the time cut short continues, so the same command goes on.
"""

import argparse
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from arguments import how_many
from hardtail.core.errors import HardtailError
from hardtail.core.pretrained import ZOO
from hardtail.core.provenance import origin
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.evaluate import evaluate, keep, records_of
from hardtail.measuring.subject import Subject, load_subject
from hardtail.policies.base import Commit
from hardtail.policies.named import policy_named
from hardtail.study.claims.ours.remedy import HARDEST
from hardtail.study.fine_tuning import SCHEME_OF, fine_tuned
from hardtail.study.names import SHIPPED
from hardtail.tasks import datasets as data
from hardtail.training.recipe import Recipe
from hardtail.training.run import train
from remedy import GPU_BATCH, Measured, measured

BEFORE = "before"
LOOKS = ("check,hide=none", "check,hide=none,then=refill")
"""Policies that look at an answer without hiding anything: what fine-tuning is for."""
POLICIES = (*LOOKS, "threshold", "check", "top1", "logical")


def recipe_of(model: str, how: str, asked: argparse.Namespace) -> Recipe:
    recipe = fine_tuned(model, how)
    watch = replace(recipe.watch, gen_every=0)  # measured below, by more policies
    return replace(recipe, watch=watch, steps=asked.steps, batch=asked.batch, precision=asked.precision)


def strata_of(recipe: Recipe) -> tuple[str, ...]:
    return HARDEST[recipe.task.name], "natural"


def draw(asked: argparse.Namespace) -> None:
    """Put everything that training and measuring reads into the folder HARDTAIL_DATA."""
    for model in asked.models:
        recipe = recipe_of(model, next(iter(SCHEME_OF)), asked)
        data.build(recipe.task, data.TRAIN, recipe.seed, recipe.train_size)
        for split, part in recipe.watch.parts(recipe.task).values():
            data.draw(recipe.task, split, part, recipe.seed)
        for seed in asked.seeds:
            for stratum in strata_of(recipe):
                measured_instances(recipe.task, stratum, asked.n, seed)


def trained(model: str, how: str, asked: argparse.Namespace) -> Subject | None:
    """The model to measure; None if the time was up before its training was over."""
    if how == BEFORE:
        return load_subject(ZOO + model, device=asked.device)
    recipe = recipe_of(model, how, asked)
    folder = asked.out / recipe.name
    done = train(recipe, folder, device=asked.device, should_stop=lambda: time.time() > asked.until)
    print(f"{recipe.name:34} step {done.step:,}, {done.how}", flush=True)
    if not done.finished:
        return None
    for left in ("state.safetensors", "best_probe.safetensors"):  # large, and not needed any more
        (folder / left).unlink(missing_ok=True)
    return load_subject(str(folder), device=asked.device)


def one(model: str, how: str, asked: argparse.Namespace) -> None:
    """Train and measure one model."""
    subject = trained(model, how, asked)
    if subject is None:
        return
    into = asked.out / f"{model}-{BEFORE}.jsonl" if how == BEFORE else asked.out / f"{subject.name}.jsonl"
    policies = LOOKS if how == BEFORE else POLICIES
    strata = strata_of(fine_tuned(model, "more"))
    batch = None if asked.device == "cpu" else GPU_BATCH
    decoding, device = Decoding(Commit(), batch, asked.device), origin(asked.device)["device"]
    works = [(seed, stratum, policy) for seed in asked.seeds for stratum in strata for policy in policies]
    for seed, stratum, policy in works:
        name = subject.task.order_names[0] if policy == "logical" else policy
        wanted = Measured(name, stratum, seed, asked.n, str(Commit()), "fp32", device, trust=False)
        if wanted in measured(into):
            continue
        if time.time() > asked.until:
            print(f"{into.stem:34} the time is up; the next call continues", flush=True)
            return
        of_seed = replace(subject, origin=replace(subject.origin, data_seed=seed))
        instances = measured_instances(subject.task, stratum, asked.n, seed)
        named = policy_named(name, subject.task.order_names)
        found = evaluate(of_seed, name, named, instances, stratum, decoding)
        keep(into, records_of([found]))
        record = found.record
        print(
            f"{into.stem:34} {seed} {stratum:10} {name:28} {record.exact_match:.4f} {record.passes:6.2f} passes "
            f"{record.wall:6.2f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=SHIPPED, default=list(SHIPPED), help="names of the zoo")
    parser.add_argument("--how", nargs="+", choices=(*SCHEME_OF, BEFORE), default=[*SCHEME_OF, BEFORE])
    parser.add_argument("--steps", type=how_many, default=30_000, help="of each training")
    parser.add_argument("--batch", type=how_many, default=256, help="of each training")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="bf16", help="of training, on a GPU")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of the instances")
    parser.add_argument("-n", type=how_many, default=2000, help="instances of each stratum and seed")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=how_many, default=1, help="processes at a time")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--draw", action="store_true", help="only draw the data into the folder HARDTAIL_DATA")
    parser.add_argument("--out", type=Path, default=Path("build/fine-tuning"))
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.draw:
        draw(asked)
        return
    works = [(model, how) for how in asked.how for model in asked.models]
    if asked.until is not None:  # a process that was started below
        one(*works[0], asked)
        return
    asked.out.mkdir(parents=True, exist_ok=True)
    until, words = time.time() + 60 * asked.minutes, sys.argv[1:]
    running: list[subprocess.Popen[bytes]] = []
    failed = 0
    while works or running:
        while works and len(running) < asked.jobs:
            model, how = works.pop(0)
            own = ["--models", model, "--how", how, "--until", str(until)]
            running.append(subprocess.Popen([sys.executable, __file__, *words, *own]))
        time.sleep(0.2)
        codes = [process.poll() for process in running]  # once: a process may end at any time
        failed += sum(1 for code in codes if code not in (None, 0))
        running = [process for process, code in zip(running, codes, strict=True) if code is None]
    if failed:
        raise HardtailError(f"{failed} processes failed; see above")


if __name__ == "__main__":
    main()
