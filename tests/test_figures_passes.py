"""The figure of accuracy against passes: records that count passes, weighted by their instances."""

from pathlib import Path

import pytest

from hardtail.core.records import Accuracy, RunEntry, append_jsonl
from hardtail.show.figures.passes import costs, passes_figure
from hardtail.study.runs import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def record(policy: str, n: int, right: float, passes: float | None, stratum: str = "chain>=28") -> Accuracy:
        return Accuracy(policy=policy, stratum=stratum, n=n, exact_match=right, passes=passes)

    held = [
        record("check", 300, 1.0, 20.0),
        record("check", 100, 0.6, 12.0),
        record("check", 5000, 0.0, None),  # from before passes were counted
        record("check", 100, 0.0, 1.0, "natural"),
        record("top1", 100, 0.5, 33.0),
    ]
    append_jsonl(tmp_path / "evaluations.jsonl", held)
    return Run(RunEntry(name="a", arm="a", task="addition", seed=42, steps=1), tmp_path)


def test_costs_are_means_over_instances(run: Run) -> None:
    assert costs(run, "chain>=28", ["top1", "check", "lsb"]) == {
        "top1": pytest.approx((33.0, 0.5)),
        "check": pytest.approx((18.0, 0.9)),
    }


def test_every_policy_that_was_measured_has_its_mark(run: Run) -> None:
    drawn = passes_figure(
        {"one": run}, {"one": "#0072b2"}, "chain>=28", {"check": "check", "top1": "top1", "lsb": "lsb"}
    )
    (axes,) = drawn.axes
    lines = [line.get_xydata() for line in axes.lines if line.get_linestyle() == "None"]
    marks = [list(points[0]) for points in lines if len(points)]
    assert sorted(marks) == [pytest.approx([18.0, 0.9]), pytest.approx([33.0, 0.5])]
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["check", "top1", "lsb", "one"]
