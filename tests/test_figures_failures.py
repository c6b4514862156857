"""Figures of failures, for a paper: they show what was decoded, and what was known at the time.

Shapes: N instances, A answer cells, S canvases.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import hardtail
from hardtail.core.errors import HardtailError
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.policies.named import policy_named
from hardtail.show.figures import style as pen
from hardtail.show.figures.style import style
from hardtail.show.stages import Stage, stages
from hardtail.tasks.addition.commits import wrong_commits
from hardtail.tasks.addition.figures import _SHIFT, SEEN, chosen_failures, failures_figure
from hardtail.tasks.maze.figures import ADDED, REMOVED, STRANGE, chosen_mazes, regions_figure
from hardtail.tasks.maze.task import Maze
from hardtail.traces.canvases import canvases_of, trace_of_canvases
from hardtail.traces.commits import wrong_cells
from tests.planted_other import local_maze, reciting
from tests.report_toys import TASK, addition_traces
from tests.shown import words


@pytest.fixture(scope="module")
def stage() -> Stage:
    return stages(addition_traces())[0]


@pytest.fixture(scope="module")
def failing(stage: Stage) -> Trace:
    """The planted shortcut with the shorter sight, by confidence."""
    return next(held.trace for held in stage.decoders if held.name == "addition-puma · top1")


def test_the_failures_shown_are_the_papers_two_kinds(failing: Trace) -> None:
    lost, gained = chosen_failures(TASK, failing)
    assert (lost.role, lost.difference) == ("k", -1)
    assert (gained.role, gained.difference) == ("g", 1)


def test_a_failure_is_drawn_as_it_was_decoded(failing: Trace) -> None:
    (chosen, *_) = chosen_failures(TASK, failing)
    wrong_ones = wrong_commits(TASK, failing).lowest_index
    lines = [wrong_ones.example(f) for f in range(len(wrong_ones))]
    (line,) = [line for line in lines if line.instance == chosen.instance]
    said = words(style()(failures_figure)(TASK, failing, pen, [chosen]))
    wrong = failing.answer_NA[chosen.instance, chosen.cell]
    hidden = round((line.masked or 0) * line.chain)
    assert f"step {line.step + 1} of 13: writes {wrong} with p = {line.prob:.3f}" in said
    assert f"while {hidden} of {line.chain} chain cells are masked" in said
    assert f"carry chain: {line.chain} cells" in said
    alike = sum((other.role, other.difference) == (line.role, line.difference) for other in lines)
    assert f"{alike} of {len(lines)} failures" in said, "how typical it is"


def test_a_failure_of_canvases_is_drawn_without_probabilities(failing: Trace) -> None:
    told = trace_of_canvases(failing.instances, list(canvases_of(failing)), failing.mask_id)
    said = words(style()(failures_figure)(TASK, told, pen))
    (chosen, *_) = chosen_failures(TASK, told)
    wrong, gold = (held[chosen.instance, chosen.cell] for held in (told.answer_NA, told.instances.answer_NA))
    assert f"writes {wrong}, while " in said
    assert f"chain cells are masked; {gold} is true" in said


def test_what_was_seen_at_a_wrong_commit_is_drawn_even_where_it_was_replaced_later(failing: Trace) -> None:
    chosen = max(chosen_failures(TASK, failing), key=lambda failure: failure.step)
    one = failing.take(np.array([chosen.instance]))
    canvas_SA = canvases_of(one)[:, 0].astype(int)
    seen_A = canvas_SA[chosen.step - 1]
    first = int(one.cell_NT[0, 0])
    digit = TASK.vocabulary.id("0") if seen_A[first] != TASK.vocabulary.id("0") else TASK.vocabulary.id("1")
    canvas_SA[:-1, first] = digit
    told = trace_of_canvases(one.instances, list(canvas_SA[:, None]), one.mask_id)
    figure = style()(failures_figure)(TASK, told, pen, [replace(chosen, instance=0)])
    row = [text for text in figure.axes[0].texts if _SHIFT[SEEN] < text.get_position()[1] < _SHIFT[SEEN + 1]]
    signs = [text.get_text() for text in sorted(row[1:], key=lambda text: text.get_position()[0])]
    known = list(TASK.vocabulary.decode(np.where(seen_A == one.mask_id, 0, seen_A)))
    known = ["" if token == one.mask_id else sign for token, sign in zip(seen_A, known, strict=True)]
    known[chosen.cell] = "?"
    assert signs == known
    fills = {
        int(box.get_x()): box.get_facecolor()[:3]
        for box in figure.axes[0].patches
        if _SHIFT[SEEN] < box.get_y() < _SHIFT[SEEN + 1]
    }
    assert fills[first] == pytest.approx(pen.ramp(0)[0]), "in the colour of the step that wrote it"


def test_without_a_failure_there_is_no_figure_of_one(stage: Stage) -> None:
    right = next(held.trace for held in stage.decoders if held.policy == "lsb")
    with pytest.raises(HardtailError, match="every sum of this trace is right"):
        style()(failures_figure)(TASK, right, pen)


def halves(figure: Any, colour: str) -> int:
    found = [
        len(held.get_paths())
        for axes in figure.axes
        for held in axes.collections
        if held.get_paths() and mpl.colors.same_color(held.get_facecolor()[0], colour)
    ]
    return sum(found)


def test_wrong_cells_of_a_maze_are_halved_in_the_colour_of_their_error() -> None:
    task = Maze(size=5)
    instances = task.sample(6, hardtail.Streams(1).named("figures"), "natural")
    off, on = task.vocabulary.id("0"), task.vocabulary.id("1")
    gold_NA = instances.answer_NA
    swapped_NA = np.where(gold_NA == off, on, np.where(gold_NA == on, off, gold_NA))
    cell_A = np.arange(task.answer_len)
    answer_NA = np.where(cell_A % 3 == 0, swapped_NA, gold_NA)
    about = {"task": task.name, "config": task.config(), "policy": "top1", "note": "planted"}
    denoiser = reciting(task, instances, answer_NA, np.full(gold_NA.shape, 0.9))
    trace = decode(denoiser, instances, policy_named("top1"), about=about)
    shown = chosen_mazes(trace)
    wrong_NA = wrong_cells(trace)[shown]
    figure = style()(regions_figure)(task, trace, pen)
    with style():
        figure.draw_without_rendering()
    assert halves(figure, ADDED) == int((wrong_NA & (gold_NA[shown] == off)).sum()) > 0
    assert halves(figure, REMOVED) == int((wrong_NA & (gold_NA[shown] == on)).sum()) > 0
    assert "planted" in words(figure)
    assert "another token" not in words(figure), "no cell shows one"
    answer_NA = np.where(swapped_NA != gold_NA, task.vocabulary.id("S"), gold_NA)
    strange = decode(reciting(task, instances, answer_NA, np.full(gold_NA.shape, 0.9)), instances, policy_named("top1"))
    figure = style()(regions_figure)(task, strange, pen)
    with style():
        figure.draw_without_rendering()
    assert halves(figure, STRANGE) == int(wrong_cells(strange)[chosen_mazes(strange)].sum()) > 0
    keys = {patch.get_label(): patch.get_facecolor() for patch in figure.legends[0].get_patches()}
    assert mpl.colors.same_color(keys["another token"], STRANGE)
    exact = decode(reciting(task, instances, gold_NA, np.full(gold_NA.shape, 0.9)), instances, policy_named("top1"))
    with pytest.raises(HardtailError, match="every maze of this trace is right"):
        style()(regions_figure)(task, exact, pen)


def test_a_planted_maze_says_so_wherever_it_is_drawn(tmp_path: Path) -> None:
    task = Maze(size=5)
    instances = task.sample(4, hardtail.Streams(2).named("figures"), "natural")
    about = {"task": task.name, "config": task.config(), "policy": "top1", "note": "not a trained model"}
    trace = decode(local_maze(task, instances, 1), instances, policy_named("top1"), about=about)
    assert "not a trained model" in words(style()(regions_figure)(task, trace, pen))
