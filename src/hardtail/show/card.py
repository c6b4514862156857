"""Cards for the Hub: what a model, a data set or a trace is, written from its own records."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hardtail.core.describe import short_name
from hardtail.core.hub import HF
from hardtail.core.manifest import Manifest
from hardtail.core.pretrained import Pretrained
from hardtail.core.records import Accuracy, Finished
from hardtail.core.tables import Table, share_text
from hardtail.core.types import Instances, Trace
from hardtail.core.version import __version__
from hardtail.measuring.diagnosis import Diagnosis, verdict
from hardtail.measuring.statistics import wilson
from hardtail.measuring.subject import Subject
from hardtail.show.zoo import rounded_text
from hardtail.tasks.base import Task
from hardtail.tasks.named import task_to_json
from hardtail.zoo import Model

ABOUT = (
    "Made with hardtail {version}, which shows where masked diffusion models commit too early. Everything on this card "
    "was written from recorded values."
)


def model_card(
    name: str,
    subject: Subject,
    recipe: Mapping[str, Any],
    *,
    licence: str | None,
    finished: Finished | None = None,
    accuracies: Sequence[Accuracy] = (),
    diagnoses: Sequence[Diagnosis] = (),
    listed: Model | None = None,
) -> str:
    """The card of a model: how it was trained, what was measured of it, how to load it."""
    fields = recipe["fields"]
    task, origin = subject.task, subject.origin
    facts = {
        "task": f"`{task.name}`: {_settings(task.config())}",
        "scheme": _named(fields.get("scheme")),
        "sizes": None if origin.pretrained else _named(fields.get("sizes")),
        "trained from": _base(origin.pretrained),
        "recipe": f"`{origin.recipe}`" + ("" if origin.seed is None else f", seed {origin.seed}"),
        "weights": f"`{origin.checkpoint}`" + _of_steps(origin.step, fields.get("steps")),
        "trained": None
        if finished is None
        else f"{finished.wall:,.0f} s on {finished.device}, commit `{finished.commit}`",
    }
    index = [_result(task, held) for held in accuracies]
    head = {
        "library_name": "hardtail",
        "license": _lower(licence),
        "tags": ["hardtail", "masked-diffusion", task.name],
        "model-index": [{"name": name.rpartition("/")[2], "results": index}] if index else None,
    }
    parts = [
        f"# {name.rpartition('/')[2]}",
        f"A masked diffusion model of the task `{task.name}`. {ABOUT.format(version=__version__)}",
        _facts(facts),
    ]
    if listed is not None:
        parts.append(f"{listed.about}.")
        measured = [
            (stratum, policy, share, n := listed.n[stratum][policy], *wilson(round(share * n), n))
            for stratum, of in listed.accuracy.items()
            for policy, share in of.items()
        ]
        parts.append(_accuracy_table(measured))
        if listed.rounded is not None:
            parts.append(f"The weights are rounded to {rounded_text(listed.rounded)}.")
    if accuracies:
        parts.append(
            _accuracy_table((of.stratum, of.policy, of.exact_match, of.n, of.low, of.high) for of in accuracies)
        )
    if diagnoses:
        parts.append(f"```text\n{verdict(diagnoses, task.words).text()}\n```")
    call = f'model = ht.load("{HF}{name}"{_own(task)})  # at a commit: "{HF}{name}@COMMIT"'
    parts.append(_python("hub", call, "print(ht.evaluate(model, n=100))"))
    return _card(head, *parts)


def data_card(name: str, task: Task, instances: Instances, manifest: Manifest, file: str, licence: str | None) -> str:
    """The card of a data set: where its problems come from, and the first of them."""
    facts = {
        "task": f"`{task.name}`: {_settings(task.config())}",
        "split": manifest.split,
        "problems": f"{len(instances):,}" + (f", {manifest.distinct:,} distinct" if manifest.distinct else ""),
        "seed": None if manifest.seed is None else str(manifest.seed),
        "from": manifest.file,
        "train and test": manifest.train_and_test,
        "strata": ", ".join(instances.strata) or None,
    }
    shown = "\n".join(_problem(task, instances, i) for i in range(min(3, len(instances))))
    viewer = [{"config_name": "default", "data_files": file}] if file.endswith(".parquet") else None
    return _card(
        {"license": _lower(licence), "tags": ["hardtail", "masked-diffusion", task.name], "configs": viewer},
        f"# {name.rpartition('/')[2]}",
        f"Problems of the task `{task.name}` with their answers and logical orders. "
        f"{ABOUT.format(version=__version__)}",
        _facts(facts),
        f"```text\n{shown}\n```",
        _python("hub,frames", f'instances, manifest = ht.load_instances("{HF}{name}")'),
    )


def trace_card(name: str, task: Task, trace: Trace, licence: str | None) -> str:
    """The card of a trace: whose decode it is."""
    plain = {key: value for key, value in trace.about.items() if isinstance(value, str | int | float) and value != ""}
    facts = {"task": f"`{task.name}`: {_settings(task.config())}", "problems": f"{len(trace):,}"}
    facts |= {key.replace("_", " "): f"`{value}`" for key, value in plain.items() if key != "task"}
    return _card(
        {"license": _lower(licence), "tags": ["hardtail", "masked-diffusion", "trace", task.name]},
        f"# {name.rpartition('/')[2]}",
        f"Every token that a model wrote while it decoded problems of `{task.name}`. "
        f"{ABOUT.format(version=__version__)}",
        _facts(facts),
        _python("hub", f'trace = ht.load_trace("{HF}{name}")', "print(ht.diagnose(trace))"),
    )


def _card(metadata: Mapping[str, object], *parts: str) -> str:
    """A card's text. Of its metadata, which are YAML, each entry is a line of JSON."""
    lines = [f"{key}: {json.dumps(value)}" for key, value in metadata.items() if value is not None]
    return "\n\n".join(["\n".join(["---", *lines, "---"]), *parts]) + "\n"


def _of_steps(step: int | None, steps: int | None) -> str:
    return "" if step is None else f" of step {step:,}" + (f" of {steps:,}" if steps else "")


def _result(task: Task, held: Accuracy) -> dict[str, Any]:
    """An accuracy as the Hub lists it."""
    name = f"{task.name} {held.stratum}, {held.policy}, of {held.n:,}"
    return {
        "task": {"type": "masked-diffusion", "name": "decoding"},
        "dataset": {"type": f"hardtail/{task.name}", "name": f"{task.name}, {held.stratum}"},
        "metrics": [{"type": "exact_match", "name": f"exact match, {name}", "value": held.exact_match}],
    }


def _base(pretrained: Pretrained | None) -> str | None:
    """The model that another one was fine-tuned from."""
    return None if pretrained is None else f"`{pretrained.published.name}`, SHA-256 `{pretrained.sha256}`"


def _lower(licence: str | None) -> str | None:
    """The Hub writes the names of licences in lower case."""
    return licence.lower() if licence else None


def _facts(facts: Mapping[str, str | None]) -> str:
    rows = [f"| {key} | {_cell(value)} |" for key, value in facts.items() if value]
    return "\n".join(["| | |", "| --- | --- |", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _accuracy_table(measured: Iterable[tuple[str, str, float, int, float | None, float | None]]) -> str:
    """Exact match from stratum, policy, share, n, and the ends of the interval if they are known."""
    by: dict[str, dict[str, str]] = {}
    for stratum, policy, share, n, low, high in measured:
        by.setdefault(stratum, {})[policy] = f"{share_text(share, low, high)} of {n:,}"
    columns = list(dict.fromkeys(policy for of in by.values() for policy in of))
    rows = tuple((stratum, *map(of.get, columns)) for stratum, of in by.items())
    title = "Exact match by stratum and decoding order, with 95 % intervals"
    return Table(title, ("stratum", *columns), rows).markdown().strip()


def _own(task: Task) -> str:
    """The argument that names a task that is not registered, and so not found by its name in a file."""
    named = task_to_json(task)
    fields = (f"{key}={value}" for key, value in named["fields"].items())
    return f', "{",".join([named["name"], *fields])}"' if ":" in named["name"] else ""


def _named(described: Any) -> str | None:
    """A class with its fields, as `describe` writes them."""
    if not isinstance(described, dict) or not isinstance(kind := described.get("class"), str):
        return None
    return f"`{short_name(kind)}`: {_settings(described.get('fields', {}))}"


def _settings(fields: Mapping[str, Any]) -> str:
    plain = (f"{key}={value}" for key, value in fields.items() if isinstance(value, str | int | float | bool))
    return ", ".join(plain) or "as it is"


def _problem(task: Task, instances: Instances, i: int) -> str:
    return f"{task.render(instances.take(slice(i, i + 1)))[0]}\n→ {task.answer_text(instances, i)}"


def _python(extras: str, *lines: str) -> str:
    call: Iterable[str] = ("import hardtail as ht", "", *lines)
    return f"```console\npip install 'hardtail[{extras}]'\n```\n\n```python\n" + "\n".join(call) + "\n```"
