"""Doors of packed runs, claims of a user's own, problems to measure on, and canvases of other tools."""

import json
import shutil
from pathlib import Path
from random import Random

import numpy as np

from hardtail.core.trace_files import load_trace
from hardtail.core.types import Array
from hardtail.measuring.diagnosis import diagnose
from hardtail.measuring.given import GivenProblems
from hardtail.study.claims import Results, judge
from hardtail.study.claims.ledger import source_named
from hardtail.study.pack import pack, unpack
from hardtail.study.store import Store
from hardtail.tasks.addition.task import Addition
from hardtail.traces.canvases import canvases_of, trace_of_canvases
from tests.fuzz_doors import ROOT, Door, text_door, written
from tests.fuzz_inputs import damaged_arrays, damaged_bytes, damaged_json

CLAIMS = """title = "Mine"
settings = "as it is"

[claims."mine.one"]
sentence = "PUMA is right."
where = "Table 1"
reports = "0.99"

[[claims."mine.one".checks]]
rule = "at least"
of = { task = "addition", scheme = "puma-small", stratum = "natural", printed = 0.99 }
bound = 0.9

[[claims."mine.one".checks]]
rule = "level"
of = { task = "addition", scheme = "puma-small", stratum = "chain>=4", metric = "valid", printed = 0.9, n = 500 }
tolerance = 0.9

[[claims."mine.one".checks]]
rule = "times"
of = { task = "addition", scheme = "papl-small", policy = "random" }
than = { task = "addition", scheme = "random-small", policy = "random" }
times = 2.5
failures = true

[claims."mine.two"]
sentence = "There are no proteins."
where = "abstract"
reports = "+40 %"
elsewhere = "there are no proteins here"
"""


def newer_doors(folder: Path) -> list[Door]:
    """`folder` has the run, the data set and the trace of other doors."""
    made, runs, task = folder / "packed", folder / "runs", Addition(digits=4)
    pack(folder / "run", made)
    side, piece = made / "run.pack.json", made / "run.000"
    said, whole = side.read_bytes(), piece.read_bytes()
    trace = load_trace(folder / "trace.npz")
    canvases = {str(step): canvas for step, canvas in enumerate(canvases_of(trace))}
    results = Results(Store(ROOT / "results-small"))

    def unpacked(manifest: bytes, content: bytes) -> None:
        shutil.rmtree(runs, ignore_errors=True)
        written(side, manifest)
        written(piece, content)
        unpack(made, runs)

    def judged(text: str) -> None:
        path = written(folder / "claims.toml", text.encode("utf-8", "replace"))
        judge(results, source_named(str(path)).claims())

    def measured(text: str) -> None:
        given = GivenProblems.read(task, written(folder / "problems.txt", text.encode("utf-8", "replace")))
        given.together(given.strata([str(task.stratum("natural"))]), None)

    def replayed(arrays: dict[str, Array]) -> None:
        diagnose(task, trace_of_canvases(trace.instances, list(arrays.values()), trace.mask_id))

    def damaged_pack(rng: Random) -> bytes:
        held = json.loads(said)
        if rng.random() < 0.3:
            held["pieces"] *= rng.choice((0, 2, 1000))
        return damaged_json(json.dumps(held).encode(), rng)

    def damaged_canvases(rng: Random) -> dict[str, Array]:
        return {name: np.asarray(array) for name, array in damaged_arrays(canvases, rng).items()}

    problems = task.render(trace.instances)
    return [
        Door("packed run: manifest", said, damaged_pack, lambda raw: unpacked(raw, whole), 0.5),
        Door("packed run: piece", whole, lambda rng: damaged_bytes(whole, rng), lambda raw: unpacked(said, raw), 0.3),
        text_door("claims of a user's own", [CLAIMS], judged, 1),
        text_door("problems to measure on", ["\n".join(problems), *problems], measured, 1),
        Door("canvases", canvases, damaged_canvases, replayed, 0.5),
    ]
