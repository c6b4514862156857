"""Draw the pictures of these pages again: `python -m docs.images` in the root of the checkout, two minutes on a CPU.

Curves come from `results/`, failures from decoding the shipped addition models, mazes from decodes that ship with it.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hardtail import zoo
from hardtail.core.records import Accuracy, read_measurements
from hardtail.core.registry import POLICIES
from hardtail.core.types import Trace
from hardtail.show.charts.states import trained_and_visited
from hardtail.show.charts.training import training
from hardtail.show.figures import save, task_figures
from hardtail.show.figures.panels import charts_figure
from hardtail.show.figures.passes import passes_figure, policies_figure, seconds_figure
from hardtail.show.figures.states import states_figure
from hardtail.show.sources import decoded, load_models
from hardtail.show.stages import stages
from hardtail.study.claims.ours.remedy import COMB_LADDER
from hardtail.study.runs import Run
from hardtail.study.store import Store
from hardtail.tasks.maze.task import Maze
from hardtail.tasks.named import task_of

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("zoo:addition-random", "zoo:addition-puma")
HARD = "chain>=28"
CHECKED = {
    "PAPL, text": ("addition-papl-paper-s42", "#d55e00"),
    "Random": ("addition-random-tf32-s42", "#0072b2"),
    "PUMA": ("addition-puma-tf32-s42", "#009e73"),
    "PAPL α=1": ("addition-papl-tf32-s42", "#e69f00"),
    "PAPL α=5": ("addition-papl5-tf32-s42", "#cc79a7"),
}
CHOSEN = {"threshold": "threshold", "check": "check", "top1": "top1", "lsb": "lsb (oracle)"}


def recorded_mazes() -> tuple[Maze, Trace]:
    """Mazes that a trained model fails by confidence."""
    held = {(task_of(trace.about, "a look").name, trace.source.policy): trace for trace in zoo.looks()}
    return Maze(), held["maze", "top1"]


def hard_tail(run: Run) -> Any:
    """A model that has learned everything but the order in which to say it."""
    alone = {chart.panel: chart for chart in training("addition", [run])}
    hard = alone["Hard-tail accuracy"]
    confidence, logical = hard.series
    named = {
        "natural sums, confidence": alone["Natural accuracy"].series[0],
        f"{HARD}, lowest digit first": logical,
        f"{HARD}, confidence": confidence,
    }
    lines = tuple(replace(one, hue=name, style="") for name, one in named.items())
    return charts_figure([replace(hard, panel="PAPL, exact match", series=lines)])


def passes(runs: dict[str, Run]) -> Any:
    """What checking costs and what it repairs."""
    held = {title: runs[name] for title, (name, _) in CHECKED.items()}
    return passes_figure(held, "last", {title: colour for title, (_, colour) in CHECKED.items()}, HARD, CHOSEN)


def seconds() -> Any:
    """The same in time, on a GPU and on two CPU cores."""
    held = [item for item in read_measurements(ROOT / "results/timed.jsonl") if isinstance(item, Accuracy)]
    colours = {"addition-papl-paper": CHECKED["PAPL, text"][1], "addition-random": CHECKED["Random"][1]}
    return seconds_figure(held, colours, HARD, CHOSEN | {COMB_LADDER: "ladder"})


def equal_passes() -> Any:
    """Every policy at several costs: more cells a step, or a stricter bound."""
    held = [item for item in read_measurements(ROOT / "results/remedy.jsonl") if isinstance(item, Accuracy)]
    usual = [
        item
        for item in held
        if item.policy.partition(",")[0] in POLICIES.names() and "=" not in item.policy.partition("check")[2]
    ]
    held = [item for item in usual if item.model == "addition-papl-paper"]
    return policies_figure(held, HARD, "check")


def pictures(runs: dict[str, Run]) -> Iterator[tuple[str, Any]]:
    released = [run for name, run in runs.items() if name.endswith("-tf32-s42")]
    yield "training", charts_figure(training("addition", released))
    yield "hard-tail", hard_tail(runs["addition-papl-paper-s42"])
    yield "passes", passes(runs)
    yield "equal-passes", equal_passes()
    yield "seconds", seconds()
    (stage,) = stages(decoded(load_models(MODELS), 500, ("top1", "lsb"), (HARD,), seed=42))
    yield "states", states_figure(trained_and_visited("addition", released, stage))
    for task, trace in ((stage.task, stage.decoders[0].trace), recorded_mazes()):
        yield from task_figures(task, trace).items()


def main() -> None:
    for name, figure in pictures({run.name: run for run in Store(ROOT / "results").runs()}):
        made = save(figure, ROOT / "docs/images", name)
        for path in made:
            if path.suffix != ".svg":
                path.unlink()
        print(made[-1])


if __name__ == "__main__":
    main()
