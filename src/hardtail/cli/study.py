"""The study as a whole: its grids of runs."""

import os
import sys
from contextlib import nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional

from hardtail.cli import common
from hardtail.cli.commands import app
from hardtail.cli.common import Device, Patience, RecordedIn, busy
from hardtail.cli.grid import Address, CpusPerRun, GpusPerRun, Grid, LauncherName
from hardtail.cli.options import flag_of, option, unread
from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds
from hardtail.core.pretrained import HF

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardtail.core.depots import Depot
    from hardtail.core.records import LogLine
    from hardtail.models.precision import Precision
    from hardtail.study.grids import Entry
    from hardtail.study.store import Store


VERBS = {
    "plan": ("runs", "results", "n", "ledger_only", "data", "gpus"),
    "advance": (
        *("minutes", "runs", "results", "device", "n", "precision", "ledger_only", "patience", "data"),
        *("launcher", "address", "cpus_per_run", "gpus_per_run"),
    ),
    "prepare": ("n",),
    "pack": ("runs", "out", "bf16_moments"),
    "unpack": ("runs",),
}
"""What the first word may say to do, with the options that are read then; otherwise it names a grid or a run."""
READ = {"study": ("runs", "results"), "study GRID": ("runs", "results", "data")}
READ |= {f"study {verb}": read for verb, read in VERBS.items()}


@app.command
def study(
    words: Annotated[
        Positional[tuple[str, ...]],
        option(
            "nothing: list all grids; GRID: list its runs; plan GRID: what it costs; advance GRID or RUN: continue it",
            f"[{'|'.join(VERBS)}] [GRID|RUN ...]",
        ),
    ] = (),
    /,
    minutes: Annotated[
        float, option("how long `advance` may run; the last 20 seconds are for saving", "M"), Bounds(ge=0.5)
    ] = 9.0,
    runs: Annotated[str, option("where runs in progress are: a folder, or s3://BUCKET/PREFIX", "DIR")] = "runs",
    results: RecordedIn = None,
    device: Device = None,
    n: Annotated[
        int,
        option("instances of each stratum, for every policy, when a finished run is measured", "N", aliases=["-n"]),
        common.SOME,
    ] = 500,
    precision: Annotated[
        Literal["fp32", "tf32", "bf16"], option("precision of the forward pass when a finished run is measured")
    ] = "fp32",
    ledger_only: Annotated[
        bool, option("measure a finished run only on what the ledger's claims are about, not in every order")
    ] = False,
    patience: Patience = None,
    data: Annotated[
        Path | None,
        option(
            "train the runs on this file of `hardtail data`, or on hf:USER/NAME, instead; with FILE-test.npz next "
            "to it, choose their weights by that and measure them on it, too; their names then end in -on-FILE",
            "FILE",
        ),
    ] = None,
    launcher: LauncherName = "inline",
    address: Address = None,
    cpus_per_run: CpusPerRun = 1,
    gpus_per_run: GpusPerRun = None,
    gpus: Annotated[int, option("number of GPUs to `plan` for", "G"), Bounds(ge=1)] = 1,
    out: Annotated[Path, option("where `pack` writes the pieces", "DIR")] = Path("packed"),
    bf16_moments: Annotated[
        bool, option("`pack` rounds the optimiser's moments to bf16: a quarter less to carry, no longer bit-exact")
    ] = False,
) -> None:
    """The grids of runs that make up the study: what is done, what is missing, and the next step.

    The first word says what to do:
    - `plan` says what is left to do and what that costs, before anything is paid for.
    - `advance` trains the next unfinished run from its last checkpoint, saves its state when time is up or at Ctrl-C,
    and measures and records finished runs. With `--launcher ray` it works on all runs at once (docs/scale.md), and
    with `--patience` a run may end before its last step; then only its best weights are measured and recorded.
    - `prepare` draws all data that a grid needs into the folder that the environment variable HARDTAIL_DATA names, for
    a GPU machine that cannot draw it (no numba); set the variable there too.
    - `pack RUN` writes a run in pieces of at most 16 MiB, for machines that exchange small files only; `unpack FOLDER`
    puts it back under `--runs`.
    """
    from hardtail.core.hub import pinned_data
    from hardtail.study.store import Store, default_results

    _refuse_mistyped(words)
    _refuse_unread(words, locals())
    data = None if data is None else pinned_data(data)
    store = Store(_place("--results", results) if results else default_results(new=Path("results")))
    kept = _place("--runs", runs)
    if words[:1] == ("prepare",):
        _prepare(words[1:], n)
    elif words[:1] == ("plan",):
        _plan(words[1:], kept, store, n, ledger_only, gpus, data)
    elif words[:1] == ("pack",):
        _pack(words[1:], _folder(kept), out, bf16_moments)
    elif words[:1] == ("unpack",):
        _unpack(words[1:], _folder(kept))
    elif words[:1] == ("advance",):
        grid = Grid(launcher, address, cpus_per_run, gpus_per_run)
        _advance(words[1:], kept, store, minutes, device, n, precision, ledger_only, patience, data, grid)
    else:
        _list(words, kept, store, data)


def _place(flag: str, text: str) -> "Path | Depot":
    """The folder or the object storage that an option names; raise HardtailError if it is a file."""
    from hardtail.core.depots import place_at

    place = place_at(text)
    if isinstance(place, Path) and place.exists() and not place.is_dir():
        raise HardtailError(f"{flag} {text} is a file; give a folder or s3://BUCKET/PREFIX")
    return place


def _refuse_mistyped(words: tuple[str, ...]) -> None:
    """Refuse a first word that is nearly one of those that say what to do, before it is taken for a grid."""
    if not words or words[0] in VERBS:
        return
    if close := get_close_matches(words[0], VERBS, n=1, cutoff=0.7):
        raise HardtailError(
            f"study does not know {words[0]!r}; did you mean `hardtail study {' '.join([close[0], *words[1:]])}`?"
        )


def _refuse_unread(words: tuple[str, ...], given: "Mapping[str, object]") -> None:
    """Refuse an option that would be ignored."""
    asked = " ".join(["study", *(word if word in VERBS else "GRID" for word in words[:1])])
    if name := unread(study, given, READ[asked]):
        readers = ", ".join(f"`{reader}`" for reader, read in READ.items() if name in read)
        raise HardtailError(f"{flag_of(name)} applies to {readers}, not to `{asked}`; leave it out")


def _folder(runs: "Path | Depot") -> Path:
    """The folder of runs in progress; raise HardtailError if they are in object storage."""
    if not isinstance(runs, Path):
        raise HardtailError(f"pack and unpack exchange runs with a folder, and --runs is {runs.place}; give a folder")
    return runs


def _list(names: tuple[str, ...], runs: "Path | Depot", store: "Store", data: Path | None) -> None:
    """Print all grids, or the runs of some."""
    from hardtail.show.grid_states import grids_table, runs_table
    from hardtail.study.advance import status
    from hardtail.study.grids import GRIDS, grid_named

    entries = _entries(names, data) if names else [entry for grid in GRIDS for entry in grid_named(grid)]
    with busy("reading"):
        index, found = store.index(), status(entries, runs, store)
    table = runs_table(" ".join(names), found, index) if names else grids_table(found, index)
    common.show_tables([table])
    listed = {row[0] for row in table.rows}
    if not names:
        print("trained: to its last step, but not measured yet; started: its state is saved")
        print("on files: recorded runs that were trained on a file of problems (--data)")
        print("`hardtail study GRID` lists its runs; `hardtail study advance GRID` continues it")
    elif ended := [run.name for run in index if run.patience and run.name in listed]:
        print(f"ended by their patience: {', '.join(ended)}")
    if not index:  # a wrong folder would look like a study that has not begun
        print(f"no runs are recorded in {store.depot.place}; --results names the folder of recorded runs")


def _entries(names: tuple[str, ...], data: Path | None) -> "list[Entry]":
    """The entries of grids and runs, on the data file that the user gave, if any."""
    from hardtail.study.grids import entries_named

    return [entry if data is None else entry.on(data) for entry in entries_named(names)]


def _plan(
    names: tuple[str, ...],
    runs: "Path | Depot",
    store: "Store",
    n: int,
    ledger_only: bool,
    gpus: int,
    data: Path | None,
) -> None:
    from hardtail.show.grid_cost import cost_table, cost_text
    from hardtail.study.cost import grid_cost

    if not names:
        raise HardtailError("plan needs grids or runs: hardtail study plan addition maze --gpus 8")
    with busy("reading"):
        cost = grid_cost(_entries(names, data), runs, store, n, ledger_only=ledger_only, data_file=data)
    if cost.runs:
        common.show_tables([cost_table(cost, " ".join(names))])
    print(cost_text(cost, gpus))


def _prepare(names: tuple[str, ...], n: int) -> None:
    from hardtail.study.advance import prepare
    from hardtail.study.grids import entries_named
    from hardtail.tasks.datasets import KEPT

    if not names or not os.environ.get(KEPT):
        raise HardtailError(f"set {KEPT} to a folder and name a grid: {KEPT}=data hardtail study prepare maze")
    entries = entries_named(names)
    with busy("drawing instances"):
        made = prepare(entries, n=n)
    print(f"{' '.join(names)}: {made} sets of instances in {os.environ[KEPT]}")


def _pack(names: tuple[str, ...], runs: Path, out: Path, bf16_moments: bool) -> None:
    from hardtail.study.pack import pack

    if not names:
        raise HardtailError("pack needs runs: hardtail study pack maze-puma-s42 --out packed")
    for name in names:
        run = runs / name
        if not run.is_dir():
            raise HardtailError(f"there is no run {run}; --runs names the folder of runs in progress")
        packed = pack(run, out, bf16_moments=bf16_moments)
        size = sum(piece.size for piece in packed.pieces) / (1 << 20)
        pieces = common.counted(len(packed.pieces), "piece", "pieces")
        print(f"{name}: step {packed.step:,}, {pieces}, {size:.1f} MiB in {out}")


def _unpack(names: tuple[str, ...], runs: Path) -> None:
    from hardtail.study.pack import unpack

    if not names:
        raise HardtailError("unpack needs a folder of pieces: hardtail study unpack packed")
    for name in names:
        folder, packed = unpack(Path(name), runs)
        print(f"{folder}: step {packed.step:,}")


def _advance(
    names: tuple[str, ...],
    runs: "Path | Depot",
    store: "Store",
    minutes: float,
    device: str | None,
    n: int,
    precision: "Precision",
    ledger_only: bool,
    patience: int | None,
    data: Path | None,
    grid: Grid,
) -> None:
    from hardtail.cli.watching import Watcher
    from hardtail.study.advance import advance

    if not names:
        raise HardtailError("advance needs a grid or runs: hardtail study advance addition --minutes 9")

    watcher = Watcher()

    def report(entry: "Entry", line: "LogLine") -> None:
        watcher.report(line, entry.recipe.steps, entry.name)

    def progress(entry: "Entry", what: str, done: int, total: int) -> None:
        watcher.move(entry.name, what, done, total)

    entries = _entries(names, data)
    if data is not None and not str(data).startswith(HF) and not data.is_file():
        what = "this is a folder; give a file" if data.is_dir() else "there is no such file; `hardtail data` builds one"
        raise HardtailError(f"--data {data}: {what}")
    if grid.here:
        device = common.usable_device(device)
    where = f"at most {minutes:g} minutes, recorded in {store.depot.place}"
    common.say(f"working on {' '.join(names)} for {where}; the same command continues")
    watcher.begin("", "preparing", 0)
    with (
        grid.launcher() as launcher,
        common.asked_to_stop(lambda: watcher.began or grid.began) as stopping,
        watcher.shown() if grid.here else nullcontext(),
    ):
        found = advance(
            entries,
            runs,
            store,
            minutes=minutes,
            device=device,
            n=n,
            precision=precision,
            ledger_only=ledger_only,
            patience=patience,
            data_file=data,
            say=watcher.say if grid.here else grid.say,
            report=report,
            progress=progress,
            should_stop=stopping,
            launcher=launcher,
        )
        stopped = stopping()
    left = sum(item.state != "recorded" for item in found)
    done = "" if left else "; nothing is left to do"
    print(f"{' '.join(names)}: {len(found) - left} of {len(found)} runs recorded{done}")
    if stopped:
        sys.exit(130)
    if failed := [item.entry.name for item in found if item.failure]:
        raise HardtailError(f"failed, for the reason above: {', '.join(failed)}; run the same command to try again")
