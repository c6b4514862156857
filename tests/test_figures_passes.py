"""The figure of accuracy against passes: the largest record of each data seed, weighted by its instances."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hardtail.core.records import Accuracy, DataFile, RunEntry, append_jsonl
from hardtail.decoding.loop import decode
from hardtail.policies.named import policy_named
from hardtail.show.charts.passes import costs, decoded_passes, recorded_passes
from hardtail.show.figures.passes import passes_figure, policies_figure, seconds_figure
from hardtail.show.stages import stages
from hardtail.study.runs import Run
from hardtail.tasks.addition.task import Addition
from tests.planted import lookahead


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def record(policy: str, n: int, right: float, passes: float | None, stratum: str = "chain>=28") -> Accuracy:
        return Accuracy(policy=policy, stratum=stratum, n=n, exact_match=right, passes=passes, checkpoint="last")

    held = [
        record("check", 300, 1.0, 20.0),
        record("check", 50, 0.0, 1.0),  # of the same data seed, and smaller
        structs.replace(record("check", 100, 0.6, 12.0), data_seed=1),
        structs.replace(record("check", 9000, 0.0, 2.0), data_seed=2, commit_rule="4 a step"),
        record("check", 5000, 0.0, None),  # from before passes were counted
        structs.replace(record("check", 8000, 0.0, 3.0), data=DataFile(file="others.npz", sha256="0")),
        structs.replace(record("check", 7000, 0.0, 3.0), checkpoint="best_probe"),
        structs.replace(record("check", 6000, 0.0, 3.0), temperature=1.0),
        record("check", 100, 0.0, 1.0, "natural"),
        record("top1", 100, 0.5, 33.0),
    ]
    append_jsonl(tmp_path / "evaluations.jsonl", held)
    return Run(RunEntry(name="a", arm="a", task="addition", seed=42, steps=1), tmp_path)


def test_costs_are_means_over_instances(run: Run) -> None:
    assert costs(run, "last", "chain>=28", ["top1", "check", "lsb"]) == {
        "top1": pytest.approx((33.0, 0.5)),
        "check": pytest.approx((18.0, 0.9)),
    }


def test_every_policy_that_was_measured_has_its_mark(run: Run) -> None:
    drawn = passes_figure(
        {"one": run}, "last", {"one": "#0072b2"}, "chain>=28", {"check": "check", "top1": "top1", "lsb": "lsb"}
    )
    (axes,) = drawn.axes
    lines = [line.get_xydata() for line in axes.lines if line.get_linestyle() == "None"]
    marks = [list(points[0]) for points in lines if len(points)]
    assert sorted(marks) == [pytest.approx([18.0, 0.9]), pytest.approx([33.0, 0.5])]
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["check", "top1", "lsb", "one"]


def test_time_has_a_panel_for_each_device() -> None:
    def record(device: str, policy: str, wall: float, right: float, model: str = "mine") -> Accuracy:
        about: dict[str, Any] = {"model": model, "policy": policy, "device": device}
        return Accuracy(**about, stratum="chain>=28", n=500, exact_match=right, wall=wall)

    held = [
        record("NVIDIA H200, torch 2.11", "top1", 0.5, 0.6),
        record("NVIDIA H200, torch 2.11", "check", 0.25, 1.0),
        record("CPU x86_64, torch 2.13", "top1", 5.0, 0.6),
        structs.replace(record("CPU x86_64, torch 2.13", "check", 9.0, 0.0), stratum="natural"),
        record("CPU x86_64, torch 2.13", "check", 9.0, 0.0, "other"),
    ]
    drawn = seconds_figure(held, {"mine": "#0072b2"}, "chain>=28", {"check": "check", "top1": "top1"})
    drawn_lines = [[line for line in axes.lines if line.get_linestyle() == "None"] for axes in drawn.axes]
    points = [[tuple(at) for line in lines for at in line.get_xydata()] for lines in drawn_lines]
    assert points == [[(0.5, 1.0), (1.0, 0.6)], [(10.0, 0.6)]]
    assert [axes.get_title("left") for axes in drawn.axes] == ["NVIDIA H200", "CPU x86_64"]
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["check", "top1", "mine"]


def test_policies_are_lines_over_their_settings_and_near_names_share_a_label(run: Run) -> None:
    def record(policy: str, right: float, passes: float, rule: str = "1 a step") -> Accuracy:
        return Accuracy(policy=policy, stratum="chain>=28", n=9, exact_match=right, passes=passes, commit_rule=rule)

    given = [record("top1", 0.5, 33.0), record("top1", 0.2, 9.0, "4 a step"), record("check", 1.0, 15.0)]
    given += [record("topk,k=2", 0.48, 17.5), record("topk,k=4", 0.1, 9.0), record("p2", 0.7, 33.0)]
    elsewhere = structs.replace(record("check", 0.0, 3.0), stratum="natural")
    (axes,) = policies_figure([*given, elsewhere], "chain>=28", "check").axes
    lines = [[tuple(at) for at in line.get_xydata()] for line in axes.lines]
    assert lines == [[(9.0, 0.2), (33.0, 0.5)], [(15.0, 1.0)], [(9.0, 0.1), (17.5, 0.48)], [(33.0, 0.7)]]
    assert [text.get_text() for text in axes.texts] == ["top1, topk", "check", "p2"]
    assert len({text.get_color() for text in axes.texts}) == 2


def test_the_page_says_what_is_solved_best_in_the_fewest_passes(run: Run) -> None:
    (chart,) = recorded_passes("addition", [run], "last", {"a"})
    assert recorded_passes("addition", [run], "best_probe") == [], "one policy alone costs what it costs"
    found = {one.style: one.lines[0].points[0] for one in chart.series}
    assert {policy: point.x for policy, point in found.items()} == {"check": pytest.approx(18.0), "top1": 33.0}
    assert {policy: point.y for policy, point in found.items()} == {"check": pytest.approx(0.9), "top1": 0.5}
    assert (chart.section, chart.answer) == ("cost", "a, seed 42 (not measured) · check solves 90 % in 18 passes")
    assert recorded_passes("no such task", [replace(run, entry=structs.replace(run.entry, task="none"))], "last") == []


def test_decodes_that_cost_the_same_are_not_compared_by_cost() -> None:
    task = Addition(digits=8)
    hard = task.showcase().hard
    instances = task.sample(6, hard, seed=0)
    traces = [
        decode(lookahead(task, 2), instances, policy_named(name, task.order_names))
        for name in ("top1", "lsb", "threshold")
    ]
    about = {"task": task.name, "config": task.config(), "stratum": hard, "model": "mine"}
    named = [
        replace(trace, about=about | {"policy": name})
        for trace, name in zip(traces, ("top1", "lsb", "threshold"), strict=True)
    ]
    (slow,), (every,) = stages(named[:2]), stages(named)
    assert decoded_passes(slow) is None
    chart = decoded_passes(every)
    assert chart is not None
    cost = {one.style: one.lines[0].points[0].x for one in chart.series}
    assert cost["top1"] == cost["lsb"] == 9
    passes_N = named[2].passes_N
    assert passes_N is not None
    assert cost["threshold"] == passes_N.mean() < 9
