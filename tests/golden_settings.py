"""What people's files, names and recipes mean: the types of all records, every recipe and grid, every policy's decode.

python -m tests.golden_settings    # record it anew, after a change that is meant to change a meaning
"""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

import hardtail
from hardtail.core.describe import describe
from hardtail.core.files import content_hash
from hardtail.core.manifest import Manifest, TraceManifest
from hardtail.core.recipes import RecipeFields
from hardtail.core.records import Accuracy, Coverage, Finished, LogLine, Paired, Probe, Reveal, RunEntry, Trust
from hardtail.core.registry import POLICIES, SCHEMES, TASKS
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.diagnosis.record import Diagnosis
from hardtail.policies.base import Commit
from hardtail.policies.named import policy_named
from hardtail.study.claims.base import Check
from hardtail.study.claims.ledger import judged_orders, printed_accuracy, source_named, source_names
from hardtail.study.grids import GRIDS, grid_named
from hardtail.study.names import RECIPES
from hardtail.study.pack import Pack
from hardtail.study.recipes import recipe_named
from hardtail.training.estimate import estimate
from hardtail.training.run import train
from tests.decoding_toys import NAMES, TOY, problems
from tests.golden_figures import FOLDER, PASSING, rounded, shortened
from tests.golden_heads import groups, heads
from tests.golden_judged import judged
from tests.golden_schemes import schemes, stages

PATH = FOLDER / "settings.json"
FURTHER = (
    "check,draft=zigzag,rounds=3",
    "check,hide=block,parts=4,sweep=backward,then=refill,rounds=4",
    "check,hide=given,groups=012012012,then=region,reach=2,rounds=3",
    "check,hide=random,parts=1,rounds=2",
    "loo",
    "remdm,eta=0.9",
    "p2,eta=0.3",
    "klass,p=0.3,kl=9,history=1",
    "ladder,rungs=threshold+p=0.3/loo+rounds=2/check+rounds=1,limit=4,hide=block,parts=3,splits=2",
    "ladder,rungs=eb+gamma=1/remdm/p2,limit=0,hide=comb,parts=2,splits=1",
    "ladder,rungs=klass+p=0.2+kl=5+history=1/factor+f=2/block+size=3,limit=10",
    "ladder,rungs=top1/noisy+t=0.5,limit=4,again=3",
)
RECORDS = (
    *(Manifest, TraceManifest, Accuracy, Probe, Reveal, Paired, Trust, LogLine, Finished, RunEntry, Coverage),
    *(RecipeFields, Pack, Diagnosis),
)


def records() -> dict[str, Any]:
    """The fields of every record with their types, limits and defaults."""
    _, found = msgspec.json.schema_components(RECORDS, schema_hook=lambda kind: {"title": kind.__name__})
    return {name: kind.get("properties", {}) for name, kind in sorted(found.items())}


def recipes() -> dict[str, Any]:
    return {name: recipe_named(name).as_json() for name in RECIPES.names()}


def grids() -> dict[str, Any]:
    return {name: {entry.name: entry.recipe.as_json() for entry in grid_named(name)} for name in GRIDS}


def orders() -> dict[str, Any]:
    """Which run of a grid comes first."""
    return {name: [entry.name for entry in grid_named(name)] for name in GRIDS}


def decodes() -> dict[str, Any]:
    """What every policy writes of problems without meaning, in which order, and what it takes for the runner-up."""
    held = problems(24, seed=5)
    found = {}
    for name in NAMES:
        policy = policy_named(name, ("zigzag",))
        for how, decoding in (("", Decoding()), (", sampled", Decoding(seed=3, temperature=1.5))):
            found[name + how] = decode(TOY, held, policy, decoding)
    found["top1, 3 a step"] = decode(TOY, held, policy_named("top1"), Decoding(commit=Commit(3)))
    arrays = "cell_NT", "step_NT", "token_NT", "runner_up_NT", "gold_rank_NT"
    return {
        name: {array: content_hash({"": getattr(trace, array)})[:12] for array in arrays}
        for name, trace in found.items()
    }


def further() -> dict[str, Any]:
    """What policies write in other numbers of steps and inside each other, the passes that takes, and their notes."""
    held = problems(40, seed=6)
    commits = Commit(steps=4), Commit(steps=4, schedule="dream"), Commit(2)
    found = {
        f"{name}, {commit}": decode(TOY, held, policy_named(name), Decoding(commit=commit))
        for name in ("top1", "block,size=4", "threshold", "check,rounds=1", "remdm,variant=conf")
        for commit in commits
        if not (name.startswith("block") and commit.schedule == "dream")  # which is refused
    }
    for name in FURTHER:
        found[name] = decode(TOY, held, policy_named(name, ("zigzag",)))
    return {
        name: {
            "passes": int(trace.passes_N.sum()) if trace.passes_N is not None else None,
            "written": content_hash({of: getattr(trace, of) for of in ("cell_NT", "step_NT", "token_NT")})[:12],
            **{note: round(float(trace.notes[note].sum()), 2) for note in sorted(trace.notes)},
        }
        for name, trace in found.items()
    }


def costs() -> dict[str, Any]:
    """What every recipe is estimated to take."""
    return {name: rounded(asdict(estimate(recipe_named(name)))) for name in RECIPES.names()}


def runs() -> dict[str, Any]:
    """The log, the coverage and the files of short runs that measure and save themselves at odd moments."""
    watch: dict[str, Any] = {
        "log_every": 2,
        "eval_every": 10,
        "gen_every": 4,
        "save_every": 5,
        "probe_size": 8,
        "decoded": 3,
    }
    found = {}
    for name in ("addition-papl-smoke", "maze-puma-smoke", "listops-mixture-smoke"):
        recipe = recipe_named(name)
        few = replace(recipe, steps=14, batch=4, accumulate=2, train_size=24, watch=replace(recipe.watch, **watch))
        moved: list[int] = []
        with TemporaryDirectory() as folder:
            outcome = train(few, Path(folder), device="cpu", progress=moved.append)
            files = sorted(path.name for path in Path(folder).iterdir())
            log = [json.loads(line) for line in (Path(folder) / "log.jsonl").read_bytes().splitlines()]
            seen = json.loads((Path(folder) / "coverage.json").read_bytes())
        lines = [{key: value for key, value in line.items() if key not in PASSING} for line in log]
        found[name] = {"log": lines, "coverage": seen, "files": files, "moved": moved, "step": outcome.step}
    held: dict[str, Any] = rounded(found)
    return held


def defaults() -> dict[str, Any]:
    """What a task, a scheme or a policy is if nobody sets its fields, and the presets of tasks."""
    found: dict[str, Any] = {}
    for registry in (TASKS, SCHEMES, POLICIES):
        found |= {f"{registry.kind} {name}": describe(registry.load(name)()) for name in registry.names()}
    for name in TASKS.names():
        found |= {f"{name}, {preset}": describe(hardtail.task(name, preset)) for preset in TASKS.load(name).presets}
    return found


def splits() -> dict[str, Any]:
    """What the data sets of every task consist of, with the fields that it has by default and with each preset's."""
    found: dict[str, Any] = {}
    for name in TASKS.names():
        for preset in (None, *TASKS.load(name).presets):
            parts = hardtail.task(name, preset).splits()
            found[f"{name}, {preset}" if preset else name] = {
                split: [list(part) for part in of] for split, of in parts.items()
            }
    return found


def claims() -> dict[str, Any]:
    """What every claim says, and the rule and the figures that judge it."""
    return {
        claim.id: [claim.sentence, claim.where, claim.caveat, claim.paper, [_check(check) for check in claim.checks]]
        for source in source_names()
        for claim in source_named(source).claims()
    }


def printed() -> dict[str, Any]:
    """What the paper prints of accuracies, and the orders that claims about each stratum need."""
    accuracy = {" ".join(key): values for key, values in sorted(printed_accuracy().items())}
    orders = {
        task: {stratum: sorted(names) for stratum, names in sorted(judged_orders(task).items())}
        for task in TASKS.names()
    }
    return {"accuracy": accuracy, "orders": orders}


def _check(check: Check) -> list[Any]:
    numbers = {key: value for key, value in vars(check).items() if isinstance(value, int | float | str)}
    cells = [[cell.figure.label, cell.paper, cell.n] for cell in check.cells]
    return [type(check).__name__, check.about, check.printed, check.paper_number, numbers, cells]


PARTS: dict[str, tuple[Callable[[], dict[str, Any]], int]] = {
    "records": (records, 1),
    "recipes": (recipes, 0),
    "grids": (grids, 0),
    "orders": (orders, 1),
    "decodes": (decodes, 1),
    "further": (further, 2),
    "heads": (heads, 1),
    "groups": (groups, 1),
    "costs": (costs, 1),
    "runs": (runs, 3),
    "schemes": (schemes, 2),
    "stages": (stages, 1),
    "defaults": (defaults, 1),
    "splits": (splits, 1),
    "claims": (claims, 0),
    "judged": (judged, 0),
    "printed": (printed, 3),
}
"""Each part, and the levels of it that are written out."""


def settings(part: str) -> dict[str, Any]:
    make, deep = PARTS[part]
    return {name: shortened(rounded(value), deep) for name, value in make().items()}


if __name__ == "__main__":
    PATH.write_text(json.dumps({part: settings(part) for part in PARTS}, indent=0) + "\n")
