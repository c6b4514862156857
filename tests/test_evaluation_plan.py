"""What an evaluation will decode, before it begins: counts, and about how long they take."""

from pathlib import Path

import pytest

from hardtail.core.errors import HardtailError
from hardtail.core.files import save_instances
from hardtail.decoding.options import Decoding
from hardtail.measuring.evaluate import Evaluating, records_of
from hardtail.measuring.given import GivenProblems
from hardtail.measuring.plan import Plan
from hardtail.measuring.subject import load_subject
from hardtail.policies.base import Commit
from hardtail.tasks import datasets

ADDITION, COUNTDOWN = "zoo:addition-puma", "zoo:countdown-little"


def test_drawn_problems_are_counted_by_stratum_and_policy() -> None:
    plan = Plan.of(load_subject(ADDITION), ["top1", "lsb"], ["natural", "chain>=28"], 7)
    assert (plan.instances, plan.half_revealed, plan.total) == (14, 0, 28)
    assert [count for _, count in plan.decodes] == [14, 14, 0]


def test_some_answers_are_also_decoded_from_their_half() -> None:
    plan = Plan.of(load_subject(COUNTDOWN), ["top1", "margin"], ["natural"], 5)
    assert (plan.instances, plan.half_revealed, plan.total) == (5, 5, 15)


def test_given_problems_are_decoded_once_for_each_policy_whatever_strata_they_are_in(tmp_path: Path) -> None:
    subject = load_subject(ADDITION)
    made = datasets.build(subject.task, "test", 5, 40)
    save_instances(tmp_path / "sums.npz", made.instances, made.manifest)
    given = GivenProblems.read(subject.task, tmp_path / "sums.npz")
    plan = Plan.of(subject, ["top1", "lsb"], given=given)
    assert set(plan.strata) <= set(subject.task.strata())
    assert (plan.instances, plan.total) == (len(made.instances), 2 * len(made.instances))


def test_a_plan_is_measured_as_it_counts() -> None:
    """Half-revealed answers and the problems that set limits are among what progress counts."""
    for name, policies, calibrating in ((COUNTDOWN, ["top1", "margin"], None), (ADDITION, ["top1", "ladder"], 10)):
        plan = Plan.of(load_subject(name), policies, ["natural"], 2, calibrating=calibrating, data_seed=7)
        made: list[int] = []
        said: list[str] = []
        how = Evaluating(progress=made.append)
        found = records_of(list(plan.measure(Decoding(), how, say=said.append)))
        assert sum(made) == plan.total
        assert {record.data_seed for record in found} == {7}
        assert len(said) == len(plan.ladders)
        assert any(record.calibrated == calibrating for record in found)


def test_limits_are_set_by_further_decodes() -> None:
    subject = load_subject(ADDITION)
    plan = Plan.of(subject, ["top1", "ladder", "ladder,limit=2"], ["natural"], 4, calibrating=10)
    assert list(plan.ladders) == ["ladder"]
    assert (plan.instances, plan.total) == (4, 3 * 4 + 10)
    without = Plan.of(subject, ["top1", "ladder", "ladder,limit=2"], ["natural"], 4)
    longer, shorter = (each.seconds(Commit(), trust=False) for each in (plan, without))
    assert longer is not None
    assert shorter is not None
    assert longer > shorter
    with pytest.raises(HardtailError, match="no policy is one without a limit"):
        Plan.of(subject, ["top1"], ["natural"], 4, calibrating=10)
