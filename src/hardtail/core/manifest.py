"""Manifests: the `.json` next to an `.npz`, which says what the arrays are and holds their hash."""

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from hardtail.core.errors import HardtailError
from hardtail.core.parsing import converted, decoded
from hardtail.core.types import MOST_TOKENS

FORMAT = 1
M = TypeVar("M", bound=Struct)
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Seed = Annotated[int, Meta(ge=0)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class PartOfSplit(Struct, frozen=True):
    """A number of instances of a stratum."""

    stratum: str
    n: Count


class Manifest(Struct, frozen=True, kw_only=True):
    """What a data set is. `format`, `count` and `sha256` are filled in when it is saved."""

    format: Literal[1] = 1
    hardtail: str | None = None
    """The version that made it."""
    task: dict[str, Any] | str | None = None
    """As `tasks.named` writes it; in older files the task's name, and its fields as `config`."""
    config: dict[str, Any] | None = None
    preset: str | None = None
    split: str | None = None
    seed: Seed | None = None
    file: str | None = None
    """The file that the problems come from, if they were not drawn."""
    file_sha256: str | None = None
    streams: tuple[str, ...] | None = None
    parts: tuple[PartOfSplit, ...] | None = None
    part: PartOfSplit | None = None
    train_and_test: str | None = None
    """How the two are kept apart."""
    removed: Count | None = None
    """How many drawn problems were left out for that."""
    distinct: Count | None = None
    count: Count = 0
    sha256: Hash = "0" * 64

    @property
    def about(self) -> dict[str, Any]:
        """Which task it is of, as a trace says it too."""
        return {"task": self.task, "config": self.config}


class TraceManifest(Struct, frozen=True, kw_only=True):
    """What a trace is."""

    format: Literal[1] = 1
    kind: Literal["trace"]
    count: Count
    parts: Count
    mask_id: Annotated[int, Meta(ge=0, lt=MOST_TOKENS)]
    about: dict[str, Any]
    """Where it comes from, as `Trace.about`."""
    sha256: Hash
    """Of the file."""


def read_manifest(raw: bytes, kind: type[M], where: str, remedy: str) -> M:
    """A manifest of the given kind; errors start with `where` it is from and end with the `remedy`."""
    try:
        held = decoded(raw, where)
        what = "trace" if kind is TraceManifest else None
        if not isinstance(held, dict) or (held.get("format"), held.get("kind")) != (FORMAT, what):
            remedy = _reads(held, what) or remedy
            raise HardtailError(f"{where} is not the manifest of a {what or 'data set'} of format {FORMAT}")
        return converted(held, kind, where)
    except HardtailError as error:
        raise HardtailError(f"{error}; {remedy}") from error


def _reads(held: object, wanted: str | None) -> str:
    """What to do with a manifest of the other kind; empty if it is none."""
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        return ""
    if wanted is None and held.get("kind") == "trace":
        return "it is that of a trace, which `hardtail view`, `diagnose` and `compare` read"
    if wanted == "trace" and "kind" not in held and "task" in held:
        return "it is that of a data set, which `hardtail inspect` and `eval --data` read"
    return ""


def as_json(manifest: Struct) -> dict[str, Any]:
    """A manifest as its file has it, without what is unknown."""
    return {key: value for key, value in msgspec.to_builtins(manifest).items() if value is not None}


def manifest_bytes(manifest: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(as_json(manifest)), indent=1) + b"\n"
