"""The main job: what it prints is what was decoded, beside what the paper prints."""

import re
from pathlib import Path

import numpy as np
import pytest

import hardtail
from hardtail import zoo
from hardtail.cli import main
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.measuring.choices import measured_instances
from hardtail.policies.named import policy_named
from hardtail.show import demo
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.named import task_of
from hardtail.tasks.stored import refuse_unsolved
from tests.conftest import Command
from tests.planted import adder, lookahead

STRATA = ("natural", "chain>=28")
MODELS = [model for model in zoo.models() if model.task == "addition"]


@pytest.fixture(scope="module")
def shown() -> list[demo.Shown]:
    """All that the demonstration decodes, on three sums each."""
    done: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "INSTANCES", 3)
        found = demo.decode_all(done.append)
        assert sum(done) == demo.decodes() == len(MODELS) * 2 * 2 * 3
    return found


def made(denoiser: object, policies: tuple[str, ...] = ("top1", "lsb"), n: int = 40) -> list[demo.Shown]:
    """What a planted denoiser does with hard sums, as if it were a shipped model."""
    task = Addition()
    sums = measured_instances(task, STRATA[-1], n, 1)
    found = []
    for policy in policies:
        about = {"task": task.name, "config": task.config(), "policy": policy, "stratum": STRATA[-1]}
        order = policy_named(policy, task.order_names)
        trace = decode(denoiser, sums, order, about=about | {"model": "addition-random"})  # type: ignore[arg-type]
        found.append(demo.Shown("addition-random", STRATA[-1], policy, trace))
    return found


def test_every_shipped_model_is_shown_beside_the_paper(shown: list[demo.Shown]) -> None:
    rows = {(row[0], row[1]): row for row in demo.table(shown).rows}
    assert [name for name, _ in rows] == [model.name for model in MODELS for _ in range(2)]
    for model in MODELS:
        for stratum in STRATA:
            (right,) = (
                item.trace.exact_N.sum()
                for item in shown
                if (item.model, item.stratum, item.policy) == (model.name, stratum, "lsb")
            )
            assert rows[model.name, stratum][4] == f"{right} of 3"
    assert rows["addition-puma", "chain>=28"][3] == 0.908
    assert rows["addition-papl", "chain>=28"][5] == 0.03
    assert rows["addition-random", "natural"][3] == "≥ 0.999"
    assert rows["addition-papl5", "natural"][3] is None, "the paper prints no natural accuracy of it"
    assert demo.table(shown).columns[2::2] == ("by confidence", "lowest digit first ")


def test_what_is_recorded_on_more_sums_is_said_where_it_differs() -> None:
    recorded = zoo.models()[0].accuracy["chain>=28"]["top1"]
    (all_right,) = made(adder(Addition()), ("top1",), n=60)
    few = demo.Shown("addition-random", "chain>=28", "top1", all_right.trace.take(slice(3)))
    unlisted = demo.Shown("addition-random", "chain>=12", "top1", all_right.trace)
    assert demo.compared_with_records([few, unlisted]) == (
        "1 of 1 counts are close to those of the same weights on 500 or more sums (`hardtail zoo`)."
    )
    differs = f"addition-random, chain>=28, by confidence: 60 of 60 here, {100 * recorded:.1f} % there"
    one = demo.compared_with_records([few] * 3 + [all_right])
    assert one.startswith("3 of 4 counts are close")
    assert one.endswith(f"; the other: {differs}.")
    assert demo.compared_with_records([few, all_right, all_right]).endswith(f"; the others: {differs}; {differs}.")


def test_one_failure_is_named_and_drawn() -> None:
    """A planted shortcut is seen for what it is; who makes no mistake has none."""
    assert demo.failure(*demo.told(made(adder(Addition())))) is None
    planted = made(lookahead(Addition(), 6))
    story, stage = demo.told(planted)
    failed = int((~planted[0].trace.exact_N).sum())
    assert f"By confidence, addition-random solves {100 - round(100 * failed / 40)} % of sums with" in story.text
    found = demo.failure(story, stage)
    assert found is not None
    sentence, picture = found
    said = re.match(r"In step (\d+) of 33 it writes (\d) into 10\^(\d+) with probability 0.997, where (\d)", sentence)
    assert said is not None
    assert "which is still hidden" in sentence
    place, written = 32 - int(said[3]), said[2]
    (drawn,) = (line for line in str(picture).splitlines() if line.strip().startswith("sum"))
    assert drawn.removeprefix("  sum  ").split()[place] == written


def test_the_command_writes_its_page_and_ends_with_what_was_seen(
    shown: list[demo.Shown], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "decode_all", lambda progress: shown)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.argv", ["hardtail", "demo", "--out", str(page := tmp_path / "[new] page.html")])
    main()
    said = capsys.readouterr().out
    assert all(model.name in said for model in MODELS)
    assert max(map(len, said.replace(str(page), "").splitlines())) <= 80
    last = " ".join(said.split("What you have seen")[1].split())
    story, _ = demo.told(shown)
    assert last.startswith(story.text)
    assert f"{page} replays every decode" in said
    assert page.stat().st_size > 100_000


def test_a_page_of_another_name_is_refused_before_the_decodes(
    hardtail_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "decode_all", lambda progress: pytest.fail("it was decoded"))
    code, out, err = hardtail_command("demo", "--out", str(tmp_path / "page.txt"))
    assert (code, out) == (2, "")
    assert err.endswith("page.txt: the name of a page must end in .html\n")


def test_the_recorded_decodes_are_of_real_problems_in_two_orders() -> None:
    """Two traces a task, of the same problems: by confidence and in the task's logical order."""
    looks: dict[str, dict[str, Trace]] = {}
    for trace in zoo.looks():
        task = task_of(trace.about, "a look")
        looks.setdefault(task.name, {})[trace.source.policy] = trace
        refuse_unsolved(task, trace.instances, "a look")
    rows = {row[0]: row[3:] for row in demo.look_table(zoo.looks()).rows}
    assert set(looks) == set(rows) == {"countdown", "listops", "maze", "sudoku"}
    for name, pair in looks.items():
        confidence, logical = pair.pop("top1"), pair.pop(hardtail.task(name).showcase().order)
        assert not pair, "nothing else is recorded"
        assert np.array_equal(confidence.instances.tokens_NL, logical.instances.tokens_NL)
        assert rows[name] == tuple(f"{trace.exact_N.sum()} of {len(trace)}" for trace in (confidence, logical))
        assert not (confidence.exact_N & logical.exact_N).all(), "there is a failure to watch"
