"""A run in pieces, for machines that exchange small files only.

`NAME.pack.json`      the run's name, its files in order with their sizes, and the hash of every piece
`NAME.000`, `.001`…   the bytes of these files, one after the other, cut into pieces

An unfinished run leaves out its last weights: its saved state has them, and training writes them again. One that has
taken all its steps leaves out its state, twice as large as all the rest: nothing continues it.
"""

import hashlib
import json
from pathlib import Path

import msgspec
import torch
from safetensors.torch import save as save_tensors

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic, read_regular, sole_writer
from hardtail.core.records import FINISHED, Count, Positive, names_a_folder, read_json, write_record
from hardtail.models.weights import read_tensors
from hardtail.study.store import finished_of
from hardtail.study.workplaces import MEASURED, turn
from hardtail.training.checkpoint import STATE, state_step
from hardtail.training.keeper import BEST

ENDING = ".pack.json"
PIECE = 16 << 20
"""Bytes of a piece."""
MOMENTS = ("first_P", "second_P")
FILES = ("recipe.json", "log.jsonl", "coverage.json", STATE, BEST)
FINISHED_FILES = (FINISHED, "last.safetensors", *MEASURED)


class _File(msgspec.Struct, frozen=True):
    name: str
    size: Count


class _Piece(msgspec.Struct, frozen=True):
    size: Positive
    sha256: str


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """`NAME.pack.json`."""

    run: str
    step: Count
    files: tuple[_File, ...]
    pieces: tuple[_Piece, ...]

    def __post_init__(self) -> None:
        if not names_a_folder(self.run):
            raise ValueError(f"{self.run!r} is not the name of a run's folder")
        if strangers := [file.name for file in self.files if file.name not in FILES + FINISHED_FILES]:
            raise ValueError(f"{strangers[0]!r} is not a file of a run")
        if sum(file.size for file in self.files) != sum(piece.size for piece in self.pieces):
            raise ValueError("the files and the pieces differ in size")

    def piece_paths(self, folder: Path) -> list[Path]:
        return [folder / f"{self.run}.{place:03d}" for place in range(len(self.pieces))]


def pack(run: Path, into: Path, *, bf16_moments: bool = False, piece: int = PIECE) -> Pack:
    """Write a run's files into `into`, in pieces of at most `piece` bytes.

    `bf16_moments` rounds the optimiser's two moments, which halves them; the run's log then says so. Weights and their
    average stay exact.
    """
    with sole_writer(run):
        done = finished_of(run)
        if done is None and not (run / STATE).is_file():
            raise HardtailError(f"{run} has nothing to pack: no {STATE} and no {FINISHED}")
        names = [*FILES, *(FINISHED_FILES if done else ())]
        if done and done.patience is None:
            names.remove(STATE)
        held = {name: (run / name).read_bytes() for name in names if (run / name).is_file()}
        if bf16_moments and STATE in held:
            held[STATE] = _rounded(run / STATE)
        step = _reached(run)
    whole = b"".join(held.values())
    parts = [whole[start : start + piece] for start in range(0, len(whole), piece)]
    packed = Pack(
        run=run.resolve().name,
        step=step,
        files=tuple(_File(name, len(content)) for name, content in held.items()),
        pieces=tuple(_Piece(len(part), hashlib.sha256(part).hexdigest()) for part in parts),
    )
    for path, part in zip(packed.piece_paths(into), parts, strict=True):
        with atomic(path) as file:
            file.write(part)
    write_record(into / f"{packed.run}{ENDING}", packed)  # last: it says that all pieces are there
    return packed


def unpack(given: Path, runs: Path) -> tuple[Path, Pack]:
    """Put a packed run back under `runs`; `given` is its `.pack.json`, or a folder with only one.

    Everything is checked before anything is written. A run that is already there and further on is not replaced; of
    any other, only what was measured stays, as each line says of which weights it is.
    """
    path = _manifest(given)
    packed = read_json(path, Pack)
    assert packed is not None
    whole = b"".join(
        _checked(at, piece) for at, piece in zip(packed.piece_paths(path.parent), packed.pieces, strict=True)
    )
    folder = runs / packed.run
    folder.mkdir(parents=True, exist_ok=True)
    with sole_writer(folder):
        there, whole_run = _reached(folder), FINISHED in {item.name for item in packed.files}
        if (there, finished_of(folder) is not None) > (packed.step, whole_run):
            raise HardtailError(
                f"{folder} is at step {there:,}, further than the packed run at step {packed.step:,}; move it away"
                if there > packed.step
                else f"{folder} is finished at step {there:,}, and the packed run is not; move it away"
            )
        start, held, content = 0, {}, memoryview(whole)
        for item in packed.files:
            held[item.name] = content[start : start + item.size]
            start += item.size
        (folder / FINISHED).unlink(missing_ok=True)  # nobody may take a mixture of two runs for a finished one
        for name in sorted(held, key=turn):
            whole_file = _joined(folder / name, bytes(held[name])) if name in MEASURED else held[name]
            with atomic(folder / name) as file:
                file.write(whole_file)
        for name in {*FILES, *FINISHED_FILES} - {*held, *MEASURED}:
            (folder / name).unlink(missing_ok=True)
    return folder, packed


def _joined(path: Path, packed: bytes) -> bytes:
    """The packed lines of a file, then those that only the file itself has."""
    held = path.read_bytes() if path.exists() else b""
    theirs, ours = (content[: content.rfind(b"\n") + 1].splitlines(keepends=True) for content in (packed, held))
    known = set(theirs)
    return b"".join([*theirs, *(line for line in ours if line not in known)])


def _reached(run: Path) -> int:
    """The step of a run: a finished one need not have its state any more."""
    done = finished_of(run)
    return max(state_step(run), done.step if done else 0)


def _manifest(given: Path) -> Path:
    if not given.is_dir():
        if not given.name.endswith(ENDING) or not given.is_file():
            raise HardtailError(f"{given} is not a packed run; give a file that ends in {ENDING}, or its folder")
        return given
    found = sorted(given.glob(f"*{ENDING}"))
    if len(found) != 1:
        how_many = f"{len(found)} packed runs" if found else "no packed run"
        raise HardtailError(f"{given} holds {how_many}; name one file that ends in {ENDING}")
    return found[0]


def _checked(path: Path, piece: _Piece) -> bytes:
    """The bytes of a piece; raise HardtailError unless they are those that were written."""
    try:
        content = read_regular(path, PIECE)
    except OSError as error:
        raise HardtailError(
            f"{path} cannot be read: {error.strerror or error}; all pieces of a run are needed"
        ) from error
    if len(content) != piece.size or hashlib.sha256(content).hexdigest() != piece.sha256:
        raise HardtailError(f"{path} is not the piece that was packed; copy it again")
    return content


def _rounded(path: Path) -> bytes:
    """A saved state with its moments in bf16; its progress counts how often that happened."""
    held, metadata = read_tensors(path)
    try:
        progress = json.loads(metadata["progress"])
        progress["rounded"] = progress.get("rounded", 0) + 1
        held |= {name: held[name].to(torch.bfloat16) for name in MOMENTS}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise HardtailError(f"{path} is not the saved state of a run ({error}); there is nothing to pack") from error
    return save_tensors(held, metadata={"progress": json.dumps(progress)})
