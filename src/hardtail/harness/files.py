"""Our tasks as the YAML files of the harness: one for each stratum, one group for each task, one group for all."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from hardtail.core.files import atomic
from hardtail.core.registry import TASKS
from hardtail.harness.problems import SHOTS, TEST
from hardtail.tasks.base import Task
from hardtail.tasks.named import task_named

GROUP = "hardtail"
VERSION = 1
"""Of the problems and their texts: a change that changes results raises it."""


def write_tasks(folder: Path) -> list[str]:
    """Write the files of all registered tasks; return the names of the groups."""
    groups = []
    for name, task in [(name, task_named(name)) for name in TASKS.names()]:
        members = {task_name(task, stratum): stratum for stratum in task.strata()}
        for member, stratum in members.items():
            _write(folder / f"{member}.yaml", _task(member, name, task, stratum))
        groups.append(f"{GROUP}_{_plain(task.name)}")
        _write(folder / f"{groups[-1]}.yaml", _group(groups[-1], list(members)))
    _write(folder / f"{GROUP}.yaml", _group(GROUP, groups))
    return [GROUP, *groups]


def task_name(task: Task, stratum: str) -> str:
    """Such as `hardtail_addition_chain_ge_28`."""
    return f"{GROUP}_{_plain(task.name)}_{_plain(stratum)}"


def _plain(text: str) -> str:
    for sign, word in ((">=", "_ge_"), ("<=", "_le_"), (">", "_gt_"), ("<", "_lt_"), ("=", "_")):
        text = text.replace(sign, word)
    return re.sub(r"\W+", "_", text).strip("_")


def _task(member: str, name: str, task: Task, stratum: str) -> str:
    said = task.words.instruction
    metric = {"aggregation": "mean", "higher_is_better": True}
    entries: dict[str, object] = {
        "task": member,
        "test_split": TEST,
        "fewshot_split": SHOTS,
        "output_type": "generate_until",
        "description": f"{said}\n\n" if said else "",
        "doc_to_text": "Problem: {{prompt}}\nAnswer:",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n"], "do_sample": False, "max_gen_toks": 2 * task.answer_len + 16},
        "metric_list": [{"metric": "exact_match", **metric}, {"metric": "valid", **metric}],
        "metadata": {"version": VERSION, "problems": name, "stratum": stratum},
    }
    functions = {"custom_dataset": "documents", "process_results": "judge"}
    lines = [f"{key}: {json.dumps(value)}" for key, value in entries.items()]
    lines += [f"{key}: !function hardtail.harness.problems.{function}" for key, function in functions.items()]
    return "\n".join(lines) + "\n"


def _group(name: str, members: Sequence[str]) -> str:
    mean = {"aggregation": "mean", "weight_by_size": False, "filter_list": ["none"]}
    entries = {
        "group": name,
        "task": list(members),
        "aggregate_metric_list": [{"metric": metric, **mean} for metric in ("exact_match", "valid")],
        "metadata": {"version": VERSION},
    }
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in entries.items())


def _write(path: Path, text: str) -> None:
    with atomic(path) as file:
        file.write(text.encode())
