"""Small runs of the study, measured on little, and a full disk."""

import errno
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hardtail.measuring.diagnosis import Diagnosis
from hardtail.measuring.explain import diagnosed
from hardtail.measuring.subject import Subject
from hardtail.study import measure as measuring
from hardtail.study.grids import Entry
from hardtail.study.recipes import recipe_named
from hardtail.tasks.base import Part
from tests.planted_results import diagnosis_of


def entry(arm: str = "addition-random-smoke", steps: int = 12) -> Entry:
    recipe = recipe_named(arm)
    watch = replace(recipe.watch, log_every=2, eval_every=5, gen_every=6, save_every=4, probe_size=20, decoded=4)
    return Entry(arm, replace(recipe, steps=steps, watch=watch, train_size=50, batch=4))


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _diagnosed(subject: Subject, *given: object, **also: object) -> list[Diagnosis]:
    parts = diagnosed(subject.task, (), None)
    strata, instances = [part.stratum for part in parts], sum(part.n for part in parts)
    return [diagnosis_of("addition", strata, instances, **asdict(subject.origin))]


def measure_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure a finished run on little."""
    orders = ("top1", "lsb")
    parts = [(Part("natural", 5), orders), (Part("chain>=4", 5), orders), (Part("natural", 8), orders[:1])]
    monkeypatch.setattr(measuring, "study_parts", lambda task, n, **_: parts)
    monkeypatch.setattr(measuring, "explain_model", _diagnosed)
    monkeypatch.setattr(measuring, "to_decode", lambda *given: 0)


def full_disk(*given: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")
