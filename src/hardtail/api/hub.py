"""Publish a model, a data set or a trace on the Hugging Face Hub."""

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec
from safetensors.torch import save as save_tensors

from hardtail import zoo
from hardtail.core import hub
from hardtail.core.errors import HardtailError, on_files
from hardtail.core.files import manifest_path, read_regular
from hardtail.core.hub import CARD, DATA, HF, RECORDS, TRACE, WEIGHTS, Address
from hardtail.core.manifest import TraceManifest
from hardtail.core.parsing import converted, decoded
from hardtail.core.pretrained import ZOO, Pretrained
from hardtail.core.recipes import RECIPE, recipe_of
from hardtail.core.records import FINISHED, Finished, read_json
from hardtail.measuring.subject import load_subject
from hardtail.models.weights import load_weights, read_tensors
from hardtail.show.card import data_card, model_card, trace_card
from hardtail.study.runs import Run
from hardtail.tasks.stored import stored_instances, stored_trace


@dataclass(frozen=True)
class Package:
    """What a repository will hold, checked to be loadable."""

    kind: hub.Kind
    what: str
    files: dict[str, Path | bytes]

    @property
    def size(self) -> int:
        return sum(len(held) if isinstance(held, bytes) else held.stat().st_size for held in self.files.values())


@on_files()
def push(
    source: str | Path, to: str, *, private: bool = False, licence: str | None = None, message: str | None = None
) -> str:
    """Publish on the Hub in one commit; return the name to load it by, at that commit.

    `source`   a run directory, a .safetensors file, zoo:NAME, or the .npz or .parquet of a data set or trace
    `to`       "hf:user/name"; the repository is made if need be
    `private`  make a new repository private
    `licence`  for the card, such as "apache-2.0"
    """
    package = packed(str(source), to, licence)
    return sent(package, to, private=private, message=message)


def sent(package: Package, to: str, *, private: bool = False, message: str | None = None) -> str:
    said = message or f"Add a {package.what} with hardtail"
    pinned = hub.upload(Address.parse(to), package.files, kind=package.kind, message=said, private=private)
    return f"{HF}{pinned.name}@{pinned.revision}"


def packed(source: str, to: str, licence: str | None = None) -> Package:
    """The files to publish, with a card written from what is recorded; what cannot be loaded is refused."""
    if not to.startswith(HF):
        raise HardtailError(f"{to}: give where to push to as {HF}user/name")
    name = Address.parse(to).name
    if source.endswith((".npz", ".parquet")):
        return _data(Path(source), name, licence)
    if source.startswith(ZOO):
        listed = zoo.find(source.removeprefix(ZOO))
        return _weights(listed.path, name, licence or listed.licence, listed)
    if Path(source).is_dir():
        return _run(Path(source), name, licence)
    return _weights(Path(source), name, licence)


def _run(folder: Path, name: str, licence: str | None) -> Package:
    subject, run = load_subject(str(folder)), Run.of_folder(folder)
    kind = subject.origin.checkpoint
    card = model_card(
        name,
        subject,
        recipe_of(folder).described,
        licence=licence,
        finished=read_json(folder / FINISHED, Finished),
        accuracies=[held for held in run.accuracies if held.checkpoint == kind],
        diagnoses=[held for (_, of), held in run.explained.items() if of == kind],
    )
    held = [folder / file for file in (RECIPE, *WEIGHTS, *RECORDS)]
    files: dict[str, Path | bytes] = {path.name: path for path in held if path.exists()}
    return Package("model", "model", _published(files, subject.origin.pretrained) | {CARD: card.encode()})


def _weights(path: Path, name: str, licence: str | None, listed: zoo.Model | None = None) -> Package:
    """Weights without their run: a model whose recipe is the one in their header."""
    subject = load_subject(str(path))
    recipe = load_weights(path)[1]["recipe"]
    if (kind := subject.origin.checkpoint) is None:
        raise HardtailError(f"{path} does not say which weights of a run it holds; push the run directory")
    card, recipe_bytes = model_card(name, subject, recipe, licence=licence, listed=listed), msgspec.json.encode(recipe)
    files: dict[str, Path | bytes] = {RECIPE: recipe_bytes, f"{kind}.safetensors": path}
    return Package("model", "model", _published(files, subject.origin.pretrained) | {CARD: card.encode()})


def _published(files: dict[str, Path | bytes], pretrained: Pretrained | None) -> dict[str, Path | bytes]:
    """The files of a model, without the folder on this machine from which it was fine-tuned."""
    if pretrained is None or pretrained == pretrained.published:
        return files

    def renamed(text: str) -> str:
        spelled = {json.dumps(pretrained.name, ensure_ascii=ascii): ascii for ascii in (True, False)}
        for old, ascii in spelled.items():
            text = text.replace(old, json.dumps(pretrained.published.name, ensure_ascii=ascii))
        return text

    found: dict[str, Path | bytes] = {}
    for name, held in files.items():
        if isinstance(held, Path) and name.endswith(".safetensors"):
            tensors, header = read_tensors(held)
            found[name] = save_tensors(tensors, {key: renamed(value) for key, value in header.items()})
        else:
            raw = read_regular(held) if isinstance(held, Path) else held
            found[name] = renamed(raw.decode()).encode()
    return found


def _data(path: Path, name: str, licence: str | None) -> Package:
    side = manifest_path(path)
    if path.suffix == ".npz" and _is_trace(side):
        task, trace = stored_trace(path)
        card = trace_card(name, task, trace, licence)
        return Package("dataset", "trace", {CARD: card.encode(), f"{TRACE}.npz": path, f"{TRACE}.json": side})
    task, instances, manifest = stored_instances(path)
    file = f"{DATA}{path.suffix}"
    files: dict[str, Path | bytes] = {
        CARD: data_card(name, task, instances, manifest, file, licence).encode(),
        file: path,
    }
    if path.suffix == ".npz":
        files[f"{DATA}.json"] = side
    return Package("dataset", "data set", files)


def _is_trace(side: Path) -> bool:
    try:
        held = decoded(read_regular(side), str(side))
        return converted(held, TraceManifest, str(side)).kind == "trace"
    except (FileNotFoundError, HardtailError):  # loading it will say what is wrong
        return False
