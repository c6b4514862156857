"""Things to report on: traces of planted denoisers, a folder of results made up from the paper's numbers, a task whose
problems are markup.

Shapes: N instances, L sequence, A answer cells, B batch.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import hardtail
from hardtail.core.records import append_jsonl
from hardtail.core.trace_files import save_trace
from hardtail.core.types import Instances, Trace
from hardtail.core.vocabulary import Vocabulary
from hardtail.decoding.loop import decode
from hardtail.measuring.diagnosis import Diagnosis
from hardtail.measuring.diagnosis.readiness import Readiness, Right
from hardtail.measuring.diagnosis.record import Result
from hardtail.models.denoiser import Function
from hardtail.policies.named import policy_named
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.base import Part, Task
from hardtail.tasks.strata import Stratum
from tests.planted import adder, lookahead

TASK = Addition(digits=12)
EVIL = "<script>document.title='run'</script>"


def addition_traces(n: int = 20, windows: Mapping[str, int] | None = None) -> list[Trace]:
    """The shortcut of the paper, planted, on easy and hard sums, by confidence and LSB first."""
    found = []
    for stratum in ("natural", "chain>=8"):
        instances = TASK.sample(n, hardtail.Streams(3).named(stratum), stratum)
        for model, window in (windows or {"random": 6, "puma": 2}).items():
            for policy in ("top1", "lsb"):
                about = {
                    "task": TASK.name,
                    "config": TASK.config(),
                    "policy": policy,
                    "stratum": stratum,
                    "model": f"addition-{model}",
                }
                order = policy_named(policy, TASK.order_names)
                found.append(decode(lookahead(TASK, window), instances, order, about=about))
    return found


def wide_trace() -> Trace:
    """Two sums of 32 digits, decoded from the lowest digit on by a denoiser that knows addition."""
    task = Addition()
    sums = task.sample(2, hardtail.Streams(3).named("wide"))
    about = {"task": task.name, "config": task.config(), "policy": "lsb", "stratum": "natural", "model": "adder"}
    return decode(adder(task), sums, policy_named("lsb", task.order_names), about=about)


def rewritten_trace() -> Trace:
    """One sum, lowest digit first; in the end the lowest digit, which was wrong, is replaced by the right one."""
    sums = TASK.sample(1, hardtail.Streams(3).named("rewritten"))
    about = {"task": TASK.name, "config": TASK.config(), "policy": "fixing", "stratum": "natural", "model": "adder"}
    trace = decode(adder(TASK), sums, policy_named("lsb", TASK.order_names), about=about)
    longer: dict[str, Any] = {
        name: np.concatenate([array, array[:, :1]], axis=1)
        for name, array in vars(trace).items()
        if name.endswith("_NT")
    }
    longer["step_NT"][0, -1] = TASK.answer_len
    longer["token_NT"][0, 0] = (longer["token_NT"][0, 0] + 1) % 10
    return replace(trace, **longer)


def saved(folder: Path, traces: Sequence[Trace]) -> list[str]:
    """The traces as files; their names."""
    paths = [folder / f"trace{place:02}.npz" for place in range(len(traces))]
    for path, trace in zip(paths, traces, strict=True):
        save_trace(path, trace)
    return [str(path) for path in paths]


# -- a task whose problems are markup ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Markup(Task):
    """The prompt is a script that would change the page's title; the answer is one letter."""

    name: ClassVar[str] = "markup"
    axes: ClassVar[tuple[str, ...]] = ()
    order_names: ClassVar[tuple[str, ...]] = ()

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary("".join(sorted(set(EVIL))), pad="#", mask="?")

    @property
    def seq_len(self) -> int:
        return len(EVIL) + 1

    @property
    def answer_len(self) -> int:
        return 1

    def strata(self) -> list[str]:
        return ["natural"]

    def splits(self) -> Mapping[str, Sequence[Part]]:
        return {"train": [Part("natural", 1)], "test": [Part("natural", 1)]}

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        return self.parse([EVIL] * len(key_N))

    def parse(self, prompts: Sequence[str]) -> Instances:
        tokens_NL = np.stack([self.vocabulary.encode(prompt + "<") for prompt in prompts])
        everywhere_NA = np.ones((len(prompts), 1), dtype=np.bool_)
        prompt_len_N = np.full(len(prompts), len(EVIL), dtype=np.int32)
        return Instances(tokens_NL, prompt_len_N, everywhere_NA, everywhere_NA)


def markup_trace() -> Trace:
    """A decode of that task by a model and policy whose names are markup too."""
    task = Markup()

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return torch.zeros(*at_BA.shape, task.vocabulary.size)

    about = {"task": task.name, "config": {}, "policy": "<img src=x onerror=alert(1)>", "stratum": EVIL, "model": EVIL}
    denoiser = Function(logits, task.vocabulary.mask_id)
    return decode(denoiser, task.parse([EVIL]), policy_named("top1"), about=about)


# -- recorded results -------------------------------------------------------------------------------------------------


def results(folder: Path, seeds: Sequence[int] = (41, 42)) -> Path:
    """Runs of addition that found nearly what the paper prints."""
    entries = []
    for scheme in ("random", "papl", "puma"):
        for seed in seeds:
            name = f"addition-{scheme}-tf32-s{seed}"
            entries.append(
                {
                    "name": name,
                    "arm": f"addition-{scheme}-tf32",
                    "task": "addition",
                    "seed": seed,
                    "steps": 300_000,
                    "commit": "0123456789abcdef",
                    "device": "a device",
                    "wall": 700.0,
                }
            )
            lines(folder / name / "log.jsonl", _log(scheme, seed))
            lines(folder / name / "evaluations.jsonl", _evaluations(scheme, seed))
            append_jsonl(folder / name / "diagnoses.jsonl", [_diagnosis(scheme)])
            coverage = {"by_count": [0, *range(1, 34)], "by_count_and_rank": [[k] * 33 for k in range(34)]}
            (folder / name / "coverage.json").write_text(json.dumps(coverage))
    lines(folder / "index.jsonl", entries)
    return folder


def lines(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _log(scheme: str, seed: int) -> list[dict[str, Any]]:
    speed = {"random": 80_000, "papl": 120_000, "puma": 12_000}[scheme] + 100 * seed
    found = []
    for step in range(0, 300_001, 10_000):
        right = float(1 - np.exp(-((step / speed) ** 2)))
        found.append(
            {"step": step, "loss": 2.3 * (1 - right) + 0.02, "probe_nll": 2.3 - right, "natural": right}
            | {
                "probe_guessed": round(33 * (1 - right)),
                "hard": 0.9 * right**2,
                "hard_logical": right**2,
                "wall": 0.1,
                "tokens": step,
            }
        )
    return found


def _evaluations(scheme: str, seed: int) -> list[dict[str, Any]]:
    found, tables = [], SOURCE.about("addition")
    for order in (order for table in tables.tables for order in table.orders):
        for chain in tables.strata:
            printed = tables.cell(scheme, order.key, chain).paper or 0.0
            share = min(1.0, max(0.0, printed + (0.004 if seed % 2 else -0.004) - (0.3 if chain == "28" else 0)))
            found.append((order.policy, f"chain>={chain}", share))
    return [
        {
            "kind": "accuracy",
            "task": "addition",
            "policy": policy,
            "stratum": stratum,
            "checkpoint": "best_probe",
            "n": 500,
            "exact_match": share,
            "cell_accuracy": share,
            "commit": "0123456789abcdef",
            "device": "a device",
        }
        for policy, stratum, share in [*found, ("top1", "natural", 0.999)]
    ]


def _diagnosis(scheme: str) -> Diagnosis:
    early = {"random": 0.2, "papl": 0.4, "puma": 0.6}[scheme]
    groups = {"free": 500, "ready": 495, "unready": 400}
    right = {name: Right(500, right, right / 500) for name, right in groups.items()}
    readiness = Readiness(1500, 1000, round(1000 * early), early * 2 / 3, early, right, {}, {}, {})
    return Diagnosis(
        task="addition",
        policy="top1",
        checkpoint="last",
        strata=("chain>=28",),
        result=Result(300),
        readiness=readiness,
    )
