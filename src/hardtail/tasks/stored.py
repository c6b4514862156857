"""Instances and traces from files together with their tasks: arrays that fit their file must also fit the task.

Shapes: N instances, L sequence, A answer cells.
"""

from pathlib import Path

import numpy as np

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.files import load_instances, save_instances
from hardtail.core.manifest import Manifest
from hardtail.core.parquet import ENDING, save_parquet
from hardtail.core.trace_files import load_trace
from hardtail.core.types import Instances, Trace
from hardtail.tasks.base import Task
from hardtail.tasks.jit import NoCompilerError
from hardtail.tasks.named import task_of


def stored_instances(path: Path, shown: int | None = None) -> tuple[Task, Instances, Manifest]:
    """A data set with its task; the first `shown` problems, by default all, are solved again and compared."""
    instances, manifest = load_instances(path)
    task = task_of(manifest.about, str(path))
    refuse_misshapen(task, instances, str(path))
    refuse_unsolved(task, instances.take(slice(0, shown)), str(path))
    return task, instances, manifest


def store(path: Path, task: Task, instances: Instances, manifest: Manifest) -> None:
    """Write a data set as `.npz` or, with its problems as text too, as `.parquet`."""
    if path.suffix == ENDING:
        answers = [task.answer_text(instances, i) for i in range(len(instances))]
        save_parquet(path, instances, manifest, {"prompt": task.render(instances), "answer": answers})
    else:
        save_instances(path, instances, manifest)


def stored_trace(path: Path) -> tuple[Task, Trace]:
    """A trace with the task that it names."""
    trace = load_trace(path)
    task = task_of(trace.about, str(path))
    refuse_misshapen(task, trace.instances, str(path))
    written = max(int(array.max(initial=0)) for array in (trace.token_NT, trace.answer_NA))
    if written >= task.vocabulary.size or trace.mask_id != task.vocabulary.mask_id:
        raise _misfit(path, task, "it has tokens outside the task's vocabulary")
    refuse_unsolved(task, trace.instances, str(path))
    return task, trace


def refuse_misshapen(task: Task, instances: Instances, whose: str) -> None:
    """Refuse no instances, arrays of another size than the task's, and values outside its ranges."""
    if not len(instances):
        raise _misfit(whose, task, "it is empty")
    given, own = (instances.tokens_NL.shape[1], instances.answer_len), (task.seq_len, task.answer_len)
    if given != own:
        raise _misfit(whose, task, f"it has sequences of {given[0]} with {given[1]} answer cells, the task {own}")
    if instances.tokens_NL.max(initial=0) >= task.vocabulary.size:
        raise _misfit(whose, task, "it has tokens outside the task's vocabulary")
    for axis, value_N in instances.strata.items():
        labels = task.labels.get(axis, ())
        if (value_N.dtype.kind == "U") != bool(labels) or (labels and not np.isin(value_N, labels).all()):
            accepted = f"one of {', '.join(labels)}" if labels else "a number"
            raise _misfit(whose, task, f"its stratum {quoted(axis)} is not {accepted} everywhere")
    for name, limit in task.extra_limits().items():
        if (value := instances.extras.get(name)) is None:
            continue
        if value.dtype.kind not in "bi" or not ((value >= -1) & (value < limit)).all():
            raise _misfit(whose, task, f"its extra {quoted(name)} has values outside the task's range")


def refuse_unsolved(task: Task, instances: Instances, whose: str) -> None:
    """Refuse prompts that are not problems of the task, and gold answers that do not solve them."""
    try:
        solved = task.parse(task.render(instances))
    except NoCompilerError:  # a machine that only trains and measures takes the file at its word
        return
    except HardtailError as error:
        raise _misfit(whose, task, str(error)) from error
    prompt_NL = np.arange(task.seq_len) < instances.prompt_len_N[:, None]
    same = (solved.tokens_NL == instances.tokens_NL) | ~prompt_NL
    if not ((solved.prompt_len_N == instances.prompt_len_N).all() and same.all()):
        raise _misfit(whose, task, "its prompts are not written as the task writes them")
    if not task.check(solved, instances.answer_NA).all():
        raise _misfit(whose, task, "an answer in it does not solve its problem")


def _misfit(whose: str | Path, task: Task, fault: str) -> HardtailError:
    return HardtailError(f"{whose} does not hold problems of {task.name}: {fault}; build the file again")
