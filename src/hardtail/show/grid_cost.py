"""The cost of a grid, as a table of its arms and a few sentences."""

from hardtail.core.tables import Cell, Table
from hardtail.show.words import duration
from hardtail.study.cost import COUNTED, GridCost, RunCost


def cost_table(cost: GridCost, title: str) -> Table:
    """One row for each arm: how many of its runs are left, and how long each takes on one GPU."""
    arms: dict[str, list[RunCost]] = {}
    for run in cost.runs:
        arms.setdefault(run.entry.arm, []).append(run)
    rows: list[tuple[Cell, ...]] = [
        (arm, len(runs), *(duration(_mean(runs, of)) for of in ("training", "measuring")), runs[0].source)
        for arm, runs in arms.items()
    ]
    return Table(title, ("arm", "runs", "training", "measuring", "time of a step from"), tuple(rows))


def cost_text(cost: GridCost, gpus: int) -> str:
    """What is left, what it costs, and how long it takes at least."""
    if cost.longest is None:
        return f"all {cost.recorded} runs are recorded; nothing is left to do"
    counted = sum(run.source == COUNTED for run in cost.runs)
    lines = [
        f"{len(cost.runs)} runs are left, {cost.recorded} recorded: {cost.seconds / 3600:.1f} GPU-hours",
        f"with {gpus} GPU{'s' if gpus > 1 else ''}: {duration(cost.on(gpus))}",
        f"longest run: {cost.longest.entry.name}, {duration(cost.longest.seconds)}",
        "the time of a step is that of the fastest recorded run of the arm or of one like it; else it is estimated",
    ]
    if counted:
        lines.append(f"the times of {counted} of these runs are estimates, good to a factor of two")
    return "\n".join(lines)


def _mean(runs: list[RunCost], of: str) -> float:
    return float(sum(getattr(run, of) for run in runs)) / len(runs)
