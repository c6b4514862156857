"""Stages inside a page: JSON, with the arrays in a `PackedArrays`; `web/replay.js` replays them.

Shapes: N traced instances, P problems of the pool, L sequence, A answer cells, E parents, T events.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.records import jsonable
from hardtail.core.types import Array
from hardtail.show.failures import failures
from hardtail.show.page.pack import PackedArrays
from hardtail.show.stages import Decoder, Stage, ready_events
from hardtail.tasks.base import Task
from hardtail.traces.commits import first_in_time, wrong_cells


def packed(stage: Stage, pack: PackedArrays) -> dict[str, Any]:
    """Return a stage as JSON; its arrays go into `pack`."""
    task, problems, vocabulary = stage.task, stage.problems, stage.task.vocabulary
    found = task.roles(problems)
    parents_PAE = problems.parents_NAE
    flags_PA = problems.maskable_NA + 2 * problems.scored_NA + 4 * task.meaningful(problems)
    notes = {name: problems.extras[name] for name in task.scene_extras if name in problems.extras}
    return {
        "task": task.name,
        "config": jsonable(task.config()),
        "signs": list(vocabulary.signs),
        "mask": vocabulary.mask_id,
        "length": problems.tokens_NL.shape[1],
        "cells": problems.answer_len,
        "cellNames": [task.cell_name(cell) for cell in range(problems.answer_len)],
        "roleNames": [name.replace("_", " ") for name in found.names],
        "parentSlots": None if parents_PAE is None else parents_PAE.shape[2],
        "strata": stage.stratum_P.tolist(),
        "axes": {axis: _rounded(problems.strata[axis]) for axis in task.axes if axis in problems.strata},
        "tokens": pack.add_tokens(problems.tokens_NL),
        "promptLength": pack.add(problems.prompt_len_N, "u2"),
        "flags": pack.add(flags_PA, "u1"),
        "role": pack.add(found.role_NA, "u1"),
        "parents": pack.add(np.empty(0) if parents_PAE is None else parents_PAE, "i2"),
        "notes": {name: pack.add(array, "u1" if array.dtype.kind == "b" else "i2") for name, array in notes.items()},
        "decoders": [_packed_decoder(task, *held, pack) for held in zip(stage.decoders, stage.rows, strict=True)],
    }


def _rounded(value_P: Array) -> list[Any]:
    return value_P.tolist() if value_P.dtype.kind in "iuUb" else np.round(value_P.astype(np.float64), 4).tolist()


def _packed_decoder(task: Task, decoder: Decoder, row_N: NDArray[np.int64], pack: PackedArrays) -> dict[str, Any]:
    trace = decoder.trace
    happened_NT = trace.happened_NT
    end_N = np.cumsum(happened_NT.sum(axis=1))
    first = first_in_time(trace, wrong_cells(trace))
    first_wrong_N = np.full(len(trace), -1)
    first_wrong_N[first.row_K] = first.cell_K
    sentences = {str(one.row): one.sentence for one in failures(task, trace)}
    kept = ("recipe", "seed", "checkpoint", "step", "device", "commit", "reading")
    said = asdict(trace.source)
    return {
        "name": decoder.name,
        "model": decoder.model,
        "policy": decoder.policy,
        "about": {key: said[key] for key in kept if said[key] not in ("", None)},
        "failures": sentences,
        "row": pack.add(row_N, "u4"),
        "end": pack.add(end_N, "u4"),
        "exact": pack.add(trace.exact_N, "u1"),
        "firstWrong": pack.add(first_wrong_N, "i2"),
        "cell": pack.add(trace.cell_NT[happened_NT], "u2"),
        "step": pack.add(trace.step_NT[happened_NT], "u2"),
        "token": pack.add_tokens(trace.token_NT[happened_NT]),
        "prob": _shares(trace.prob_NT[happened_NT], pack),
        "goldProb": _shares(trace.gold_prob_NT[happened_NT], pack),
        "goldRank": pack.add(np.minimum(trace.gold_rank_NT[happened_NT], 255), "u1"),
        "ready": pack.add(ready_events(task, trace)[happened_NT], "u1"),
    }


def _shares(prob_K: Array, pack: PackedArrays) -> dict[str, Any] | None:
    """Probabilities; None if one is unknown, as in a trace of another tool's canvases."""
    return None if np.isnan(prob_K).any() else pack.add_shares(prob_K)
