"""Traces as the theatre replays them: the problems of a task once, and what each decoder did with them.

A *stage* is one task in one configuration; a *cast* is one decoder on it: a model under a policy. Decoders that solved
the same problem point to the same entry of the stage's pool, so that a page can show them side by side.

Shapes: N traced instances, P problems of the pool, L sequence, A answer cells, E parents, T events, K events in all.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import Array, Instances, Trace
from hardtail.measuring.diagnosis.front import jsonable
from hardtail.show.page.pack import Pack
from hardtail.tasks.base import Task
from hardtail.tasks.named import said_task, task_of
from hardtail.traces.commits import first_in_time, refuse_misfit, wrong_cells
from hardtail.traces.states import blocks, hidden_before

MOST = 65_535
"""Problems of a stage, events of a trace and answer cells: what two bytes count."""


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
    """A task, the problems that were decoded, and the decoders; `row_N` of each says which problem is which."""

    task: Task
    problems: Instances
    stratum_P: NDArray[np.str_]
    decoders: tuple[Decoder, ...]
    rows: tuple[NDArray[np.int64], ...]


def stages(traces: Iterable[Trace]) -> list[Stage]:
    """Put traces together by task, model and policy; annotated instances and bare ones are two stages."""
    by_task: dict[str, list[Trace]] = {}
    for trace in traces:
        key = [said_task(trace.about), list(trace.instances.arrays())]
        by_task.setdefault(json.dumps(key), []).append(trace)
    return [_stage(held) for held in by_task.values()]


def _stage(traces: Sequence[Trace]) -> Stage:
    task = task_of(traces[0].about, "a trace")
    for trace in traces:
        refuse_misfit(task, trace)
        _refuse_nonsense(task, trace)
    decoders = _decoders(traces)
    everything = Instances.concat([decoder.trace.instances for decoder in decoders])
    stratum_N = np.concatenate([decoder.stratum_N for decoder in decoders])
    first_P, row_N = _distinct(everything, stratum_N)
    if len(first_P) > MOST:
        raise HardtailError(f"{task.name}: {len(first_P):,} problems are more than a page shows; give at most {MOST:,}")
    ends = np.cumsum([len(decoder.trace) for decoder in decoders])[:-1]
    return Stage(task, everything.take(first_P), stratum_N[first_P], decoders, tuple(np.split(row_N, ends)))


def _refuse_nonsense(task: Task, trace: Trace) -> None:
    """Events that no decoder of this task can have written, in a file that was made elsewhere."""
    shapes = {array.shape for name, array in trace.arrays().items() if name.endswith("_NT")}
    fits = (
        shapes == {(len(trace), trace.cell_NT.shape[1])}
        and trace.cell_NT.max(initial=-1) < task.answer_len
        and max(trace.token_NT.max(initial=0), trace.instances.tokens_NL.max(initial=0)) < task.vocabulary.size
        and trace.instances.prompt_len_N.max(initial=0) + task.answer_len <= task.seq_len
    )
    if not fits or not len(trace):
        raise HardtailError(
            f"a trace of {task.name} has no event, or events that {task.name} cannot have; decode it again"
        )


def _decoders(traces: Sequence[Trace]) -> tuple[Decoder, ...]:
    held: dict[tuple[str, ...], list[Trace]] = {}
    for trace in traces:
        about = trace.about
        key = tuple(str(about.get(name, "")) for name in ("model", "checkpoint", "step", "seed", "policy"))
        held.setdefault(key, []).append(trace)
    titles = _titles(held)
    found = []
    for key, parts in held.items():
        strata = [np.full(len(part), str(part.about.get("stratum", ""))) for part in parts]
        found.append(Decoder(titles[key[:-1]], key[-1], Trace.concat(parts), np.concatenate(strata)))
    return tuple(found)


def _titles(keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """What each model is called: its name, with its checkpoint, step and seed where another has the same name."""
    models = dict.fromkeys(key[:-1] for key in keys)
    names = [model[0] for model in models]
    titles = {}
    for model in models:
        name, checkpoint, step, seed = model
        alone = names.count(name) == 1
        titles[model] = name if alone else f"{name} ({checkpoint or 'weights'}, step {step or '?'}, seed {seed or '?'})"
    return titles


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


# -- as a page holds it -----------------------------------------------------------------------------------------------


def packed(stage: Stage, pack: Pack) -> dict[str, Any]:
    """A stage as JSON; its arrays go into `pack`."""
    task, problems = stage.task, stage.problems
    found = task.roles(problems)
    parents_PAE = problems.parents_NAE
    flags_PA = (
        problems.maskable_NA.astype(np.uint8)
        + 2 * problems.scored_NA.astype(np.uint8)
        + 4 * task.meaningful(problems).astype(np.uint8)
    )
    vocabulary = task.vocabulary
    return {
        "task": task.name,
        "config": jsonable(task.config()),
        "signs": [*vocabulary.characters, vocabulary.mask, vocabulary.pad],
        "mask": vocabulary.mask_id,
        "length": problems.tokens_NL.shape[1],
        "cells": problems.answer_len,
        "cellNames": [task.cell_name(cell) for cell in range(problems.answer_len)],
        "roleNames": [name.replace("_", " ") for name in found.names],
        "parentSlots": 0 if parents_PAE is None else parents_PAE.shape[2],
        "strata": stage.stratum_P.tolist(),
        "axes": {axis: _rounded(problems.strata[axis]) for axis in task.axes if axis in problems.strata},
        "tokens": pack.add(problems.tokens_NL, "u1"),
        "promptLength": pack.add(problems.prompt_len_N, "u2"),
        "flags": pack.add(flags_PA, "u1"),
        "role": pack.add(found.role_NA, "u1"),
        "parents": pack.add(np.empty(0) if parents_PAE is None else parents_PAE, "i2"),
        "notes": _notes(task, problems, pack),
        "decoders": [
            _packed_decoder(task, decoder, row_N, pack)
            for decoder, row_N in zip(stage.decoders, stage.rows, strict=True)
        ],
    }


def _notes(task: Task, problems: Instances, pack: Pack) -> dict[str, Any]:
    """What else the task's scene reads."""
    held = {name: problems.extras[name] for name in task.scene_extras if name in problems.extras}
    return {name: pack.add(array, "u1" if array.dtype.kind == "b" else "i2") for name, array in held.items()}


def _rounded(value_P: Array) -> list[Any]:
    return value_P.tolist() if value_P.dtype.kind in "iuUb" else np.round(value_P.astype(np.float64), 4).tolist()


def _packed_decoder(task: Task, decoder: Decoder, row_N: NDArray[np.int64], pack: Pack) -> dict[str, Any]:
    trace = decoder.trace
    happened_NT = trace.happened_NT
    end_N = np.cumsum(happened_NT.sum(axis=1))
    first = first_in_time(trace, wrong_cells(trace))
    first_wrong_N = np.full(len(trace), -1)
    first_wrong_N[first.row_K] = first.cell_K
    kept = {
        key: trace.about.get(key) for key in ("recipe", "seed", "checkpoint", "step", "device", "commit", "reading")
    }
    return {
        "name": decoder.name,
        "model": decoder.model,
        "policy": decoder.policy,
        "about": {key: value for key, value in kept.items() if value is not None},
        "row": pack.add(row_N, "u2"),
        "end": pack.add(end_N, "u4"),
        "exact": pack.add(trace.exact_N, "u1"),
        "firstWrong": pack.add(first_wrong_N, "i2"),
        "cell": pack.add(trace.cell_NT[happened_NT], "u2"),
        "step": pack.add(trace.step_NT[happened_NT], "u2"),
        "token": pack.add(trace.token_NT[happened_NT], "u1"),
        "prob": pack.add_shares(trace.prob_NT[happened_NT]),
        "goldProb": pack.add_shares(trace.gold_prob_NT[happened_NT]),
        "goldRank": pack.add(np.minimum(trace.gold_rank_NT[happened_NT], 255), "u1"),
        "ready": pack.add(ready_events(task, trace)[happened_NT], "u1"),
    }


def ready_events(task: Task, trace: Trace) -> NDArray[np.bool_]:
    """`ready_NT`: whether the written cell had all its prerequisites revealed when its step looked.

    True for every event of a trace whose instances carry no annotations: nothing is known to be missing.
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


def summary(stage: Stage) -> list[Mapping[str, Any]]:
    """One line a decoder and stratum: how many problems, how many solved."""
    lines: list[Mapping[str, Any]] = []
    for decoder in stage.decoders:
        exact_N = decoder.trace.exact_N
        for stratum in dict.fromkeys(decoder.stratum_N.tolist()):
            exact_K = exact_N[decoder.stratum_N == stratum]
            lines.append({"decoder": decoder, "stratum": stratum, "n": exact_K.size, "exact": int(exact_K.sum())})
    return lines
