"""Traces put together: each problem of a task once, and what each decoder did with it.

A *stage* is one task in one configuration, with everything that was decoded of it; a *decoder* is a model under a
policy. Decoders that solved the same problem point to the same entry of the stage's pool, so a page can show them side
by side.

Shapes: N traced instances, P problems of the pool, A answer cells, T events, S steps, K events of a step.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import Instances, Trace
from hardtail.tasks.base import CUSTOM, Task
from hardtail.tasks.named import said_task, task_of
from hardtail.traces.commits import refuse_misfit
from hardtail.traces.states import blocks, hidden_before


@dataclass(frozen=True)
class Decoder:
    """One model under one policy, over all the strata it was decoded on."""

    model: str
    policy: str
    trace: Trace
    stratum_N: NDArray[np.str_]

    @property
    def name(self) -> str:
        return f"{self.model} · {self.policy}"


@dataclass(frozen=True)
class Stage:
    """A task, the problems that were decoded, and the decoders; `rows` has each decoder's problems, by index."""

    task: Task
    problems: Instances
    stratum_P: NDArray[np.str_]
    decoders: tuple[Decoder, ...]
    rows: tuple[NDArray[np.int64], ...]


def stages(traces: Iterable[Trace]) -> list[Stage]:
    """Put traces together by task, model and policy; annotated and bare instances are separate stages."""
    by_task: dict[str, list[Trace]] = {}
    for trace in traces:
        key = [said_task(trace.about), list(trace.instances.arrays())]
        by_task.setdefault(json.dumps(key), []).append(trace)
    return [_stage(held) for held in by_task.values()]


def title_of(stage: Stage, found: Sequence[Stage]) -> str:
    """What a stage is called: its task and, if several of those `found` are of that task, its configuration."""
    others = [one.task for one in found if one.task.name == stage.task.name]
    if len(others) < 2:
        return stage.task.name
    return f"{stage.task.name}, {_told_apart(stage.task, others)}"


def _told_apart(task: Task, others: Sequence[Task]) -> str:
    """A configuration by the name of its preset; one without a name by the fields in which the others differ."""
    if (name := task.preset_name()) != CUSTOM:
        return name
    configs = [other.config() for other in others]
    told = [f"{key}={value}" for key, value in task.config().items() if any(one.get(key) != value for one in configs)]
    return ", ".join(told) or name


def _stage(traces: Sequence[Trace]) -> Stage:
    task = task_of(traces[0].about, "a trace")
    for trace in traces:
        refuse_misfit(task, trace)
        _refuse_foreign(task, trace)
    decoders = _decoders(traces)
    everything = Instances.concat([decoder.trace.instances for decoder in decoders])
    stratum_N = np.concatenate([decoder.stratum_N for decoder in decoders])
    first_P, row_N = _distinct(everything, stratum_N)
    ends = np.cumsum([len(decoder.trace) for decoder in decoders])[:-1]
    return Stage(task, everything.take(first_P), stratum_N[first_P], decoders, tuple(np.split(row_N, ends)))


def _refuse_foreign(task: Task, trace: Trace) -> None:
    """Refuse a trace without instances, or with tokens that the task's vocabulary does not have."""
    highest = max(trace.token_NT.max(initial=0), trace.instances.tokens_NL.max(initial=0))
    if not len(trace) or highest >= task.vocabulary.size:
        raise HardtailError(
            f"a trace of {task.name} is empty or has tokens outside the task's vocabulary; decode it again"
        )


def _decoders(traces: Sequence[Trace]) -> tuple[Decoder, ...]:
    """The decoders. Models with the same name get their checkpoint, step and seed added to it, and policies how they
    were decoded, if not all were decoded in the same way. A decode that is given twice counts once."""
    held: dict[tuple[tuple[str, str, int | None, int | None], str, str], list[Trace]] = {}
    for trace in traces:
        of = trace.source
        parts = held.setdefault((of.weights, of.policy, of.how), [])
        if not any(_repeats(part, trace) for part in parts):
            parts.append(trace)
    names = [name for name, *_ in {weights for weights, *_ in held}]
    ways = {how for *_, how in held}
    found = []
    for ((name, checkpoint, *numbers), policy, how), parts in held.items():
        step, seed = ("?" if number is None else number for number in numbers)
        which = f" ({checkpoint or 'weights'}, step {step}, seed {seed})" if names.count(name) > 1 else ""
        way = f", {how}" if how and len(ways) > 1 else ""
        strata = [np.full(len(part), part.source.stratum) for part in parts]
        found.append(Decoder(name + which, policy + way, Trace.concat(parts), np.concatenate(strata)))
    return tuple(found)


def _repeats(part: Trace, trace: Trace) -> bool:
    """Whether a trace is the same as another one of its decoder; raise HardtailError if only its problems are."""
    of = trace.source
    if of.stratum != part.source.stratum or not np.array_equal(trace.instances.tokens_NL, part.instances.tokens_NL):
        return False
    if not np.array_equal(trace.answer_NA, part.answer_NA):
        raise HardtailError(
            f"two different decodes of the same problems are both by {of.model} under {of.policy}; give one of them, "
            "or decode with models of two names"
        )
    return True


def _distinct(instances: Instances, stratum_N: NDArray[np.str_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of each group of equal problems, in the order in which they came, and every instance's group."""
    _, code_N = np.unique(stratum_N, return_inverse=True)
    columns = [instances.tokens_NL, instances.maskable_NA, instances.prompt_len_N[:, None], code_N[:, None]]
    key_NC = np.concatenate([column.astype(np.int32) for column in columns], axis=1)
    _, first_G, group_N = np.unique(key_NC, axis=0, return_index=True, return_inverse=True)
    order_G = np.argsort(first_G, kind="stable")
    place_G = np.empty_like(order_G)
    place_G[order_G] = np.arange(len(order_G))
    return first_G[order_G], place_G[group_N.reshape(-1)]


def ready_events(task: Task, trace: Trace) -> NDArray[np.bool_]:
    """`ready_NT`: whether all prerequisites of the written cell were revealed before its step.

    True for every event of a trace whose instances have no annotations: nothing is known to be missing.
    """
    if trace.instances.parents_NAE is None:
        return np.ones(trace.cell_NT.shape, dtype=np.bool_)
    return np.concatenate([_ready_of_block(task, block) for block in blocks(trace)])


def _ready_of_block(task: Task, trace: Trace) -> NDArray[np.bool_]:
    ready_NT = np.ones(trace.cell_NT.shape, dtype=np.bool_)
    hidden_NSA = hidden_before(trace)
    for step in range(hidden_NSA.shape[1]):
        row_K, event_K = np.nonzero(trace.happened_NT & (trace.step_NT == step))
        ready_NA = task.ready(trace.instances, ~hidden_NSA[:, step])
        ready_NT[row_K, event_K] = ready_NA[row_K, trace.cell_NT[row_K, event_K]]
    return ready_NT
