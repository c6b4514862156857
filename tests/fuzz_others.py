"""Doors to other programs: Parquet, models of `transformers`, the Hub, the lm-evaluation-harness, and shared stores."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet

from hardtail.api.hub import packed
from hardtail.core.depots import FolderDepot
from hardtail.core.errors import BusyError
from hardtail.core.files import content_hash
from hardtail.core.hub import Address
from hardtail.core.parquet import ENTRY
from hardtail.core.types import Array
from hardtail.harness.problems import Wanted, drawn, judge
from hardtail.models.hf.layout import Template
from hardtail.models.hf.loading import load_hf
from hardtail.study.leases import Leases
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.datasets import build
from hardtail.tasks.stored import store, stored_instances
from tests.fuzz_doors import ROOT, Door, text_door, used, written
from tests.fuzz_inputs import damaged_arrays, damaged_bytes, damaged_json
from tests.hf_toys import saved

LEASE = {
    "owner": "5e1f", "unit": "abc", "host": "here", "process": os.getpid(), "place": "here", "born": 7, "step": 5,
    "expires": 4e9, "doing": "training",
}  # fmt: skip


def other_doors(folder: Path) -> list[Door]:
    """`folder` has the run of other doors."""
    made = parquet_doors(folder / "parquet"), hub_doors(folder), hf_doors(folder / "hf"), harness_doors()
    return [door for group in (*made, store_doors(folder / "store")) for door in group]


def parquet_doors(folder: Path) -> list[Door]:
    task, path = Addition(digits=4), written(folder / "data.parquet", b"")
    built = build(task, "train", seed=0, n=6)
    path.unlink()
    store(path, task, built.instances, built.manifest)
    whole, table = path.read_bytes(), pyarrow.parquet.read_table(path)
    entry, arrays = table.schema.metadata[ENTRY], built.instances.arrays()

    def opened() -> None:
        own, instances, _ = stored_instances(path)
        used(own, instances)

    def file(content: bytes) -> None:
        written(path, content)
        opened()

    def described(content: bytes) -> None:
        pyarrow.parquet.write_table(table.replace_schema_metadata({ENTRY: content}), path)
        opened()

    def columns(held: dict[str, Array]) -> None:
        """Arrays whose description and hash are right."""
        said = json.loads(entry)
        said["manifest"] |= {"sha256": content_hash(held), "count": len(next(iter(held.values()), ()))}
        said["arrays"] = {name: {"dtype": array.dtype.str, "shape": array.shape} for name, array in held.items()}
        made = {name: _column(array) for name, array in held.items()}
        rows = min(map(len, made.values()), default=0)
        cut = pyarrow.table({name: column[:rows] for name, column in made.items()})
        pyarrow.parquet.write_table(cut.replace_schema_metadata({ENTRY: json.dumps(said).encode()}), path)
        opened()

    return [
        Door("parquet: file", whole, lambda rng: damaged_bytes(whole, rng), file, 0.4),
        Door("parquet: manifest", entry, lambda rng: damaged_json(entry, rng), described, 0.4),
        Door("parquet: columns", arrays, lambda rng: _with_length(damaged_arrays(arrays, rng)), columns, 0.4),
    ]


def _with_length(arrays: dict[str, Array]) -> dict[str, Array]:
    """Without arrays that no column can hold."""
    return {name: array for name, array in arrays.items() if array.size and array.ndim and array.dtype.kind in "biufU"}


def _column(array: Array) -> Any:
    flat = pyarrow.array(array.reshape(-1).tolist() if array.dtype.kind == "U" else array.reshape(-1))
    return flat if array.ndim == 1 else pyarrow.FixedSizeListArray.from_arrays(flat, array[0].size)


def _damaged(sound: bytes) -> Callable[[Random], bytes]:
    """Damage as JSON, where it is JSON."""
    damage = damaged_json if sound.startswith(b"{") else damaged_bytes
    return lambda rng: damage(sound, rng)


def hub_doors(folder: Path) -> list[Door]:
    """What `hf:` names, and what `push` makes of a run before it is sent."""
    run, names = folder / "run", ("hf:me/try", "hf:user/name@main", "hf:a/b@0123abc", "me/x.y-z")
    held = {name: (run / name).read_bytes() for name in ("recipe.json", "finished.json")}
    recorded = next(path for path in sorted((ROOT / "results").rglob("evaluations.jsonl")))
    held[recorded.name] = recorded.read_bytes().splitlines()[0]

    def pushed(name: str) -> Callable[[bytes], None]:
        def enter(content: bytes) -> None:
            for other, sound in held.items():
                written(run / other, sound if other != name else content)
            packed(str(run), "hf:me/try", "mit")

        return enter

    def addressed(text: str) -> None:
        packed(str(run), f"hf:{Address.parse(text).name}", text)

    written(run / recorded.name, held[recorded.name])
    return [
        text_door("hub: address", names, Address.parse, 3),
        text_door("push: address and licence", names, addressed, 0.3),
        *(Door(f"push: {name}", sound, _damaged(sound), pushed(name), 0.2) for name, sound in held.items()),
    ]


def hf_doors(folder: Path) -> list[Door]:
    """The files of a tiny BERT as `transformers` saves them."""
    folder.mkdir(parents=True, exist_ok=True)
    name, vocabulary = saved(folder, "bert"), Addition(digits=4).vocabulary
    held = {path.name: path.read_bytes() for path in folder.iterdir()}

    def loaded(damaged: str) -> Callable[[bytes], None]:
        def enter(content: bytes) -> None:
            for other, sound in held.items():
                written(folder / other, sound if other != damaged else content)
            load_hf(name, vocabulary)

        return enter

    templates = ("{prompt}{answer}", "Add: {prompt}\\n{answer}", "{prompt}=", "Q {prompt} A {answer}.")
    return [
        text_door("hf: template", templates, Template.parse, 3),
        *(Door(f"hf: {file}", sound, _damaged(sound), loaded(file), 0.1) for file, sound in held.items()),
    ]


def harness_doors() -> list[Door]:
    """What people type for the harness as metadata, and what its models answer."""
    metadata = json.dumps({"problems": "addition,digits=4", "stratum": "chain>=2", "n": 3, "seed": 1}).encode()
    doc = {"problems": "addition,digits=4", "stratum": "natural", "n": 3, "seed": 1, "row": 2}

    def typed(content: bytes) -> None:
        try:
            said = json.loads(content)
        except (ValueError, RecursionError):  # the harness reads it
            return
        if isinstance(said, dict):
            asked = Wanted.read({"problems": "addition,digits=4", "stratum": "natural"} | said)
            drawn(asked.problems, asked.stratum, min(asked.n, 5), asked.seed)

    def judged(text: str) -> None:
        judge(doc, [text])

    return [
        Door("lm-eval: metadata", metadata, lambda rng: damaged_json(metadata, rng), typed),
        text_door("lm-eval: answer", ("01234", " 5 6\n", "Answer: 12"), judged, 3),
    ]


def store_doors(folder: Path) -> list[Door]:
    """Leases, which other machines write."""
    leases = Leases(FolderDepot(folder))

    def taken(content: bytes) -> None:
        written(folder / ".leases" / "run.json", content)
        leases.held()
        try:
            with leases.take("run", "abc"):
                pass
        except BusyError:
            pass

    sound = json.dumps(LEASE).encode()
    return [Door("lease", sound, lambda rng: damaged_json(sound, rng), taken, 1)]
