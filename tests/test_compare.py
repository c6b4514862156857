"""`hardtail compare`: a person's own models and traces next to each other, and nothing else."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import hardtail as ht
from hardtail.core.errors import HardtailError
from hardtail.core.types import Trace
from hardtail.measuring.statistics import mcnemar
from hardtail.measuring.subject import Subject
from hardtail.show.compare import compare_figure, compare_tables, compared
from hardtail.show.figures.style import MARKERS
from hardtail.show.page.data import page_content
from hardtail.show.sources import load_models, on_the_same_problems
from hardtail.tasks.addition.task import Addition
from hardtail.zoo import find
from tests.conftest import Command
from tests.test_api import MINE, TASK, carries_ignored

SUMS = TASK.sample(30, "natural", seed=2)


def decoded(policy: str, rows: slice = slice(None), name: str = "mine") -> Trace:
    return ht.decode(ht.load(carries_ignored, TASK, name=name), SUMS.take(rows), policy, stratum="natural")


def changed(trace: Trace, rows: list[int]) -> Trace:
    """The trace with the right answers in some rows, under another model's name."""
    answer_NA = trace.answer_NA.copy()
    answer_NA[rows] = trace.instances.answer_NA[rows]
    return Trace(**vars(trace) | {"answer_NA": answer_NA, "about": {**trace.about, "model": "better"}})


def test_decoders_are_paired_on_the_problems_that_they_share() -> None:
    first = decoded("top1")
    failing = np.flatnonzero(~first.exact_N).tolist()
    better = changed(first, failing[:4]).take(slice(5, None))
    (found,) = compared([first, better])
    assert found.decoders == ("mine · top1", "better · top1")
    ours, theirs = found.scores
    assert (ours.n, ours.right, ours.against_first) == (30, int(first.exact_N.sum()), None)
    assert (theirs.n, theirs.right, theirs.common) == (25, int(better.exact_N.sum()), 25)
    assert theirs.against_first == mcnemar(first.exact_N[5:], better.exact_N)
    accuracies, tests = compare_tables([found])
    assert accuracies.title.endswith(", of problems that are not all the same")
    assert accuracies.rows[0][:3] == ("mine · top1", "natural", f"{ours.right} of 30")
    assert tests.rows[0][:3] == ("better · top1", "natural", 25)


def test_configurations_of_one_task_are_told_apart() -> None:
    """Also on the page. Without a preset's name, a configuration is called by the fields in which it differs."""
    traces = []
    for task in (Addition(digits=4), Addition(digits=8), Addition()):
        model = ht.load(lambda tokens_BL, at_BA: torch.zeros(*at_BA.shape, 14), task, name="zeros")
        traces += [ht.decode(model, task.sample(2, "natural", seed=0), policy) for policy in ("top1", "lsb")]
    titles = [one.title for one in compared(traces)]
    assert titles == ["addition, digits=4", "addition, digits=8", "addition, release"]
    content, _ = page_content(None, [], traces)
    assert {story["title"] for story in content["stories"]} == set(titles)
    assert [one.title for one in compared(traces[:2])] == ["addition"]


def test_problems_that_are_not_shared_are_not_paired() -> None:
    (found,) = compared([decoded("top1", slice(0, 10)), decoded("top1", slice(10, 20), "other")])
    assert [score.against_first for score in found.scores] == [None, None]
    (accuracies,) = compare_tables([found])
    assert accuracies.title.endswith(", of problems that are not all the same")


def test_decoders_of_the_same_problems_are_said_to_be_nothing_else() -> None:
    accuracies, _ = compare_tables(compared([decoded("top1"), decoded("lsb")]))
    assert accuracies.title == "addition: exact match (95 % interval)"


def test_two_traces_of_one_decoder_are_not_said_to_be_too_few() -> None:
    with pytest.raises(HardtailError, match="traces of one model and policy are one decoder"):
        compared([decoded("top1", slice(0, 10)), decoded("top1", slice(10, 20))])


def test_one_policy_decoded_in_two_ways_is_two_decoders() -> None:
    usual = decoded("top1")
    several = replace(usual, about={**usual.about, "commit_rule": "4 a step", "temperature": 0.5})
    [found] = compared([usual, several, decoded("lsb")])
    assert found.decoders == ("mine · top1", "mine · top1, 4 a step, temperature 0.5", "mine · lsb")
    assert [score.n for score in found.scores] == [len(usual)] * 3


def test_one_decoder_is_nothing_to_compare() -> None:
    with pytest.raises(ht.HardtailError, match="at least two models"):
        compared([decoded("top1")])


def test_models_of_two_tasks_are_refused_before_they_are_decoded(
    hardtail_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardtail.show.sources.decoded", lambda *given, **also: pytest.fail("it was decoded"))
    words = ("compare", "zoo:addition-puma", "zoo:maze-puma", "--policy", "top1")
    code, out, err = hardtail_command(*words)
    assert (code, out) == (2, "")
    assert err == "hardtail: there is nothing to compare; give at least two models, policies or traces of one task\n"


def test_a_model_is_compared_with_a_trace(
    hardtail_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    few = ("--policy", "top1", "--strata", "natural", "-n", "2")
    assert hardtail_command("eval", "zoo:addition-random", *few, "--traces", ".")[0] == 0
    (trace,) = tmp_path.glob("*.npz")
    code, out, err = hardtail_command("compare", trace.name, "zoo:addition-puma", *few)
    assert code == 0, err
    assert "addition-random · top1" in out


def test_a_decode_that_is_given_twice_counts_once() -> None:
    first = decoded("top1")
    (found,) = compared([first, decoded("lsb"), decoded("top1")])
    assert [score.n for score in found.scores] == [len(first)] * 2
    other = replace(changed(first, np.flatnonzero(~first.exact_N).tolist()), about=first.about)
    with pytest.raises(ht.HardtailError, match="decodes of the same problems are both by mine under top1"):
        compared([first, decoded("lsb"), other])


def test_two_models_never_have_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be counted as one decoder, on twice as many problems."""
    monkeypatch.chdir(tmp_path)
    shipped = find("addition-puma").path
    files = ["one/runs/mine.safetensors", "two/runs/mine.safetensors", "two/other/mine.safetensors"]
    for file in files:
        Path(file).parent.mkdir(parents=True)
        shutil.copy(shipped, file)
    assert [subject.name for subject in load_models(files[:1])] == ["mine"]
    assert [subject.name for subject in load_models(files[1:])] == ["runs/mine", "other/mine"]
    assert [subject.name for subject in load_models(files)] == [*files[:2], "other/mine"]


@pytest.mark.parametrize("command", ["compare", "diagnose"])
def test_a_model_or_a_trace_in_two_spellings_is_refused(
    command: str, hardtail_command: Command, tmp_path: Path
) -> None:
    trace, model = tmp_path / "mine.npz", tmp_path / "run"
    decoded("top1").save(trace)
    model.mkdir()
    for twice in (trace, model):
        odd = f"{tmp_path}/./{twice.name}/" if twice.is_dir() else f"{tmp_path}/../{tmp_path.name}/{twice.name}"
        code, _, err = hardtail_command(command, str(twice), odd)
        assert (code, err) == (2, f"hardtail: {twice} is given more than once; name every run and trace once\n")


def test_progress_is_that_of_one_model_at_a_time(
    hardtail_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A maze takes a hundred times as long as a sum: what is left cannot be told from both together."""
    shown: list[tuple[str, int | None]] = []

    @contextmanager
    def bar(words: str, total: int | None) -> Iterator[Callable[[int], None]]:
        shown.append((words, total))
        yield lambda made: None

    monkeypatch.setattr("hardtail.cli.common.progress_bar", bar)
    few = ("--policy", "top1", "--strata", "natural", "chain>=2", "-n", "2", "--out", str(tmp_path / "page.html"))
    code, _, err = hardtail_command("report", "zoo:addition-random", "zoo:addition-puma", *few)
    assert code == 0, err
    assert shown == [("decoding addition-random", 4), ("decoding addition-puma", 4)]


def test_models_of_two_readings_get_the_same_problems() -> None:
    readings = [Addition.preset(reading, digits=4) for reading in ("release", "paper-carry")]
    others = [Addition(digits=5), Addition(digits=4, sum="modulo")]  # of another size, and with other answers
    made = [Subject(task, ht.load(carries_ignored, TASK).denoiser, task.preset_name()) for task in readings + others]
    assert [subject.task for subject in on_the_same_problems(made)] == [readings[0], readings[0], *others]


def test_the_command_writes_a_figure_and_tables(hardtail_command: Command, tmp_path: Path) -> None:
    figure, tables = tmp_path / "fig.pdf", tmp_path / "table.tex"
    words = ["compare", *MINE, "-n", "4", "--strata", "natural", "chain>=2"]
    code, out, err = hardtail_command(*words, "--out", str(figure), "--latex", str(tables))
    assert code == 0, err
    assert out.startswith("addition: exact match (95 % interval)\ndecoder ")
    assert "addition: against carries_ignored · top1, on the same problems" in out
    assert "16 decodes of 1 model" in err
    assert figure.read_bytes().startswith(b"%PDF")
    assert tables.read_text().count(r"\begin{tabular}") == 2
    before = figure.read_bytes()
    hardtail_command(*words, "--out", str(figure))
    assert figure.read_bytes() == before


def test_a_figure_shows_every_name_whole_and_every_decoder_at_its_stratum() -> None:
    names = [f"an-organisation/a-model-with-a-very-long-name-that-was-trained-for-{n}00000-steps" for n in range(12)]
    figure = compare_figure(compared([decoded("top1", name=name) for name in names]))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    whole, sheet = legend.get_window_extent(), figure.bbox
    assert (sheet.x0 <= whole.x0, whole.x1 <= sheet.x1, sheet.y0 <= whole.y0) == (True, True, True)
    assert [text.get_text().replace("\n", "") for text in legend.get_texts()] == [f"{name} · top1" for name in names]
    places = [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() in MARKERS]
    assert max(places) - min(places) < 0.8
    assert len(places) == len(set(places)) == len(names)


def test_a_figure_of_an_unknown_kind_is_refused_before_decoding(hardtail_command: Command, tmp_path: Path) -> None:
    code, out, err = hardtail_command("compare", *MINE, "--out", str(tmp_path / "fig.gif"))
    assert (code, out) == (2, "")
    assert "must end in .pdf, .png, .svg" in err
    assert not list(tmp_path.iterdir())


def test_a_problem_that_was_drawn_twice_counts_twice() -> None:
    """As in an evaluation: the stratum's law gives it that weight."""
    twice = decoded("top1").take(np.r_[0:30, 0:10])
    better = changed(twice, np.flatnonzero(~twice.exact_N).tolist()[:4])
    (found,) = compared([twice, better])
    assert found.scores[1].common == 40
    assert found.scores[1].against_first == mcnemar(twice.exact_N, better.exact_N)


def test_a_task_that_nothing_given_has_is_refused(hardtail_command: Command, tmp_path: Path) -> None:
    decoded("top1").save(tmp_path / "mine.npz")
    for words in (
        ("compare", "zoo:addition-random", "--task", "sudoku"),
        ("report", str(tmp_path / "mine.npz"), "--task", "sudoku", "--out", str(tmp_path / "page.html")),
        ("diagnose", str(tmp_path / "mine.npz"), "--task", "sudoku"),
        ("view", str(tmp_path / "mine.npz"), "--task", "sudoku"),
    ):
        code, _, err = hardtail_command(*words)
        assert (code, "is of the task addition, but --task is sudoku" in " ".join(err.split())) == (2, True), err
