"""Traces on disk: an `.npz` with entries `PART/ARRAY`, written and read part by part, and a manifest next to it."""

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hardtail.core import hub
from hardtail.core.archives import Header, open_archive
from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic, file_hash, manifest_path, open_regular, read_regular
from hardtail.core.manifest import TraceManifest, manifest_bytes, read_manifest
from hardtail.core.schema import check_trace, check_trace_headers
from hardtail.core.types import Array, Trace, TraceSource


class TraceWriter:
    """Appends parts of one trace to a file that is being written."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.parts = self.count = 0
        self.mask_id, self.about = 0, dict[str, Any]()

    def add(self, trace: Trace) -> None:
        for name, array in trace.arrays().items():
            entry = zipfile.ZipInfo(f"{self.parts:06}/{name}.npy")  # without a clock: equal traces are equal files
            entry.compress_type = zipfile.ZIP_DEFLATED
            with self.archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        self.mask_id, self.about = trace.mask_id, dict(trace.about)
        self.parts += 1
        self.count += len(trace)


@contextmanager
def trace_writer(path: Path) -> Iterator[TraceWriter]:
    """Write `path` (`.npz`) and its manifest (`.json`); neither appears under its name before both are complete."""
    if path.suffix != ".npz":
        raise HardtailError(f"{path} must end in .npz; the trace's manifest is written next to it as .json")
    with atomic(path) as file, atomic(manifest_path(path)) as side:
        with zipfile.ZipFile(file, "w") as archive:
            writer = TraceWriter(archive)
            yield writer
        file.flush()
        manifest = TraceManifest(
            kind="trace",
            count=writer.count,
            parts=writer.parts,
            mask_id=writer.mask_id,
            about=writer.about,
            sha256=file_hash(Path(file.name)),
        )
        side.write(manifest_bytes(manifest))


def save_trace(path: Path, trace: Trace) -> None:
    with trace_writer(path) as writer:
        writer.add(trace)


def load_trace(source: str | Path) -> Trace:
    """A whole trace from a file or the Hub (`hf:user/name`); one that is truncated or altered raises HardtailError."""
    path = hub.data_file(source, hub.TRACE)
    parts = list(trace_parts(path))
    if not parts:
        raise HardtailError(f"{path} contains no part of a trace; decode it again")
    return Trace.concat(parts)


def trace_parts(path: Path) -> Iterator[Trace]:
    """A trace part by part, as it was written."""
    manifest = _manifest(path)
    fault = f"{path} is damaged or not a trace ({{}}); decode it again"
    with open_regular(path) as file, open_archive(file, fault) as held:
        parts = _by_part(held.headers, manifest.parts)
        count = sum(map(check_trace_headers, parts))
        if count != manifest.count:
            raise HardtailError(f"it has {count:,} instances, but its manifest says {manifest.count:,}")
        for number, headers in enumerate(parts):
            arrays: dict[str, Array] = {name: held.array(f"{number:06}/{name}") for name in headers}
            trace = Trace.from_arrays(arrays, manifest.mask_id, manifest.about)
            check_trace(trace)
            yield trace


def traced_model(path: Path) -> str:
    """The model that the trace at `path` names, without reading its arrays; empty if there is no such trace."""
    try:
        about = read_manifest(read_regular(manifest_path(path)), TraceManifest, str(path), "").about
    except (OSError, HardtailError):
        return ""
    return TraceSource.of(about).model


def _by_part(headers: Mapping[str, Header], count: int) -> list[dict[str, Header]]:
    """The headers of each part, under the names that a trace's arrays have."""
    found: dict[str, dict[str, Header]] = {}
    for name, header in headers.items():
        part, _, array = name.partition("/")
        found.setdefault(part, {})[array] = header
    if len(found) != count or any(f"{number:06}" not in found for number in range(len(found))):
        raise HardtailError(f"it does not have the {count:,} parts that its manifest says")
    return [found[f"{number:06}"] for number in range(count)]


def _manifest(path: Path) -> TraceManifest:
    if not path.is_file():
        raise HardtailError(f"{path} is not a file; give a trace (.npz) that `hardtail eval --traces` wrote")
    side = manifest_path(path)
    try:
        remedy = "give a trace that `hardtail eval --traces` wrote"
        manifest = read_manifest(read_regular(side), TraceManifest, str(side), remedy)
        whole = file_hash(path)
    except FileNotFoundError as error:
        raise HardtailError(f"{error.filename} is missing; a trace is an .npz and its .json side by side") from error
    if manifest.sha256 != whole:
        raise HardtailError(f"{path} is not what its manifest describes (the hashes differ); decode it again")
    return manifest
