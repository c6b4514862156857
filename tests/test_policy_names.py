"""Policies by name: fields after commas, a task's orders, other people's classes, and what a mistake is told."""

import re
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest

import hardtail.core.registry
from hardtail.core.errors import HardtailError
from hardtail.core.registry import POLICIES, TASKS, Registry
from hardtail.decoding.loop import decode
from hardtail.policies.base import Policy
from hardtail.policies.check import Check
from hardtail.policies.confidence import MaxLogit, Top1
from hardtail.policies.ladder import Ladder
from hardtail.policies.learned import Planned
from hardtail.policies.named import name_of, policy_named
from hardtail.policies.orders import Blocks, Logical
from hardtail.policies.parallel import Klass, Threshold
from hardtail.policies.remask import LeaveOneOut, ReMDM
from hardtail.show.policies import policy_tables
from tests.decoding_toys import CELLS, NAMES, TOY, EveryOther, problems


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("top1", Top1()),
        ("max-logit", MaxLogit()),
        ("block,size=4", Blocks(size=4)),
        ("threshold, p=0.8", Threshold(p=0.8)),
        ("threshold,p=1", Threshold(p=1.0)),
        ("klass,kl=0.5,history=3", Klass(kl=0.5, history=3)),
        ("loo,rounds=5", LeaveOneOut(rounds=5)),
        ("remdm,variant=conf", ReMDM(variant="conf")),
        ("lsb", Logical("lsb")),
        ("hardtail.policies.orders:Logical,order=msb", Logical("msb")),
        ("tests.decoding_toys:EveryOther,first=2", EveryOther(first=2)),
    ],
)
def test_names(text: str, policy: Policy) -> None:
    assert policy_named(text, ("lsb", "top_down")) == policy


@pytest.mark.parametrize("text", [name for name in NAMES if ":" not in name])
def test_a_policy_has_the_name_that_it_is_read_from(text: str) -> None:
    orders = ("zigzag",)
    assert policy_named(name_of(policy_named(text, orders)), orders) == policy_named(text, orders)


def test_a_policy_two_levels_down_is_only_hinted_at() -> None:
    deep = name_of(Ladder((Threshold(), Check(draft=Check(draft=Threshold(p=0.5))))))
    assert deep == "ladder,rungs=threshold/check+…"
    with pytest.raises(HardtailError):
        policy_named(deep)


def test_a_policy_of_ones_own_is_called_by_its_class_and_fields() -> None:
    assert name_of(EveryOther(first=2)) == "EveryOther,first=2"
    assert name_of(Planned(lambda tokens_BL, at_BA: at_BA)) == "Planned"


def test_every_order_of_every_task_is_a_policy() -> None:
    for task in TASKS.names():
        for order in TASKS.load(task).order_names:
            assert policy_named(order, TASKS.load(task).order_names) == Logical(order)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tpo1", "no policy 'tpo1'; did you mean 'top1'"),
        ("lbs", "did you mean 'lsb'"),
        ("zebra", "give one of top1, max-logit, .*, lsb, or package.module:Class"),
        ("", "no policy ''"),
        ("block,width=4", "'width=4' does not set a field; write FIELD=VALUE with one of size"),
        ("block,4", "'4' does not set a field"),
        ("block,size=4,size=5", "size is given twice"),
        ("block,size=four", "size is 'four'; it must be a whole number"),
        ("block,size=0", "size is 0"),
        ("block,size=2.5", "size is '2.5'"),
        ("top1,p=1", "'p=1' does not set a field; there are none to set"),
        ("lsb,p=1", "'lsb' has no fields"),
        ("topk,k=0", "k is 0"),
        ("threshold,p=1.5", "Threshold: p is 1.5; it must be above 0 and at most 1"),
        ("threshold,p=nan", "p is nan"),
        ("factor,f=0", "f is 0"),
        ("eb,gamma=-1", "gamma is -1"),
        ("klass,p=1", "p is 1"),
        ("klass,kl=0", "kl is 0"),
        ("klass,history=0", "history is 0"),
        ("loo,rounds=-1", "rounds is -1"),
        ("remdm,variant=loop", "variant is 'loop'; it must be one of 'cap', 'conf'"),
        ("remdm,eta=2", "eta is 2"),
        ("p2,eta=-1", "eta is -1"),
        ("hardtail.policies.orders:Logical", "order has no default; write"),
        ("no_such_package.module:MyPolicy", "cannot be loaded: No module named"),
        ("hardtail.policies.orders:Spiral", "cannot be loaded"),
        ("hardtail.policies.base:Policy", "is not a policy: it must be a complete subclass"),
        ("hardtail.tasks.addition.task:Addition", "is not a policy"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(HardtailError, match=words) as caught:
        policy_named(text, ("lsb",))
    assert "\n" not in str(caught.value)


def test_a_policy_goes_before_an_order_of_the_same_name() -> None:
    """A plug-in's task may call an order what a policy is called; everyone else's commands mean the policy."""
    assert policy_named("top1", ("top1", "lsb")) == policy_named("top1")
    assert policy_named("topk,k=3", ("topk",)) == policy_named("topk,k=3")


def test_a_package_adds_policies_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("every-other", "tests.decoding_toys:EveryOther", "hardtail.policies")
    monkeypatch.setattr(hardtail.core.registry, "entry_points", EntryPoints([point]).select)
    fresh: Registry[type[Policy]] = Registry(POLICIES.kind, POLICIES.group, POLICIES.builtin, lambda found: None)
    assert fresh.names() == [*POLICIES.builtin, "every-other"]
    assert fresh.load("every-other") is EveryOther


def test_the_documented_policy_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[1] / "docs" / "policies.md").read_text()
    [block] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "documented_policy.py").write_text(block)
    monkeypatch.syspath_prepend(tmp_path)
    instances = problems(20)
    trace = decode(TOY, instances, policy_named("documented_policy:OutsideIn,weight=2"))
    outside_NT = np.where(trace.happened_NT, np.abs(trace.cell_NT - (CELLS - 1) / 2), 0)
    assert (np.diff(outside_NT, axis=1) <= 0).all()


def test_the_table_names_every_policy() -> None:
    text = (Path(__file__).parents[1] / "docs" / "policies.md").read_text()
    first_column = "".join(line.split("|")[1] for line in text.splitlines() if line.startswith("|"))
    assert set(POLICIES.builtin) <= set(re.findall(r"`([\w-]+)`", first_column))


def test_a_policy_that_cannot_be_loaded_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES._known, "broken", "no_such_package:Nope")
    rows = [row for table in policy_tables() for row in table.rows]
    assert {"top1", "check", "broken"} <= {str(row[0]) for row in rows}
