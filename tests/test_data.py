"""Built data sets: the same whatever the cores, disjoint where they must be, in the proportions asked for."""

from pathlib import Path

import numpy as np
import pytest

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.types import Instances
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.base import Part
from hardtail.tasks.datasets import KEPT, build, draw, load, measured_on, parts_of
from hardtail.testing import same


def problems(instances: Instances) -> set[bytes]:
    return {instances.prompt(i).tobytes() for i in range(len(instances))}


def test_workers_do_not_matter() -> None:
    task = hardtail.task("addition", digits=6)
    one, three = (build(task, "train", seed=1, n=2500, workers=workers) for workers in (1, 3))
    assert same(one.instances, three.instances)
    assert one.manifest == three.manifest


def test_train_and_test_never_meet() -> None:
    """Two digits have 8,100 sums, fewer than are drawn: still none is on both sides, whatever the sizes and seeds."""
    task = hardtail.task("addition", digits=2)
    train = build(task, "train", seed=0, n=10_000)
    assert len(train.instances) == 10_000
    for split in set(task.splits()) - {"train"}:
        for seed, n in ((0, None), (1, 20_000)):
            assert not problems(train.instances) & problems(build(task, split, seed=seed, n=n).instances)
    overlapping = build(task, "train", seed=0, n=10_000, keep_overlap=True)
    assert problems(overlapping.instances) & problems(build(task, "test", seed=0).instances)
    assert train.manifest.removed == pytest.approx(10_000 / 3, rel=0.1)
    assert "1 in 4" in str(train.manifest.train_and_test)
    assert (overlapping.manifest.removed, overlapping.manifest.train_and_test) == (0, "not kept apart")


def test_relatives_are_on_one_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a sum is related to the one with its numbers exchanged."""

    def pairs(task: Addition, instances: Instances) -> list[bytes]:
        prompts = map(instances.prompt, range(len(instances)))
        return [b"".join(sorted((prompt[:2].tobytes(), prompt[3:5].tobytes()))) for prompt in prompts]

    def sides() -> tuple[set[bytes], set[bytes]]:
        train, test = (build(task, split, seed=0, n=3000).instances for split in ("train", "test"))
        assert not problems(train) & problems(test)
        return set(pairs(task, train)), set(pairs(task, test))

    task = Addition(digits=2)
    train, test = sides()
    assert train & test
    monkeypatch.setattr(Addition, "kin", pairs)
    train, test = sides()
    assert not train & test
    assert all(map(measured_on, test))
    assert not any(map(measured_on, train))


def test_keeping_apart_leaves_the_law_alone() -> None:
    """The split is by problem, not by difficulty (docs/study.md §4: half the trees have depth 1)."""
    depth = build(hardtail.task("listops"), "train", n=20_000).instances.strata["depth"]
    assert np.bincount(depth, minlength=6)[1:] / 20_000 == pytest.approx([0.52, 0.261, 0.131, 0.057, 0.031], abs=0.03)


def test_fewer_are_the_first_of_more() -> None:
    task = hardtail.task("addition", digits=6)
    few, many = (build(task, "test", seed=3, n=n).instances for n in (100, 1500))
    assert same(few, many.take(slice(100)))
    assert same(few, draw(task, "test", task.splits()["test"][0]._replace(n=100), seed=3))


def test_some_of_a_file_keeps_its_proportions(tmp_path: Path) -> None:
    task = hardtail.task("addition", digits=4)
    prompts = [
        *task.render(task.sample(300, Streams(0).named("a"))),
        *task.render(task.sample(300, Streams(0).named("b"), "chain>=3")),
    ]
    (tmp_path / "sums.txt").write_text("\n".join(prompts))
    built = load(task, str(tmp_path / "sums.txt"), n=100)
    assert len(built.instances) == 100
    assert 0.3 < (built.instances.strata["chain"] >= 3).mean() < 0.7
    assert built.manifest.removed is None


def test_countdown_is_disjoint_by_construction() -> None:
    task = hardtail.task("countdown")
    train, test = (build(task, split, n=200).instances for split in ("train", "test"))
    assert build(task, "test", n=5).manifest.train_and_test == "by construction"
    assert not set(train.strata["target"].tolist()) & set(test.strata["target"].tolist())


def test_parts_scale_and_none_disappears() -> None:
    task = hardtail.task("sudoku")
    parts = parts_of(task, "train", 1000)
    assert sum(part.n for part in parts) == 1000
    assert min(part.n for part in parts) == 1
    assert [part.stratum for part in parts] == [part.stratum for part in task.splits()["train"]]
    with pytest.raises(HardtailError, match="cannot cover"):
        parts_of(task, "train", 3)


def test_unknown_split() -> None:
    with pytest.raises(HardtailError, match="train, test"):
        build(hardtail.task("maze"), "holdout")


def test_sweep_holds_every_stratum() -> None:
    built = build(hardtail.task("addition"), "sweep", n=100)
    lengths, counts = np.unique(built.instances.strata["chain"], return_counts=True)
    assert {2, 3, 4, 6, 8, 12, 16, 20, 24, 28} <= set(lengths.tolist())
    assert counts.sum() == 100
    assert built.manifest.preset == "release"
    assert built.manifest.streams is not None
    assert built.manifest.streams[0] == "addition/sweep/chain>=2"


def test_kept_instances_are_read_where_nothing_can_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = hardtail.task("listops")
    drawn, built = draw(task, "test", Part("depth=2", 7), 1), build(task, "train", 1, 20)
    monkeypatch.setenv(KEPT, str(tmp_path))
    draw(task, "test", Part("depth=2", 7), 1)
    build(task, "train", 1, 20)

    def cannot(*given: object) -> Instances:
        raise AssertionError("drawn again")

    monkeypatch.setattr(type(task), "propose", cannot)
    for name, array in drawn.arrays().items():
        assert np.array_equal(draw(task, "test", Part("depth=2", 7), 1).arrays()[name], array)
    assert np.array_equal(build(task, "train", 1, 20).instances.tokens_NL, built.instances.tokens_NL)
    mine = type("Mine", (type(task),), {})()  # a task of a user's own that goes by the same name
    others = ((task, Part("depth=2", 8), 1), (task, Part("depth=2", 7), 2), (mine, Part("depth=2", 7), 1))
    for other, part, seed in others:
        with pytest.raises(AssertionError, match="drawn again"):
            draw(other, "test", part, seed)
    monkeypatch.setattr(type(task), "edition", task.edition + 1)
    for again in (lambda: draw(task, "test", Part("depth=2", 7), 1), lambda: build(task, "train", 1, 20)):
        with pytest.raises(AssertionError, match="drawn again"):
            again()


@pytest.mark.parametrize("split", ["train", "test"])
def test_data_drawn_in_small_pieces_is_the_same(split: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two digits: many problems meet the other side, so that several rounds of drawing are needed."""
    task = Addition(digits=2)
    whole = build(task, split, seed=3, n=40)
    monkeypatch.setattr("hardtail.tasks.datasets.CHUNK", 3)
    done: list[int] = []
    pieces = build(task, split, seed=3, n=40, progress=done.append)
    assert same(pieces.instances, whole.instances)
    assert pieces.manifest.removed == whole.manifest.removed
    assert sum(done) == 40


def test_a_split_in_few_instances_keeps_every_part() -> None:
    task = Addition()
    parts = parts_of(task, "sweep", None)
    assert parts_of(task, "sweep", len(parts)) == [part._replace(n=1) for part in parts]
    some = parts_of(task, "sweep", 1000)
    assert sum(part.n for part in some) == 1000
    with pytest.raises(HardtailError, match=f"cannot cover the strata of 'sweep'; give at least {len(parts)}"):
        parts_of(task, "sweep", len(parts) - 1)
    with pytest.raises(HardtailError, match="there is no split 'x'; give one of train"):
        parts_of(task, "x", None)
