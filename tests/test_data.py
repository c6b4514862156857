"""Built data sets: the same whatever the cores, disjoint where they must be, in the proportions asked for."""

import numpy as np
import pytest

import hardtail
from hardtail import HardtailError
from hardtail.data import build, parts_of
from hardtail.testing import same
from hardtail.types import Instances


def problems(instances: Instances) -> set[bytes]:
    return {instances.prompt(i).tobytes() for i in range(len(instances))}


def test_workers_do_not_matter() -> None:
    task = hardtail.task("addition", digits=6)
    one, three = (build(task, "train", seed=1, n=2500, workers=workers) for workers in (1, 3))
    assert same(one.instances, three.instances)
    assert one.manifest == three.manifest


def test_train_is_disjoint_by_removal() -> None:
    """Of the 810,000 sums of three digits the test set holds 10,000: training does without them and says so."""
    task = hardtail.task("addition", digits=3)
    train = build(task, "train", seed=0, n=3000)
    overlapping = build(task, "train", seed=0, n=3000, keep_overlap=True)
    assert len(train.instances) == len(overlapping.instances) == 3000
    for split in set(task.splits()) - {"train"}:
        assert not problems(train.instances) & problems(build(task, split, seed=0).instances)
    assert problems(overlapping.instances) & problems(build(task, "test", seed=0).instances)
    assert train.manifest["removed"] > 0
    assert overlapping.manifest["removed"] == 0


def test_an_exhausted_space_says_so() -> None:
    with pytest.raises(HardtailError, match="keep the overlap"):
        build(hardtail.task("addition", digits=1), "train", n=10)


def test_countdown_is_disjoint_by_construction() -> None:
    task = hardtail.task("countdown")
    train, test = (build(task, split, n=200).instances for split in ("train", "test"))
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
    assert built.manifest["preset"] == "release"
    assert built.manifest["streams"][0] == "addition/sweep/chain>=2"
