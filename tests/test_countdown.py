"""Countdown: search, multiplicities, parents and validity against a slow search that walks over Python lists."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardtail
from hardtail import HardtailError, Instances, Streams
from hardtail.tasks.countdown.solver import KINDS, OPERATIONS, solve
from hardtail.tasks.countdown.task import HELD_OUT

PUZZLE = "86,28,13,31,96"
GOLD = "86+28=114,31-13=18,114-18=96"

Number = tuple[int, int]
"""A value and where it comes from: -1 for a given number, else the step whose result it is."""
Step = tuple[Number, str, Number, int]


def search(numbers: Sequence[Number], target: int, steps: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Every hit in the order of Stream of Search, by recursion over lists."""
    if len(numbers) == 1:
        if numbers[0][0] == target:
            yield steps
        return
    for i, a in enumerate(numbers):
        for j in range(i + 1, len(numbers)):
            b = numbers[j]
            rest = [number for place, number in enumerate(numbers) if place not in (i, j)]
            high, low = (a, b) if a[0] >= b[0] else (b, a)
            options = [(a, "+", b, a[0] + b[0]), (a, "*", b, a[0] * b[0]), (high, "-", low, high[0] - low[0])]
            if low[0] and high[0] % low[0] == 0:
                options.append((high, "/", low, high[0] // low[0]))
            for step in options:
                yield from search([*rest, (step[3], len(steps))], target, (*steps, step))


def all_hits(numbers: Sequence[int], target: int) -> list[tuple[Step, ...]]:
    return list(search([(value, -1) for value in numbers], target))


def canonical(steps: Sequence[Step]) -> tuple[tuple[str, int, int], ...]:
    return tuple(sorted((sign, min(left[0], right[0]), max(left[0], right[0])) for left, sign, right, _ in steps))


def text(steps: Sequence[Step]) -> str:
    return ",".join(f"{left[0]}{sign}{right[0]}={result}" for left, sign, right, result in steps)


def code(steps: Sequence[Step]) -> list[tuple[int, int, int, int]]:
    return [(left[0], OPERATIONS.index(sign), right[0], result) for left, sign, right, result in steps]


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 5).flatmap(lambda k: st.lists(st.integers(1, 12), min_size=k, max_size=k)), st.integers(0, 30))
def test_search_finds_what_a_recursive_search_finds(numbers: list[int], target: int) -> None:
    gold_NS4, m_N, distinct_N = solve(np.array([numbers]), np.array([target]))
    hits = all_hits(numbers, target)
    assert m_N[0] == len(hits)
    assert distinct_N[0] == len({canonical(steps) for steps in hits})
    if hits:
        assert [tuple(step) for step in gold_NS4[0].tolist()] == code(hits[0])


def test_sampled_puzzles_have_the_gold_and_multiplicities_of_a_recursive_search() -> None:
    task = hardtail.task("countdown")
    instances = task.sample(150, Streams(1).named("search"))
    for i, prompt in enumerate(task.render(instances)):
        *numbers, target = map(int, prompt.split(","))
        assert all(1 <= number <= 99 for number in numbers)
        assert 10 <= target <= 100
        hits = all_hits(numbers, target)
        assert task.answer_text(instances, i) == text(hits[0])
        assert instances.strata["m"][i] == instances.strata["m_raw"][i] == len(hits)
        assert instances.strata["m_distinct"][i] == len({canonical(steps) for steps in hits})


@pytest.mark.parametrize(
    ("numbers", "target", "m", "distinct"),
    [
        ([11, 23, 47, 96], 177, 18, 15),  # only the sum: 12 orders one by one, 3 pairings that come in two step orders
        ([4, 4, 3], 3, 10, 7),  # 4+3=7,7-4=3 and two others exist with either 4
        ([7, 1], 7, 2, 2),  # 7*1 and 7/1
        ([1, 1], 5, 0, 0),
    ],
)
def test_multiplicities_worked_by_hand(numbers: list[int], target: int, m: int, distinct: int) -> None:
    _, m_N, distinct_N = solve(np.array([numbers]), np.array([target]))
    assert (m_N[0], distinct_N[0]) == (m, distinct)


def expected_cells(steps: Sequence[Step]) -> tuple[list[str], list[int], list[set[int]]]:
    """Kind, step and parents of every cell of a chain and its end mark, character by character."""
    kinds: list[str] = []
    step_of: list[int] = []
    parents: list[set[int]] = []
    results: list[set[int]] = []

    def write(word: str, kind: str, step: int, waits_for: set[int]) -> set[int]:
        cells = set(range(len(kinds), len(kinds) + len(word)))
        for _ in word:
            kinds.append(kind)
            step_of.append(step)
            parents.append(waits_for)
        return cells

    for step, (left, sign, right, result) in enumerate(steps):
        side = write(str(left[0]), "operand", step, results[left[1]] if left[1] >= 0 else set())
        side |= write(sign, "operator", step, set())
        side |= write(str(right[0]), "operand", step, results[right[1]] if right[1] >= 0 else set())
        write("=", "equals", step, {max(side)})
        results.append(write(str(result), "result", step, side))
        if step < len(steps) - 1:
            write(",", "comma", step, {max(results[-1])})
    write("$", "eos", -1, {max(results[-1])})
    return kinds, step_of, parents


def assert_cells(instances: Instances, i: int, steps: Sequence[Step]) -> None:
    kinds, step_of, parents = expected_cells(steps)
    padding = instances.answer_len - len(kinds)
    end = len(kinds) - 1
    assert instances.parents_NAE is not None
    assert [KINDS[kind] for kind in instances.extras["kind_NA"][i]] == kinds + ["padding"] * padding
    assert instances.extras["step_NA"][i].tolist() == step_of + [-1] * padding
    got = [set(row[row >= 0].tolist()) for row in instances.parents_NAE[i]]
    assert got == parents + [{end}] * padding


def test_cells_wait_for_what_the_search_took_them_from() -> None:
    task = hardtail.task("countdown")
    instances = task.sample(100, Streams(1).named("parents"))
    # 30 is a given number and the result of the first step; the search takes the given one first.
    twice = task.parse(["10,20,30,41,101", "5,5,5,20,25", "2,2,4,96,100"])
    both = Instances.concat([instances, twice])
    for i, prompt in enumerate(task.render(both)):
        *numbers, target = map(int, prompt.split(","))
        assert_cells(both, i, all_hits(numbers, target)[0])


def test_layout_of_the_two_readings() -> None:
    release, paper = hardtail.task("countdown"), hardtail.task("countdown", "paper")
    row = release.vocabulary.decode(release.parse([PUZZLE]).tokens_NL[0])
    assert row == f"{PUZZLE}|{GOLD}$abcdefghijk#####"
    assert paper.vocabulary.decode(paper.parse([PUZZLE]).tokens_NL[0]) == row.replace("|", "=")
    assert (release.vocabulary.size, paper.vocabulary.size) == (36, 35)
    assert release.parse([PUZZLE]).strata["m"] == 18
    assert paper.parse([PUZZLE]).strata["m"] == 15


def test_natural_multiplicity_shares() -> None:
    m_N = hardtail.task("countdown").sample(6000, Streams(1).named("shares")).strata["m"]
    share = [(m_N <= 3).mean(), ((m_N >= 4) & (m_N <= 10)).mean(), (m_N >= 11).mean()]
    np.testing.assert_allclose(share, [0.48, 0.16, 0.36], atol=0.03)


def test_strata_aim_at_targets() -> None:
    task = hardtail.task("countdown")
    rng = Streams(1).named("targets")
    held = task.sample(200, rng, "heldout=1")
    assert set(held.strata["target"].tolist()) == set(HELD_OUT)
    free = task.sample(200, rng, "heldout=0,m=1-3")
    assert not set(free.strata["target"].tolist()) & set(HELD_OUT)
    assert (free.strata["m"] <= 3).all()
    assert (task.sample(20, rng, "target=24").strata["target"] == 24).all()
    with pytest.raises(HardtailError, match="no target fits heldout=1,target=24; targets are 10 to 100"):
        task.sample(1, rng, "heldout=1,target=24")


def test_training_sets_have_the_sizes_of_the_study() -> None:
    release, paper = (hardtail.task("countdown", preset).splits()["train"] for preset in ("release", "paper"))
    low = next(part.n for part in release if "m=1-3" in part.stratum)
    assert low / sum(part.n for part in release) == pytest.approx(0.087, abs=0.006)
    assert sum(part.n for part in paper) == pytest.approx(400_000, rel=0.01)


# -- validity -------------------------------------------------------------------------------------------------------


def valid_texts(numbers: Sequence[int], target: int) -> set[str]:
    """All ways to write all chains: operands of + and * in either order."""
    found = set()
    for steps in all_hits(numbers, target):
        for swaps in itertools.product((False, True), repeat=len(steps)):
            turned = [
                (right, sign, left, result) if swap and sign in "+*" else (left, sign, right, result)
                for swap, (left, sign, right, result) in zip(swaps, steps, strict=True)
            ]
            found.add(text(turned))
    return found


def test_every_chain_is_valid_in_every_way_to_write_it() -> None:
    task = hardtail.task("countdown")
    for prompt in (PUZZLE, "4,4,3,1,12"):
        *numbers, target = map(int, prompt.split(","))
        chains = sorted(valid_texts(numbers, target))
        instances = task.parse([prompt] * len(chains))
        answer_NA = np.array([task.read_answer(instances, i, chain) for i, chain in enumerate(chains)])
        assert task.check(instances, answer_NA).all()
        exact_N = (answer_NA == instances.answer_NA).all(axis=1)
        assert exact_N.sum() == 1


@settings(deadline=None, max_examples=200)
@given(st.integers(0, len(GOLD) - 1), st.sampled_from("0123456789+-*/=,$"), st.integers(0, 1), st.integers(0, 2))
def test_altered_chains_are_valid_only_if_they_are_chains(cell: int, sign: str, insert: int, drop: int) -> None:
    task = hardtail.task("countdown")
    instances = task.parse([PUZZLE])
    chain = GOLD[:cell] + sign * insert + GOLD[cell + drop :]
    answer_A = task.read_answer(instances, 0, chain)
    accepted = chain.partition("$")[0] in valid_texts([86, 28, 13, 31], 96)
    assert task.check(instances, answer_A[None])[0] == accepted
    assert (task.fault(instances, 0, answer_A) is None) == accepted


@pytest.mark.parametrize(
    ("chain", "fault"),
    [
        ("86+28=114,31-13=17,114-17=97", "equation 2: 31-13 is 18, not 17"),
        ("86+28=114,31-13=18,114-31=83", "equation 3: there is no 31 left"),
        ("86+28=114,114-31=83,114-83=31", "equation 3: there is no 114 left"),
        ("28-86=-58,31-13=18", "equation 1: 28-86 is negative; take the smaller number from the larger"),
        ("86+28=114,31-13=18,114+18=132", "ends in 132, not in the target 96"),
        ("86+13=99,99-31=68", "the 28 is not used"),
        ("86+27=113", "equation 1: there is no number 27"),
        ("13-31=18", "equation 1: 13-31 is negative; take the smaller number from the larger"),
        ("86/28=3", "equation 1: 86/28 is not a whole number"),
        ("86+28=0114", "equation 1: '86+28=0114' is not an equation such as '86+28=114'"),
        ("86+28=114,,", "equation 2: '' is not an equation such as '86+28=114'"),
    ],
)
def test_faults_say_what_is_wrong(chain: str, fault: str) -> None:
    task = hardtail.task("countdown")
    instances = task.parse([PUZZLE])
    assert task.fault(instances, 0, task.read_answer(instances, 0, chain)) == fault


def test_division_by_zero_is_a_fault() -> None:
    task = hardtail.task("countdown")
    instances = task.parse(["9,9,7,5,12"])
    answer_A = task.read_answer(instances, 0, "9-9=0,7/0=0,5+0=5")
    assert task.fault(instances, 0, answer_A) == "equation 2: 7/0 divides by zero"


def test_picture_marks_what_differs_unless_the_chain_is_valid() -> None:
    task = hardtail.task("countdown")
    instances = task.parse([PUZZLE])

    def red(chain: str) -> int:
        picture = task.picture(instances, 0, task.read_answer(instances, 0, chain))
        return sum("red" in str(span.style) for span in picture.spans)

    assert red(GOLD) == red("28+86=114,31-13=18,114-18=96") == 0
    assert red("86+28=114,31-13=18,114-18=95") == 1


def test_training_keeps_a_tenth_of_the_hard_puzzles_and_all_others() -> None:
    task = hardtail.task("countdown")
    instances = task.sample(4000, Streams(1).named("raw"))
    seen = instances.strata["heldout"] == 0
    kept = task.curate(instances, "train", Streams(1).named("curate"))
    low, high = seen & (instances.strata["m"] <= 3), seen & (instances.strata["m"] > 3)
    assert (kept.strata["heldout"] == 0).all()
    assert (kept.strata["m"] > 3).sum() == high.sum()
    assert (kept.strata["m"] <= 3).sum() / low.sum() == pytest.approx(0.1, abs=0.03)
    again = task.curate(instances, "train", Streams(1).named("curate"))
    assert np.array_equal(kept.tokens_NL, again.tokens_NL)
    test = task.curate(instances, "test", Streams(1).named("curate"))
    assert (test.strata["heldout"] == 1).all()
    assert len(test) == (instances.strata["heldout"] == 1).sum()
