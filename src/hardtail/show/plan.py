"""The cost of a grid, as a table of its arms and a few sentences."""

from hardtail.core.tables import Cell, Table
from hardtail.study.plan import COUNTED, Plan, Planned


def plan_table(plan: Plan, title: str) -> Table:
    """One row for each arm: how many of its runs are left, and the hours of each on one GPU."""
    arms: dict[str, list[Planned]] = {}
    for run in plan.runs:
        arms.setdefault(run.entry.arm, []).append(run)
    rows: list[tuple[Cell, ...]] = [
        (arm, len(runs), *(f"{_mean(runs, of) / 3600:.2f}" for of in ("training", "measuring")), runs[0].source)
        for arm, runs in arms.items()
    ]
    return Table(title, ("arm", "runs", "train h", "measure h", "time of a step from"), tuple(rows))


def plan_text(plan: Plan, gpus: int) -> str:
    """What is left, what it costs, and how long it takes at least."""
    if plan.longest is None:
        return f"all {plan.recorded} runs are recorded; nothing is left to do"
    counted = sum(run.source == COUNTED for run in plan.runs)
    lines = [
        f"{len(plan.runs)} runs are left, {plan.recorded} recorded: {plan.seconds / 3600:.1f} GPU-hours",
        f"with {gpus} GPU{'s' if gpus > 1 else ''}: {duration(plan.on(gpus))}",
        f"critical path: {plan.longest.entry.name}, {duration(plan.longest.seconds)}; more GPUs than runs do not help",
    ]
    if counted:
        lines.append(f"{counted} of these runs are counted, not recorded: good to a factor of two")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def _mean(runs: list[Planned], of: str) -> float:
    return float(sum(getattr(run, of) for run in runs)) / len(runs)
