"""Traces on disk: an `.npz` with entries `PART/ARRAY`, written and read part by part, and a manifest next to it."""

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic, file_hash, manifest_path
from hardtail.core.types import Array, Trace

FORMAT = 1


class TraceWriter:
    """Appends parts of one trace to a file that is being written."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.parts = self.count = 0
        self.head: dict[str, Any] = {}

    def add(self, trace: Trace) -> None:
        for name, array in trace.arrays().items():
            entry = zipfile.ZipInfo(f"{self.parts:06}/{name}.npy")  # without a clock: equal traces are equal files
            entry.compress_type = zipfile.ZIP_DEFLATED
            with self.archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        self.head = {"mask_id": trace.mask_id, "about": dict(trace.about)}
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
        manifest = {"format": FORMAT, "kind": "trace", "count": writer.count, "parts": writer.parts, **writer.head}
        side.write(json.dumps(manifest | {"sha256": file_hash(Path(file.name))}, indent=1).encode() + b"\n")


def save_trace(path: Path, trace: Trace) -> None:
    with trace_writer(path) as writer:
        writer.add(trace)


def load_trace(path: Path) -> Trace:
    """A whole trace; a file that is truncated, altered or not a trace raises HardtailError."""
    parts = list(trace_parts(path))
    if not parts:
        raise HardtailError(f"{path} contains no part of a trace; decode it again")
    return Trace.concat(parts)


def trace_parts(path: Path) -> Iterator[Trace]:
    """A trace part by part, as it was written."""
    manifest = _manifest(path)
    count = 0
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            for part in range(manifest["parts"]):
                prefix = f"{part:06}/"
                arrays: dict[str, Array] = {
                    name.removeprefix(prefix): archive[name] for name in archive.files if name.startswith(prefix)
                }
                trace = Trace.from_arrays(arrays, int(manifest["mask_id"]), dict(manifest["about"]))
                _check(trace)
                count += len(trace)
                yield trace
        if count != manifest["count"]:
            raise HardtailError(f"it has {count} instances, but its manifest says {manifest['count']}")
    except Exception as error:  # a damaged archive fails in a dozen ways, from zlib's to "encrypted"
        raise HardtailError(f"{path} is damaged or not a trace ({error}); decode it again") from error


def _check(trace: Trace) -> None:
    """Refuse arrays that do not fit together: all other code trusts a trace's shapes and indices."""
    n, cells, events = len(trace), trace.instances.answer_len, trace.cell_NT.shape[-1]
    for name, array in trace.arrays().items():
        by_cell = name.endswith("_NA") or name.startswith("instances/orders/")
        shape = (n, events) if name.endswith("_NT") else (n, cells) if by_cell else (n, *array.shape[1:])
        if array.shape != shape or array.dtype.kind != _KINDS.get(name, array.dtype.kind):
            raise HardtailError(
                f"the array {name!r} ({list(array.shape)}, {array.dtype}) does not fit a trace of {n} instances"
            )
    last = trace.instances.tokens_NL.shape[1] - cells
    if ((trace.instances.prompt_len_N < 0) | (trace.instances.prompt_len_N > last)).any():
        raise HardtailError(f"its sequences have no room for {cells} answer cells")
    if ((trace.cell_NT < -1) | (trace.cell_NT >= cells) | (trace.step_NT < 0)).any():
        raise HardtailError("it has events outside the answer")
    parents_NAE = trace.instances.parents_NAE
    if parents_NAE is not None and ((parents_NAE < -1) | (parents_NAE >= cells)).any():
        raise HardtailError("its cells wait for cells outside the answer")


_KINDS = {"cell_NT": "i", "step_NT": "i", "token_NT": "u", "answer_NA": "u", "gold_rank_NT": "i"} | {
    "passes_N": "i",
    "instances/tokens_NL": "u",
    "instances/prompt_len_N": "i",
    "instances/maskable_NA": "b",
    "instances/scored_NA": "b",
    "instances/parents_NAE": "i",
}
"""The arrays that index or mask others, with numpy's letter for their type."""


def _manifest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise HardtailError(f"{path} is not a file; give a trace (.npz) that `hardtail eval --traces` wrote")
    side = manifest_path(path)
    try:
        manifest = json.loads(side.read_bytes())
        whole = file_hash(path)
    except FileNotFoundError as error:
        raise HardtailError(f"{error.filename} is missing; a trace is an .npz and its .json side by side") from error
    except (OSError, ValueError) as error:
        raise HardtailError(f"{path} or its manifest cannot be read ({error})") from error
    if not isinstance(manifest, dict) or (manifest.get("kind"), manifest.get("format")) != ("trace", FORMAT):
        raise HardtailError(f"{side} is not the manifest of a trace of format {FORMAT}; give a file that `eval` wrote")
    if manifest.get("sha256") != whole:
        raise HardtailError(f"{path} is not what its manifest describes (the hashes differ); decode it again")
    return manifest
