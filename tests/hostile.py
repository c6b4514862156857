"""What tests of hostile files share: an untrained run, a trace, and files that are whole but wrong."""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import hardtail
from hardtail import Streams
from hardtail.core.files import content_hash, file_hash, manifest_path, save_instances
from hardtail.core.manifest import Manifest
from hardtail.core.trace_files import save_trace
from hardtail.core.types import Array, Instances
from hardtail.tasks.base import Task
from hardtail.tasks.named import task_to_json
from tests.diagnose_toys import gold_trace

ESCAPES = "\x1b[2Jgone\x1b]0;title\x07\x9b31m\u202eback\x7f"
"""Clears the screen, retitles the window, colours, and turns the direction of writing."""


def untrained_run(folder: Path) -> Path:
    """A run directory with weights that nothing has trained."""
    import torch

    from hardtail.models.transformer import Transformer
    from hardtail.models.weights import save_weights
    from hardtail.study.recipes import recipe_named

    recipe = recipe_named("addition-random-smoke")
    weights = Transformer(recipe.shape).initialise(torch.Generator().manual_seed(0)).state_dict()
    about = {"recipe": recipe.as_json(), "step": 1, "kind": "best_probe"}
    folder.mkdir(parents=True)
    save_weights(folder / "best_probe.safetensors", dict(weights), recipe.shape, about)
    (folder / "recipe.json").write_text(json.dumps(recipe.as_json()))
    return folder


def drawn(task: Task, n: int = 3) -> Instances:
    return task.sample(n, Streams(0).named("hostile"))


def data_set(path: Path, task: Task, changed: Mapping[str, Any] | None = None) -> Path:
    """A data set whose manifest has the right hash, with some of its arrays changed (None: left out)."""
    instances = drawn(task)
    save_instances(path, instances, Manifest(task=task_to_json(task), split="train"))
    if changed is not None:
        arrays = _changed(instances.arrays(), changed)
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        said = json.loads(manifest_path(path).read_text()) | {"sha256": content_hash(arrays)}
        manifest_path(path).write_text(json.dumps(said))
    return path


def trace_file(path: Path, task: Task, changed: Mapping[str, Any] | None = None, **about: Any) -> Path:
    """A trace whose manifest has the right hash, with some of its arrays changed (None: left out)."""
    instances = drawn(task)
    score_NA = np.tile(np.arange(task.answer_len, dtype=np.float32), (len(instances), 1))
    trace = gold_trace(task, instances, score_NA)
    save_trace(path, replace(trace, about={"task": task_to_json(task), "policy": "top1"} | about))
    if changed is not None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in _changed(trace.arrays(), changed).items():
                with archive.open(f"000000/{name}.npy", "w") as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
        said = json.loads(manifest_path(path).read_text()) | {"sha256": file_hash(path)}
        manifest_path(path).write_text(json.dumps(said))
    return path


def _changed(arrays: dict[str, Array], changed: Mapping[str, Any]) -> dict[str, Array]:
    made = {name: change(arrays[name]) if callable(change) else change for name, change in changed.items()}
    return {name: array for name, array in (arrays | made).items() if array is not None}


def small_addition() -> Task:
    return hardtail.task("addition", digits=4)
