"""The contracts as functions: `check_task(MyTask())` tests your task exactly as ours are tested; `check_scheme` and
`check_policy` do the same. Each raises `AssertionError` with a sentence about the first broken promise.
"""

import msgspec
import numpy as np

from hardtail.core.seeds import Streams
from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.base import Task
from hardtail.tasks.datasets import build
from hardtail.tasks.parts import NO_ROLE
from hardtail.testing.policies import check_policy
from hardtail.testing.schemes import check_scheme

__all__ = ["check_policy", "check_scheme", "check_task", "same"]
HIDDEN = "◇"
"""A sign that no task uses."""


def check_task(task: Task, n: int = 24) -> None:
    """Everything the rest of hardtail relies on, for the natural stratum, the easiest and the hardest one."""
    _check_showcase(task)
    for stratum in {"natural", task.strata()[0], task.strata()[-1]}:
        rng = Streams(7).named(f"contract/{task.name}/{stratum}")
        instances = task.sample(n, rng, stratum)
        _check_shapes(task, instances)
        _check_orders_and_parents(task, instances)
        _check_judgement(task, instances)
        _check_text(task, instances)
        _check_drawing(task, instances)
        _check_roles(task, instances)
        _check_profile(task, instances)
        assert same(instances, task.sample(n, rng, stratum)), "the same stream gives other instances"
        assert same(instances.take(slice(5, 9)), task.sample(4, rng.skip(5), stratum)), (
            "an instance depends on its neighbours or on where the chunk began"
        )
    train, test = (task.sample(n, Streams(7).named(f"contract/{name}")) for name in ("train", "test"))
    assert not same(train, test), "streams with different names give the same instances"
    _check_splits(task)
    scene = task.scene()
    if scene is not None:
        assert f'register("{task.name}", ' in scene.script, "the scene is not registered by the task's name"
        assert "</style" not in scene.style, "the style sheet ends the page's"


def same(one: Instances, other: Instances) -> bool:
    """Whether the instances are the same bit for bit."""
    left, right = one.arrays(), other.arrays()
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and np.array_equal(left[name], right[name]) for name in left
    )


def _check_splits(task: Task) -> None:
    splits = task.splits()
    assert {"train", "test"} <= set(splits), "the splits 'train' and 'test' are missing"
    for split, parts in splits.items():
        assert parts, f"the split {split!r} is empty"
        assert all(part.n > 0 and str(task.stratum(part.stratum)) for part in parts), f"{split!r} has an empty part"
    sides = [build(task, split, seed=7, n=len(splits[split]) + 20).instances for split in ("train", "test")]
    train, test = ({side.prompt(i).tobytes() for i in range(len(side))} for side in sides)
    assert not train & test, "a problem is both trained and tested on"


def _check_shapes(task: Task, instances: Instances) -> None:
    n, length, cells = len(instances), task.seq_len, task.answer_len
    assert instances.tokens_NL.shape == (n, length), "tokens_NL is not [n, seq_len]"
    wanted = task.vocabulary.dtype
    assert instances.tokens_NL.dtype == wanted, f"tokens_NL is not {wanted.__name__}"
    assert instances.tokens_NL.max() < task.vocabulary.size, "a token is outside the vocabulary"
    assert (instances.tokens_NL != task.vocabulary.mask_id).all(), "gold tokens contain the mask"
    assert instances.maskable_NA.shape == instances.scored_NA.shape == (n, cells), "masks are not [n, answer_len]"
    assert (instances.prompt_len_N + cells <= length).all(), "the answer runs past the end"
    assert instances.maskable_NA.any(axis=1).all(), "an instance has nothing to predict"
    assert (instances.maskable_NA.sum(axis=1) <= task.most_hidden).all(), "more cells are hidden than most_hidden"
    assert not (instances.scored_NA & ~instances.maskable_NA).any(), "a cell that is never hidden is scored"
    after = np.arange(length) >= (instances.prompt_len_N + cells)[:, None]
    assert (instances.tokens_NL[after] == task.vocabulary.pad_id).all(), "something other than padding follows"
    assert set(instances.strata) == set(task.axes), "strata and axes differ"
    per_instance = [*instances.strata.values(), *instances.extras.values(), *instances.orders.values()]
    assert all(len(array) == n for array in per_instance), "an array does not have one row per instance"


def _check_showcase(task: Task) -> None:
    case = task.showcase()
    for stratum in (case.ordinary, case.hard):
        task.stratum(stratum)  # raises for a condition that the task does not know
    assert case.order in task.order_names, f"the showcase has the order {case.order!r}, which the task does not have"


def _check_orders_and_parents(task: Task, instances: Instances) -> None:
    assert instances.orders, "there is no logical order"
    assert set(instances.orders) == set(task.order_names), "orders and order_names differ"
    for name, rank_NA in instances.orders.items():
        assert rank_NA.shape == instances.maskable_NA.shape, f"the order {name!r} has another shape"
        assert ((rank_NA >= 0) == instances.maskable_NA).all(), f"{name!r} does not rank just the maskable cells"
    parents_NAE = instances.parents_NAE
    assert parents_NAE is not None, "there are no parents"
    n_E, a_E, e_E = np.nonzero(parents_NAE >= 0)
    parent_E = parents_NAE[n_E, a_E, e_E]
    assert (parent_E < task.answer_len).all(), "a parent is not an answer cell"
    assert instances.maskable_NA[n_E, parent_E].all(), "a cell waits for one that is never hidden"
    assert instances.maskable_NA[n_E, a_E].all(), "a cell that is never hidden waits for another"
    for name, rank_NA in instances.orders.items():
        # Strictly earlier parents make the graph acyclic as well.
        assert (rank_NA[n_E, parent_E] < rank_NA[n_E, a_E]).all(), f"{name!r} reveals a cell before its parents"
    hidden_NA = instances.maskable_NA
    nothing_NA = revealed_NA = np.zeros_like(hidden_NA)
    for _ in range(task.answer_len):
        ready_NA = task.ready(instances, revealed_NA) & hidden_NA
        assert (ready_NA | ~revealed_NA).all(), "a revealed cell stops being ready"
        if (ready_NA == revealed_NA).all():
            break
        revealed_NA = ready_NA
    if parents_NAE.shape[2]:
        assert revealed_NA[hidden_NA].all(), "revealing the ready cells does not reach every cell"
        free_NA = (parents_NAE < 0).all(axis=2)
        first_NA = task.ready(instances, nothing_NA)
        assert (first_NA == free_NA)[hidden_NA].all(), "the cells that are ready first are not those without parents"
    assert task.ready(instances, hidden_NA)[hidden_NA].all(), "with everything revealed, some cell is not ready"


def _check_judgement(task: Task, instances: Instances) -> None:
    gold_NA = instances.answer_NA
    assert task.check(instances, gold_NA).all(), "a gold answer fails the check"
    broken_NA = gold_NA.copy()
    rng = np.random.default_rng(0)
    for i in range(len(instances)):
        written = np.arange(task.answer_len) < len(task.vocabulary.split(task.answer_text(instances, i)))
        cell = rng.choice(np.flatnonzero(instances.scored_NA[i] & written))
        broken_NA[i, cell] = (broken_NA[i, cell] + 1) % task.vocabulary.mask_id
    verdict_N = task.check(instances, broken_NA)
    # Where several answers are valid, a corrupted one may happen to be another of them.
    assert verdict_N.mean() <= 0.1, "corrupted answers pass the check"
    for i in range(len(instances)):
        assert task.fault(instances, i, gold_NA[i]) is None, "a gold answer is faulted"
        assert (task.fault(instances, i, broken_NA[i]) is None) == verdict_N[i], "check and fault disagree"
    masked_NA = np.where(instances.scored_NA, task.vocabulary.mask_id, gold_NA).astype(gold_NA.dtype)
    assert not task.check(instances, masked_NA).any(), "an answer that is all mask passes the check"


def _check_text(task: Task, instances: Instances) -> None:
    prompts = task.render(instances)
    assert same(task.parse(prompts), instances), "parsing a rendered problem does not give it back"
    assert len(prompts) == len(instances), "render gives another number of problems"
    for i, prompt in enumerate(prompts):
        assert task.fitted(prompt).answer_len == task.answer_len, "fitting to a problem of this size changes the size"
        answer_A = task.read_answer(instances, i, task.answer_text(instances, i))
        agree = (answer_A == instances.answer_NA[i]) | ~instances.scored_NA[i]
        assert agree.all(), "reading a written answer does not give it back"
    assert len(set(prompts)) > 1, "all problems are the same"


def _check_drawing(task: Task, instances: Instances) -> None:
    for i in range(len(instances)):
        one, shown = instances.take(slice(i, i + 1)), set[int]()

        def look(cell: int, shown: set[int] = shown) -> tuple[str, str]:
            shown.add(cell)
            return HIDDEN, ""

        assert HIDDEN in task.drawing(one, look).plain, "the drawing does not show the signs that it is given"
        assert set(np.flatnonzero(one.maskable_NA[0]).tolist()) <= shown, "the drawing leaves out a cell that is hidden"
        assert task.picture(instances, i).plain, "there is no picture"


def _check_roles(task: Task, instances: Instances) -> None:
    found = task.roles(instances)
    assert found.role_NA.shape == instances.maskable_NA.shape, "roles are not [n, answer_len]"
    inside_NA = (found.role_NA < len(found.names)) | (found.role_NA == NO_ROLE)
    assert inside_NA.all(), "a cell has a role without a name"
    assert task.roles(instances.bare()).role_NA.shape == instances.maskable_NA.shape, "bare instances are refused"


def _check_profile(task: Task, instances: Instances) -> None:
    """On a trace in which every other answer is wrong in its first scored cell, and on one without a failure."""
    wrong_NA = np.zeros_like(instances.scored_NA)
    wrong_NA[np.arange(0, len(instances), 2), instances.scored_NA.argmax(axis=1)[::2]] = True
    gold_NA = instances.answer_NA
    for answer_NA in (np.where(wrong_NA, (gold_NA + 1) % task.vocabulary.mask_id, gold_NA), gold_NA):
        profile, kind = task.profile(_recited(task, instances, answer_NA)), task.profile_type()
        assert (profile is None) == (kind is None), "there is a profile without its type, or a type without a profile"
        if kind is not None:
            assert type(profile) is kind, "the profile is not of its type"
            text = msgspec.json.encode(profile)
            assert msgspec.json.decode(text, type=kind) == profile, "the profile changes when it is written and read"


def _recited(task: Task, instances: Instances, answer_NA: Array) -> Trace:
    """A trace that writes the hidden cells of answers from left to right, one per step."""
    n, cells = answer_NA.shape
    cell_NT = np.argsort(~instances.maskable_NA, axis=1, kind="stable").astype(np.int16)  # hidden ones first
    step_NT = np.tile(np.arange(cells, dtype=np.int16), (n, 1))
    happened_NT = step_NT < instances.maskable_NA.sum(axis=1)[:, None]
    token_NT = np.take_along_axis(answer_NA, cell_NT.astype(np.int64), axis=1)
    prob_NT = np.full((n, cells), 0.75, dtype=np.float32)
    return Trace(
        instances,
        task.vocabulary.mask_id,
        answer_NA,
        np.where(happened_NT, cell_NT, -1).astype(np.int16),
        np.where(happened_NT, step_NT, 0).astype(np.int16),
        token_NT,
        prob_NT,
        prob_NT,
        np.zeros((n, cells), dtype=np.int32),
        np.full((n, cells), -1, dtype=np.int16),
        np.full((n, cells), np.nan, dtype=np.float32),
    )
