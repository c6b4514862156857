"""Figures for a paper, as PDF, PNG and SVG: everything that recorded runs and traces have data for.

`write_all` makes them all, and the tables; the functions in the modules here make one figure each. They need
matplotlib but not torch.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hardtail.core.errors import HardtailError
from hardtail.core.types import Trace
from hardtail.show.charts.accuracy import recorded_accuracy
from hardtail.show.charts.legend import by_variant, kinds_of_weights
from hardtail.show.charts.readiness import decoded_readiness, recorded_readiness, unready_along
from hardtail.show.charts.states import count_chart, rank_chart, trained_and_visited
from hardtail.show.charts.training import training
from hardtail.show.figures import style
from hardtail.show.figures.panels import by_policy, charts_figure
from hardtail.show.figures.states import single_ranks, states_figure
from hardtail.show.figures.style import ensure_matplotlib, save, slug
from hardtail.show.sources import all_runs
from hardtail.show.stages import Stage
from hardtail.show.stages import stages as stages_of
from hardtail.show.table_files import write_tables
from hardtail.study.claims import Results
from hardtail.study.runs import Run
from hardtail.study.store import Store
from hardtail.tasks.base import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ensure_matplotlib", "save", "task_figures", "write_all", "write_figures"]


def write_all(folder: Path, store: Store | None, runs: Sequence[Run], traces: Sequence[Trace]) -> list[Path]:
    """Write every figure and table of recorded runs, other run directories and traces."""
    figures = write_figures(folder, all_runs(store, runs), stages_of(traces))
    return [*figures, *(write_tables(folder, Results(store)) if store else [])]


def write_figures(folder: Path, runs: Sequence[Run], stages: Sequence[Stage]) -> list[Path]:
    """Draw every figure that there is data for, and return the files."""
    ensure_matplotlib()
    drawn = [*_of_runs(runs), *_of_states(runs, stages), *_of_stages(stages)]
    if not drawn:
        raise HardtailError("there is nothing to draw: give runs or traces, or record runs with `hardtail study`")
    written, seen = [], Counter[str]()
    for name, figure in drawn:
        seen[name] += 1
        written += save(figure, folder, f"{name}-{seen[name]}" if seen[name] > 1 else name)
    return written


def _of_runs(runs: Sequence[Run]) -> "Iterator[tuple[str, Figure]]":
    for task in dict.fromkeys(run.task for run in runs):
        variants = by_variant([run for run in runs if run.task == task])
        for variant, held in variants.items():  # a scheme has one colour, so each variant gets its own figure
            name = (task, variant) if variant and len(variants) > 1 else (task,)
            if charts := training(task, held):
                yield slug("training", *name), charts_figure(charts)
            for kind in kinds_of_weights(held):
                if charts := by_policy(recorded_accuracy(task, held, kind)):
                    yield slug("accuracy", *name, kind), charts_figure(charts)
                if charts := recorded_readiness(task, held, kind):
                    yield slug("readiness", *name, kind), charts_figure(charts)


def _of_states(runs: Sequence[Run], stages: Sequence[Stage]) -> "Iterator[tuple[str, Figure]]":
    """Mask states of the decoded tasks together with those of training, then those of tasks that have only runs."""
    pairs: list[tuple[str, Stage | None]] = [(stage.task.name, stage) for stage in stages]
    decoded = {task for task, _ in pairs}
    pairs += [(task, None) for task in dict.fromkeys(run.task for run in runs) if task not in decoded]
    for task, stage in pairs:
        held = trained_and_visited(task, runs, stage)
        charts = [count_chart(task, held), rank_chart(task, "training", held)]
        if drawn := [chart for chart in charts if chart.series]:
            yield slug("coverage", task), charts_figure(drawn)
        if single_ranks(held):
            yield slug("states", task), states_figure(held)


def _of_stages(stages: Sequence[Stage]) -> "Iterator[tuple[str, Figure]]":
    for stage in stages:
        task = stage.task
        if charts := decoded_readiness(stage):
            drawn = [unready_along(stage, portions=None), charts[-1]]
            yield slug("readiness", task.name, "decoded"), charts_figure(drawn)
        for decoder in stage.decoders:
            model = decoder.model.removeprefix(f"{task.name}-")
            for kind, figure in task_figures(task, decoder.trace).items() if not decoder.trace.exact_N.all() else ():
                yield slug(kind, task.name, model, decoder.policy), figure


def task_figures(task: Task, trace: Trace) -> "Mapping[str, Figure]":
    """Draw the task's own figures of a trace's failures, by name."""
    with style.style():
        return task.figures(trace, style)
