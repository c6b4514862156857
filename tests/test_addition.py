"""Addition against schoolbook arithmetic, and the study's figures."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.types import Instances
from hardtail.tasks.addition.solver import ROLES

WIDTH = st.integers(1, 64)


def schoolbook(a: str, b: str) -> tuple[str, list[int], str]:
    """Sum, carry into every position (least significant first) and g/k/p string, digit by digit."""
    carry, carries, digits, kinds = 0, [0], [], []
    for x, y in zip(reversed(a), reversed(b), strict=True):
        total = int(x) + int(y)
        kinds.append("p" if total == 9 else "g" if total > 9 else "k")
        digits.append((total + carry) % 10)
        carry = (total + carry) // 10
        carries.append(carry)
    return "".join(map(str, [carry, *reversed(digits)])), carries, "".join(kinds)


@given(st.data())
@settings(deadline=None)
def test_against_schoolbook(data: st.DataObject) -> None:
    width = data.draw(WIDTH)
    digits = st.text("0123456789", min_size=width, max_size=width)
    # Half the pairs are full of propagating positions, which uniform pairs hardly have.
    a = data.draw(digits)
    nines = "".join(str(9 - int(digit)) for digit in a)
    b = data.draw(st.one_of(digits, st.just(nines), digits.map(lambda text: text[: width // 2] + nines[width // 2 :])))
    task = hardtail.task("addition", digits=width)
    instances = task.parse([f"{a}+{b}"])
    total, carries, kinds = schoolbook(a, b)

    assert task.answer_text(instances, 0) == total == str(int(a) + int(b)).zfill(width + 1)
    assert instances.extras["carry_in_NA"][0, ::-1].tolist() == [bool(carry) for carry in carries]
    roles = [ROLES[role] for role in instances.extras["role_NA"][0, ::-1]]
    assert roles[-1] == "carry_out"
    for place, (role, kind) in enumerate(zip(roles[:-1], kinds, strict=True)):
        refined = "p_bottom" if place == 0 else f"p_above_{kinds[place - 1]}"
        assert role == (refined if kind == "p" else kind)

    runs = [len(run) for run in kinds.replace("g", "k").split("k")]
    assert instances.strata["chain"][0] == max(runs)
    msb = int(instances.extras["chain_msb_N"][0])
    modulo = hardtail.task("addition", "paper", digits=width).parse([f"{a}+{b}"])
    assert modulo.extras["chain_msb_N"][0] == (msb or -1)  # there the carry-out cell waits for nothing
    if max(runs):
        top = kinds.index("p" * max(runs)) + max(runs) - 1
        assert msb == width - (top + 1)
    else:
        assert msb == -1
    assert instances.parents_NAE is not None
    for place in range(width + 1):
        waits = place > 0 and kinds[place - 1] == "p"
        assert instances.parents_NAE[0, width - place, 0] == (width - place + 1 if waits else -1)


@pytest.mark.parametrize("digits", [3, 4, 8, 12, 28, 32])
def test_a_carry_can_pass_through_the_hard_sums_of_a_first_look(digits: int) -> None:
    """A chain as long as the sum gets no carry: its digits are all 9, and a model that forgets carries is right."""
    task = hardtail.task("addition", digits=digits)
    sums = task.sample(60, task.gallery()[1], seed=0)
    passed_N = np.take_along_axis(sums.extras["carry_in_NA"], sums.extras["chain_msb_N"][:, None], axis=1)
    assert 0 < passed_N.sum() < len(sums)


def test_paper_reading() -> None:
    task = hardtail.task("addition", "paper", digits=4)
    instances = task.parse(["9999+0001"])
    assert task.answer_text(instances, 0) == "00000"  # the sum modulo 10^4
    assert hardtail.task("addition", digits=4).parse(["9999+0001"]).tokens_NL[0, -5] == 1


@pytest.mark.parametrize("k", [1, 4, 12, 28, 32])
def test_planted_chains(k: int) -> None:
    """docs/study.md §2: the chain is k almost exactly, and hardly any other position propagates."""
    instances = hardtail.task("addition").sample(2000, Streams(0).named("planted"), f"chain>={k}")
    chain = instances.strata["chain"]
    assert chain.min() >= k
    assert (chain == k).mean() > 0.97
    propagating = np.char.startswith(np.array(ROLES)[instances.extras["role_NA"]], "p").sum(axis=1)
    assert propagating.mean() < k + 0.05
    assert (instances.tokens_NL[:, [0, 33]] > 0).all()  # operands keep their leading digit


def test_planted_places_at_28() -> None:
    """docs/study.md §2: for k = 28 the chain touches the top digit in about a fifth of the sums, and the bottom too."""
    instances = hardtail.task("addition").sample(4000, Streams(0).named("places"), "chain>=28")
    msb = instances.extras["chain_msb_N"]
    assert (msb == 0).mean() == pytest.approx(1 / 5, abs=0.03)
    assert (msb + 28 == 32).mean() == pytest.approx(1 / 5, abs=0.03)
    top_N = instances.tokens_NL[msb == 0, 0]  # of the first number: uniform on 1 … 4, where a chain reaches up to it
    assert np.bincount(top_N, minlength=10)[:6] / len(top_N) == pytest.approx([0, *[0.25] * 4, 0], abs=0.06)


def test_minimum_planting_leaves_the_rest_free() -> None:
    instances = hardtail.task("addition", "paper").sample(2000, Streams(0).named("minimum"), "chain>=4")
    assert instances.strata["chain"].min() >= 4
    assert (instances.strata["chain"] > 4).mean() > 0.1


def test_natural_chains_are_short() -> None:
    """docs/study.md §2: of 20,000 natural pairs about 71 % have a longest chain of 1, and none goes above 6 or 7."""
    chain = hardtail.task("addition").sample(20_000, Streams(42).named("addition/train")).strata["chain"]
    share = np.bincount(chain, minlength=8) / chain.size
    assert share[:5] == pytest.approx([0.0345, 0.714, 0.2247, 0.0238, 0.0027], abs=0.01)
    assert chain.max() <= 7


def test_operand_laws() -> None:
    full, any_size = (
        hardtail.task("addition", operands=law).sample(4000, Streams(0).named("law")) for law in ("full", "any")
    )
    assert (full.tokens_NL[:, [0, 33]] > 0).all()
    assert (any_size.tokens_NL[:, 0] == 0).mean() == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("preset", ["release", "paper"])
def test_ranges_of_chains_are_evenly_filled(preset: str) -> None:
    task = hardtail.task("addition", preset)
    chain = task.sample(2000, Streams(0).named("range"), "chain=20-29").strata["chain"]
    share = np.bincount(chain, minlength=33)[20:] / chain.size
    assert share == pytest.approx([0.1] * 10 + [0, 0, 0], abs=0.04)
    assert task.sample(20, Streams(0).named("range"), "chain=30-99").strata["chain"].max() <= 32
    assert task.sample(200, Streams(0).named("range"), "chain<=2").strata["chain"].max() == 2


@pytest.mark.parametrize(
    "prompt", ["", "47", "47+", "4a+3", "47-38", "1+2+3", "-1+2", "٣+4", "1" * 65 + "+1", "1 2+3", "1+2 3", "1+2=3"]
)
def test_bad_sums(prompt: str) -> None:
    task = hardtail.task("addition")
    with pytest.raises(HardtailError, match="addition"):
        task.fitted(prompt).parse([prompt])


def test_sums_are_read_however_they_are_spaced() -> None:
    task = hardtail.task("addition").fitted("47+8")
    assert task.digits == 2  # type: ignore[attr-defined]
    assert task.render(task.parse(["47+8", " 47 + 8 = ", "47\t+ 8="])) == ["47+08"] * 3
    assert len(task.parse([])) == 0


@settings(deadline=None, max_examples=200)
@given(st.one_of(st.text(max_size=20), st.text("0123456789+= ", max_size=20)))
def test_nothing_that_is_typed_breaks_the_parser(prompt: str) -> None:
    task = hardtail.task("addition").fitted(prompt)
    with contextlib.suppress(HardtailError):
        instances = task.parse([prompt])
        assert int(task.answer_text(instances, 0)) == sum(map(int, prompt.replace("=", "").split("+")))
    with contextlib.suppress(HardtailError):
        task.read_answer(task.parse(["1+1"]), 0, prompt)


@pytest.mark.parametrize("preset", ["release", "paper"])
def test_bare_instances_are_judged_and_drawn_as_full_ones(preset: str) -> None:
    task = hardtail.task("addition", preset)
    full = task.sample(3, Streams(0).named("bare"), "chain>=12")
    bare = full.bare()
    wrong_NA = (full.answer_NA + 1) % 10
    for i in range(3):
        assert task.fault(bare, i, full.answer_NA[i]) is None
        assert task.fault(bare, i, wrong_NA[i]) == task.fault(full, i, wrong_NA[i]) is not None
        assert task.picture(bare, i, wrong_NA[i]) == task.picture(full, i, wrong_NA[i])
    role = ROLES[full.extras["role_NA"][0, -1]]
    assert f"carry in 0, role {role}" in str(task.fault(bare, 0, wrong_NA[0]))


@pytest.mark.parametrize("digits", [0, 65])
def test_bad_digits(digits: int) -> None:
    with pytest.raises(HardtailError, match="at least 1 and at most 64"):
        hardtail.task("addition", digits=digits)


@pytest.mark.parametrize(
    ("stratum", "sentence"),
    [("chain>=9", "chain>=9 does not fit"), ("chain=9-12", "does not fit"), ("chain=2.2-2.8", "no chain meets")],
)
def test_chains_that_cannot_be(stratum: str, sentence: str) -> None:
    with pytest.raises(HardtailError, match=sentence):
        hardtail.task("addition", digits=8).sample(1, Streams(0).named("x"), stratum)


def test_ready_follows_the_carry() -> None:
    task = hardtail.task("addition", digits=3)
    instances: Instances = task.parse(["199+801"])  # roles, top down: p? 1+8=9, 9+0=9, 9+1=10
    revealed = np.zeros((1, 4), dtype=np.bool_)
    assert task.ready(instances, revealed)[0].tolist() == [False, False, True, True]
    revealed[0, 2] = True
    assert task.ready(instances, revealed)[0].tolist() == [False, True, True, True]
