"""Everything that is drawn, decoded, measured and explained of a small case of every task, as it was recorded.

    python -m tests.golden_figures     # record it anew, after a change that is meant to change figures

The denoiser is a hash of what it sees: often wrong where it should wait, seldom elsewhere. So every branch of a solver,
a policy, a measurement and a profile leaves its mark, also where a formula has no simple reference.

Shapes: N instances, B batch, A answer cells.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

import hardtail
from hardtail import Instances
from hardtail.core.files import content_hash
from hardtail.core.records import Coverage, as_json, jsonable
from hardtail.core.registry import TASKS
from hardtail.core.seeds import words
from hardtail.core.types import Array
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.diagnosis import diagnose
from hardtail.measuring.diagnosis.verdict import verdict
from hardtail.measuring.evaluate import Evaluating, evaluate_all, records_of
from hardtail.measuring.explain import explain_model
from hardtail.measuring.subject import Subject
from hardtail.models.denoiser import Function
from hardtail.policies.named import policy_named
from hardtail.tasks.base import Task
from tests.planted_other import planted

FOLDER = Path(__file__).with_name("golden")
SMALL: dict[str, dict[str, Any]] = {"addition": {"digits": 6}, "maze": {"size": 4}}
MEASURED = ("top1", "random", "threshold,p=0.8", "check,rounds=2")
EXPLAINED = ("top1", "klass,p=0.7,kl=0.5,history=1", "remdm,eta=0.5", "check,draft=block+size=3,hide=random,rounds=2")
FEW = 4
"""Instances of each stratum."""
DEEP = 4
"""Levels of JSON that are written out."""
PASSING = ("wall", "commit", "device", "how")
"""What differs from day to day."""


def small(name: str) -> Task:
    return hardtail.task(name, **SMALL.get(name, {}))


def moody(task: Task, instances: Instances) -> Function:
    """Wrong in two of five cells that are not ready, in one of fifteen that are; as sure of one as of the other."""
    tokens = np.array(task.answer_tokens)

    def say(row_B: Array, answer_BA: Array) -> tuple[Array, Array]:
        held, hidden_BA = instances.take(row_B), answer_BA == task.vocabulary.mask_id
        cell_A = np.arange(answer_BA.shape[1], dtype=np.uint64)
        seen_B1 = (~hidden_BA).sum(axis=1, keepdims=True).astype(np.uint64) // np.uint64(4)
        key_BA = row_B[:, None].astype(np.uint64) * np.uint64(1 << 20) + cell_A * np.uint64(1 << 10) + seen_B1
        word_BA3 = (words(key_BA.reshape(-1), 3) >> np.uint64(40)).reshape(*key_BA.shape, 3).astype(np.int64)
        fails_BA = word_BA3[..., 0] % 15 < np.where(task.ready(held, ~hidden_BA), 1, 6)
        other_BA = tokens[word_BA3[..., 1] % len(tokens)]
        sure_BA = 0.5 + 0.49 * word_BA3[..., 2] / (1 << 24)
        return np.where(fails_BA, other_BA, held.answer_NA), sure_BA

    return planted(task, instances, say)


def drawn(name: str) -> dict[str, Any]:
    """Instances of every preset and stratum, with all that solvers say about them."""
    kind = type(hardtail.task(name))
    found = {}
    for preset in kind.presets:
        task = kind.preset(preset, **SMALL.get(name, {}))
        for stratum in ("natural", *task.strata()) if preset == next(iter(kind.presets)) else ("natural",):
            held = task.sample(3, stratum, seed=1)
            found[f"{preset}, {stratum}"] = {
                "problems": task.render(held),
                "answers": [task.answer_text(held, i) for i in range(3)],
                "arrays": {array: content_hash({"": value})[:12] for array, value in held.arrays().items()},
            }
    return found


def measured(name: str) -> dict[str, Any]:
    """Records of an evaluation and of diagnoses, and one diagnosis next to the mask states of a training."""
    task = small(name)
    strata = list(dict.fromkeys(str(task.stratum(text)) for text in (task.strata()[0], task.strata()[-1])))
    held = [measured_instances(task, stratum, FEW, 3) for stratum in strata]
    every = Instances.concat(held)
    subject = Subject(task, moody(task, _distinct(every)), "moody")
    policies = {policy: policy_named(policy, task.order_names) for policy in (*MEASURED, *task.order_names[:1])}
    evaluated = evaluate_all(subject, policies, strata, FEW, Decoding(), Evaluating(trust=True), data_seed=3)
    explained = explain_model(subject, (*EXPLAINED, *task.order_names), strata, FEW, Decoding(), data_seed=3)
    trace = decode(subject.denoiser, every, policy_named("random"), Decoding(seed=1, temperature=0.5))
    compared = diagnose(task, trace, _trained(every, task.order_names[0]))
    plain = [structs.replace(record, profile=None) for record in explained]  # as of a task that has no profile
    return {
        "said": [list(verdict(found, task.words).lines) for found in (explained[:2], plain[1:2], plain[:1])],
        "records": [_kept(as_json(record)) for record in records_of(list(evaluated))],
        "diagnoses": [_kept(as_json(record)) for record in (*explained, compared)],
        "sampled": {array: content_hash({"": getattr(trace, array)})[:12] for array in ("cell_NT", "token_NT")},
    }


def _distinct(instances: Instances) -> Instances:
    """Without instances that another one has the prompt of."""
    first = {instances.prompt(i).tobytes(): i for i in reversed(range(len(instances)))}
    return instances.take(np.array(sorted(first.values())))


def _trained(instances: Instances, order: str) -> Coverage:
    cells, ranks = instances.answer_len, int(instances.orders[order].max()) + 1
    counts_KR = np.outer(np.arange(cells + 1), np.arange(1, ranks + 1)) % 7
    return Coverage(
        by_count=tuple(range(cells + 1)), by_count_and_rank=tuple(tuple(map(int, row_R)) for row_R in counts_KR)
    )


def _kept(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in PASSING}


def rounded(value: Any) -> Any:
    """Numbers to six digits; `differences` allows for the processor's last ones."""
    if isinstance(value, dict):
        return {str(key): rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def figures(name: str) -> dict[str, Any]:
    """All of it for one task, as JSON."""
    return shortened(rounded(jsonable({"drawn": drawn(name)} | measured(name))))


def shortened(value: Any, deep: int = DEEP) -> Any:
    """JSON whose parts below some levels are a digest each: what changed is found by its place."""
    if isinstance(value, dict) and deep:
        return {key: shortened(inner, deep - 1) for key, inner in value.items()}
    if isinstance(value, list) and deep:
        return [shortened(inner, deep - 1) for inner in value]
    return _digest(value) if isinstance(value, dict | list) else value


def _digest(value: Any) -> list[Any]:
    """A hash of everything but the fractions, and a sum of these, each weighted by its place."""
    fractions: list[float] = []

    def without(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {key: without(held) for key, held in inner.items()}
        if isinstance(inner, list):
            return [without(held) for held in inner]
        if isinstance(inner, float):
            fractions.append(inner)
            return "a fraction"
        return inner

    text = json.dumps(without(value))
    total = sum(place * fraction for place, fraction in enumerate(fractions, start=1))
    return [hashlib.sha256(text.encode()).hexdigest()[:12], *([float(f"{total:.6g}")] if fractions else [])]


def differences(was: Any, now: Any, at: str = "") -> list[str]:
    """Where two pieces of JSON differ, and how."""
    if isinstance(was, dict) and isinstance(now, dict):
        keys = {**was, **now}
        return [found for key in keys for found in differences(was.get(key), now.get(key), f"{at}/{key}")]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [found for i in range(len(was)) for found in differences(was[i], now[i], f"{at}/{i}")]
    if isinstance(was, float) and isinstance(now, float):
        return [] if math.isclose(was, now, rel_tol=1e-4, abs_tol=1e-5) else [f"{at}: was {was}, is {now}"]
    return [] if was == now else [f"{at}: was {was!r}, is {now!r}"]


def main() -> None:
    for name in TASKS.names():
        (FOLDER / f"{name}.json").write_text(json.dumps(figures(name), indent=0) + "\n")


if __name__ == "__main__":
    main()
