"""How far grids and their runs have come, as tables."""

from collections.abc import Sequence

from hardtail.core.records import RunEntry
from hardtail.core.tables import Cell, Table
from hardtail.study.advance import Status
from hardtail.study.grids import GRIDS, grid_named


def grids_table(found: Sequence[Status], index: Sequence[RunEntry]) -> Table:
    """One row for each grid: how many of its runs are in each state, and how many are recorded on files."""
    columns = ("recorded", "trained", "started", "missing")
    states = {item.entry.name: item.state for item in found}
    rows: list[tuple[Cell, ...]] = []
    for name in GRIDS:
        entries = grid_named(name)
        held = [states[entry.name] for entry in entries]
        on_files = sum(len(entry.on_files(index)) for entry in entries)
        rows.append((name, len(held), *map(held.count, columns), on_files))
    return Table("grids", ("grid", "runs", *columns, "on files"), tuple(rows))


def runs_table(title: str, found: Sequence[Status], index: Sequence[RunEntry]) -> Table:
    """One row for each run, followed by the recorded ones of the same arm and seed on files."""
    rows: list[tuple[Cell, ...]] = []
    for item in found:
        rows.append((item.entry.name, item.state, item.step, item.entry.recipe.steps))
        rows += [(run.name, "recorded", run.steps, item.entry.recipe.steps) for run in item.entry.on_files(index)]
    return Table(title, ("run", "state", "step", "of"), tuple(rows))
