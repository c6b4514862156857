"""Every place where something from outside enters, as a door: how to draw an input, and how to bring it in.

What comes in is also used the way commands use it: what a check lets through must not fail later. `benchmarks/fuzz.py`
and `test_fuzz` share these.
"""

import gzip
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.fields import read_fields
from hardtail.core.files import content_hash, file_hash, manifest_path, read_lines, save_instances
from hardtail.core.records import Coverage, Finished, LogLine, RunEntry, read_json, read_jsonl, read_measurements
from hardtail.core.registry import SCHEMES, TASKS
from hardtail.core.trace_files import save_trace
from hardtail.core.types import Array, Instances
from hardtail.decoding.loop import decode
from hardtail.measuring.diagnosis import diagnose
from hardtail.measuring.diagnosis.record import read_diagnoses
from hardtail.measuring.subject import load_subject
from hardtail.models.weights import read_tensors
from hardtail.policies.named import policy_named
from hardtail.schemes import Corpus
from hardtail.schemes.named import scheme_named
from hardtail.show.instances import as_json, instance_panel
from hardtail.study.recipes import recipe_named
from hardtail.study.runs import Run
from hardtail.study.store import Store
from hardtail.tasks import reading
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.base import Task
from hardtail.tasks.datasets import build
from hardtail.tasks.named import task_to_json
from hardtail.tasks.recorded import read_canvases
from hardtail.tasks.stored import stored_instances, stored_trace
from hardtail.training.checkpoint import LOG, STATE, load_state, state_step
from hardtail.training.run import train
from tests.fuzz_inputs import damaged_arrays, damaged_bytes, damaged_json, damaged_text
from tests.planted import lookahead

Draw = Callable[[Random], Any]
Enter = Callable[[Any], object]
ROOT = Path(__file__).parents[1]
LONGEST_MESSAGE = 5000
"""A message that repeats a huge input is not a sentence."""


@dataclass(frozen=True)
class Door:
    """`enter` raises HardtailError or returns; anything else that it raises is a raw error."""

    name: str
    sound: Any
    """An input without damage, which must come in."""
    draw: Draw
    enter: Enter
    weight: float = 1.0
    """How many inputs it gets in a long run, next to others."""


def refused(door: Door, given: Any) -> bool:
    """Bring an input in; return whether it was refused in a sentence."""
    try:
        door.enter(given)
    except HardtailError as error:
        if len(str(error)) > LONGEST_MESSAGE:
            raise ValueError(f"a message of {len(str(error)):,} characters") from None
        return True
    return False


def doors(folder: Path) -> list[Door]:
    """All doors; `folder` is an empty one for the files they need."""
    from tests.fuzz_commands import command_doors
    from tests.fuzz_newer import newer_doors
    from tests.fuzz_others import other_doors

    task = Addition(digits=4)
    made = [text_doors(), record_doors(folder), array_doors(folder, task), model_doors(folder / "run", task)]
    return [
        door for group in (*made, newer_doors(folder), other_doors(folder), command_doors(folder)) for door in group
    ]


# -- text ---------------------------------------------------------------------------------------------------------


def text_doors() -> list[Door]:
    made = [door for name in TASKS.names() for door in _task_doors(hardtail.task(name))]
    task = hardtail.task("addition")
    policies = ("top1", "lsb", "block,size=4", "threshold,p=0.9", "remdm,variant=conf,eta=0.2", "a.b:C")
    schemes = ("random", "papl,alpha=5,tau=0.5", "random,draw=count,weighting=rate", "puma", "my.module:Scheme")

    def sets(kind: type[Any], *words: str) -> Door:
        return text_door(f"--set of {kind.__name__}", words, lambda word: kind(**read_fields(kind, [word], "it")))

    return [
        *made,
        text_door("policy", policies, lambda text: policy_named(text, task.order_names), 3),
        text_door("scheme", schemes, scheme_named, 3),
        sets(Addition, "digits=8", "operands=full", "planting=isolated"),
        sets(SCHEMES.load("random"), "draw=count", "at_least_one=false", "weighting=batch"),
        sets(SCHEMES.load("papl"), "alpha=5.0", "tau=0.5", "planner=matched"),
        text_door("recipe", ("addition-puma", "maze-random-small", "a.b:c"), recipe_named),
    ]


def text_door(name: str, seeds: Sequence[str], enter: Enter, weight: float = 1.0) -> Door:
    return Door(name, seeds[0], lambda rng: damaged_text(rng.choice(seeds), rng, seeds), enter, weight)


def _task_doors(task: Task) -> list[Door]:
    small = replace(task, size=3) if task.name == "maze" else task  # type: ignore[call-arg]
    held = small.sample(4, Streams(5).named("fuzz"), small.strata()[0])
    prompts, answers = small.render(held), [small.answer_text(held, i) for i in range(4)]
    listing = "\n".join(prompts)
    if task.name == "maze":  # a flat maze as short as these would be a row of a drawn one
        listing = "\n".join(prompt[at : at + 7] for prompt in prompts for at in range(0, 49, 7))
    strata = ("natural", *task.strata(), f"{task.axes[0]}>=3,{task.axes[-1]}<=2", f"{task.axes[0]}=1-2")

    def solved(prompt: str) -> None:
        for item in reading.solve(task, [prompt]):
            item.task.check(item.instances, item.instances.answer_NA)
            item.task.picture(item.instances, item.i)

    def listed(text: str) -> None:
        reading.solve(task, task.prompts([line for line in text.splitlines() if line.strip()]))

    def judged(answer: str) -> None:
        small.fault(held, 1, small.read_answer(held, 1, answer))

    return [
        text_door(f"{task.name}: problem", prompts, solved, 4),
        text_door(f"{task.name}: file", [listing, f"question,answer\n{prompts[0]},\n"], listed, 2),
        text_door(f"{task.name}: answer", [answers[1], *answers, *prompts], judged, 6),
        text_door(f"{task.name}: stratum", strata, task.stratum, 8),
    ]


# -- records and text files ---------------------------------------------------------------------------------------


def record_doors(folder: Path) -> list[Door]:
    """Lines and files of JSON that are recorded, as those of the repository are."""
    run = next(path for path in sorted((ROOT / "results").iterdir()) if (path / "diagnoses.jsonl").exists())
    lines = {
        name: (run / name).read_bytes().splitlines() for name in ("log.jsonl", "evaluations.jsonl", "diagnoses.jsonl")
    }
    index = (ROOT / "results" / "index.jsonl").read_bytes().splitlines()
    finished = json.dumps({"step": 5, "wall": 1.5, "commit": "abc", "device": "cpu", "patience": 4}).encode()
    recipe, coverage = (run / "recipe.json").read_bytes(), (run / "coverage.json").read_bytes()
    own = folder / "records"
    own.mkdir(parents=True, exist_ok=True)

    def opened(content: bytes) -> None:
        found = Run.of_folder(written(own / "run" / "recipe.json", content).parent)
        found.task, found.arm, found.seed  # noqa: B018

    recorded = own / "results"
    named = next(line for line in index if json.loads(line)["name"] == run.name)
    for name, held in lines.items():
        written(recorded / run.name / name, b"\n".join(held[:3]))

    def listed(content: bytes) -> None:
        written(recorded / "index.jsonl", content)
        for found in Store(recorded).runs():
            found.log, found.measured, found.explained, found.coverage  # noqa: B018

    def text_file(content: bytes) -> None:
        read_lines(written(own / "some.txt", content))

    def packed(content: bytes) -> None:
        read_lines(written(own / "some.txt.gz", content))

    sums = Addition(digits=3)
    canvases = {"problems": ["123+456", "999+001"], "mask": "_", "canvases": [["__79", "1_00"], ["0579", "1009"]]}
    ids = {sign: 40 + place for place, sign in enumerate(sums.vocabulary.characters)}
    rows = [
        [[9, *(5 if sign == "_" else ids[sign] for sign in row)] for row in canvas] for canvas in canvases["canvases"]
    ]
    numbered = json.dumps(canvases | {"canvases": rows, "mask": 5, "tokens": ids, "answer_at": [1, 1]}).encode()

    def imported(path: Path) -> None:
        diagnose(sums, read_canvases(path, sums))

    text = "\n".join(hardtail.task("addition").render(hardtail.task("addition").sample(3, Streams(1).named("x"))))
    plain, zipped = text.encode(), gzip.compress(text.encode(), mtime=0)
    return [
        _records("log.jsonl", lines["log.jsonl"], own, lambda path: read_jsonl(path, LogLine), 3),
        _records("evaluations.jsonl", lines["evaluations.jsonl"], own, read_measurements, 3),
        _records("diagnoses.jsonl", lines["diagnoses.jsonl"][:2], own, read_diagnoses, 0.2),
        _records("index.jsonl", index, own, lambda path: read_jsonl(path, RunEntry), 3),
        _records("finished.json", [finished], own, lambda path: read_json(path, Finished), 3),
        _records("coverage.json", [coverage], own, lambda path: read_json(path, Coverage), 0.1),
        _records("canvases.json", [json.dumps(canvases).encode()], own, imported, 0.5),
        _records("canvases-of-ids.json", [numbered], own, imported, 0.5),
        Door("recipe.json", recipe, lambda rng: damaged_json(recipe, rng), opened, 2),
        Door("results", named, lambda rng: damaged_json(named, rng), listed),
        Door("a text file", plain, lambda rng: damaged_bytes(plain, rng), text_file, 2),
        Door("a gzipped file", zipped, lambda rng: damaged_bytes(zipped, rng), packed, 2),
    ]


def _records(name: str, lines: Sequence[bytes], folder: Path, read: Callable[[Path], object], weight: float) -> Door:
    def draw(rng: Random) -> bytes:
        return b"\n".join([damaged_json(rng.choice(lines), rng), rng.choice(lines)][: rng.randint(1, 2)])

    return Door(name, lines[0], draw, lambda content: read(written(folder / name, content)), weight)


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# -- arrays -------------------------------------------------------------------------------------------------------


def array_doors(folder: Path, task: Addition) -> list[Door]:
    """Data sets and traces: damaged as files, and with arrays and manifests that fit each other but mean nothing."""
    built = build(task, "train", seed=0, n=6)
    data, traced = folder / "data.npz", folder / "trace.npz"
    save_instances(data, built.instances, built.manifest)
    about = {"task": task_to_json(task), "policy": "top1", "stratum": "natural", "model": "lookahead"}
    trace = decode(lookahead(task, 1), built.instances, policy_named("top1"), about=about)
    save_trace(traced, trace)
    side, beside = json.loads(manifest_path(data).read_bytes()), json.loads(manifest_path(traced).read_bytes())
    whole, recorded = data.read_bytes(), traced.read_bytes()

    def use_data() -> None:
        own, instances, _ = stored_instances(data)
        used(own, instances)

    def use_trace() -> None:
        own, found = stored_trace(traced)
        used(own, found.instances)
        diagnose(own, found)
        found.exact_N.sum()

    def data_archive(content: bytes) -> None:
        written(data, content)
        written(manifest_path(data), json.dumps(side).encode())
        use_data()

    def data_manifest(content: bytes) -> None:
        written(data, whole)
        written(manifest_path(data), content)
        use_data()

    def data_arrays(arrays: dict[str, Array]) -> None:
        with data.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        count = len(next(iter(arrays.values()))) if arrays and next(iter(arrays.values())).ndim else 0
        said = side | {"sha256": content_hash(arrays), "count": count}
        written(manifest_path(data), json.dumps(said).encode())
        use_data()

    def trace_archive(content: bytes) -> None:
        written(traced, content)
        written(manifest_path(traced), json.dumps(beside | {"sha256": file_hash(traced)}).encode())
        use_trace()

    def trace_manifest(content: bytes) -> None:
        written(traced, recorded)
        written(manifest_path(traced), content)
        use_trace()

    def trace_arrays(arrays: dict[str, Array]) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **{f"000000/{name}": array for name, array in arrays.items()})
        trace_archive(buffer.getvalue())

    held, events = built.instances.arrays(), trace.arrays()
    said, told = json.dumps(side).encode(), json.dumps(beside).encode()
    return [
        Door("data set: archive", whole, lambda rng: damaged_bytes(whole, rng), data_archive),
        Door("data set: manifest", said, lambda rng: damaged_json(said, rng), data_manifest, 0.5),
        Door("data set: arrays", held, lambda rng: damaged_arrays(held, rng), data_arrays, 0.5),
        Door("trace: archive", recorded, lambda rng: damaged_bytes(recorded, rng), trace_archive, 0.4),
        Door("trace: manifest", told, lambda rng: damaged_json(told, rng), trace_manifest, 0.4),
        Door("trace: arrays", events, lambda rng: damaged_arrays(events, rng), trace_arrays, 0.4),
    ]


def used(task: Task, instances: Instances) -> None:
    """What `inspect` and `train --data` do with the instances of a file."""
    for i in range(min(len(instances), 2)):
        as_json(task, instances, i)
        instance_panel(task, instances, i, "it")
    Corpus.on(torch.device("cpu"), instances, task.vocabulary.mask_id)


# -- models -------------------------------------------------------------------------------------------------------


def model_doors(run: Path, task: Addition) -> list[Door]:
    """Weights, saved states and recipes of a run directory."""
    recipe = replace(recipe_named("addition-random-smoke"), steps=2, train_size=20, task=task)
    watch = replace(recipe.watch, probe_size=4, decoded=2)
    recipe = replace(recipe, sizes=replace(recipe.sizes, layers=1, width=16, heads=2), watch=watch)
    train(recipe, run)
    path, described = run / "last.safetensors", run / "recipe.json"
    weights, state, said = path.read_bytes(), (run / STATE).read_bytes(), described.read_bytes()
    held, _ = read_tensors(run / STATE)
    tensors = {name: torch.zeros_like(tensor) for name, tensor in held.items() if not name.startswith(("rng", LOG))}
    two = task.sample(1, Streams(0).named("fuzz"))

    def from_weights(content: bytes) -> None:
        subject = load_subject(str(written(path, content)))
        decode(subject.denoiser, subject.task.sample(1, Streams(0).named("fuzz")), policy_named("top1"))

    def from_run(content: bytes) -> None:
        written(path, weights)
        written(described, content)
        subject = load_subject(str(run), kind="last")
        decode(subject.denoiser, two, policy_named("top1"))

    def resumed(content: bytes) -> None:
        written(run / STATE, content)
        state_step(run)
        load_state(run, tensors)

    return [
        Door("weights: bytes", weights, lambda rng: damaged_bytes(weights, rng), from_weights, 0.4),
        Door("weights: header", weights, lambda rng: damaged_header(weights, rng), from_weights, 0.4),
        Door("run: recipe.json", said, lambda rng: damaged_json(said, rng), from_run, 0.4),
        Door("state: bytes", state, lambda rng: damaged_bytes(state, rng), resumed),
        Door("state: header", state, lambda rng: damaged_header(state, rng), resumed),
    ]


def damaged_header(raw: bytes, rng: Random) -> bytes:
    """A `.safetensors` whose header is damaged as JSON, mostly in what hardtail wrote there."""
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    if rng.random() < 0.8:
        (name, text), *_ = header["__metadata__"].items()
        header["__metadata__"][name] = damaged_json(text.encode(), rng).decode("utf-8", "replace")
        damaged = json.dumps(header).encode()
    else:
        damaged = damaged_json(raw[8:end], rng)
    return len(damaged).to_bytes(8, "little") + damaged + raw[end:]
