"""Addition against schoolbook arithmetic, and the study's figures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardtail
from hardtail import HardtailError, Streams
from hardtail.solvers.addition import ROLES
from hardtail.types import Instances

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
    if max(runs):
        top = kinds.index("p" * max(runs)) + max(runs) - 1
        assert msb == width - (top + 1)
    else:
        assert msb == -1
    assert instances.parents_NAE is not None
    for place in range(width + 1):
        waits = place > 0 and kinds[place - 1] == "p"
        assert instances.parents_NAE[0, width - place, 0] == (width - place + 1 if waits else -1)


def test_paper_reading() -> None:
    task = hardtail.task("addition", "paper", digits=4)
    instances = task.parse(["9999+0001"])
    assert task.answer_text(instances, 0) == "00000"  # the sum modulo 10^4
    assert hardtail.task("addition", digits=4).parse(["9999+0001"]).tokens_NL[0, -5] == 1


@pytest.mark.parametrize("k", [1, 4, 12, 28, 32])
def test_planted_chains(k: int) -> None:
    """Study §2: the chain is k almost exactly, and hardly any other position propagates."""
    instances = hardtail.task("addition").sample(2000, Streams(0).named("planted"), f"chain>={k}")
    chain = instances.strata["chain"]
    assert chain.min() >= k
    assert (chain == k).mean() > 0.97
    propagating = np.char.startswith(np.array(ROLES)[instances.extras["role_NA"]], "p").sum(axis=1)
    assert propagating.mean() < k + 0.05
    assert (instances.tokens_NL[:, [0, 33]] > 0).all()  # operands keep their leading digit


def test_planted_places_at_28() -> None:
    """Study §2: for k = 28 the chain touches the top digit in about a fifth of the instances, and the bottom too."""
    instances = hardtail.task("addition").sample(4000, Streams(0).named("places"), "chain>=28")
    msb = instances.extras["chain_msb_N"]
    assert (msb == 0).mean() == pytest.approx(1 / 5, abs=0.03)
    assert (msb + 28 == 32).mean() == pytest.approx(1 / 5, abs=0.03)


def test_minimum_planting_leaves_the_rest_free() -> None:
    instances = hardtail.task("addition", "paper").sample(2000, Streams(0).named("minimum"), "chain>=4")
    assert instances.strata["chain"].min() >= 4
    assert (instances.strata["chain"] > 4).mean() > 0.1


def test_natural_chains_are_short() -> None:
    """Study §2: of 20,000 natural pairs about 71 % have a longest chain of 1, and none goes above 6 or 7."""
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


@pytest.mark.parametrize("prompt", ["", "47", "47+", "4a+3", "47-38", "1+2+3", "-1+2", "٣+4", "1" * 65 + "+1"])
def test_bad_sums(prompt: str) -> None:
    task = hardtail.task("addition")
    with pytest.raises(HardtailError, match="addition"):
        task.fitted(prompt).parse([prompt])


@pytest.mark.parametrize("digits", [0, 65])
def test_bad_digits(digits: int) -> None:
    with pytest.raises(HardtailError, match="1 to 64"):
        hardtail.task("addition", digits=digits)


def test_chain_beyond_the_digits() -> None:
    with pytest.raises(HardtailError, match="chain>=9 does not fit"):
        hardtail.task("addition", digits=8).sample(1, Streams(0).named("x"), "chain>=9")


def test_ready_follows_the_carry() -> None:
    task = hardtail.task("addition", digits=3)
    instances: Instances = task.parse(["199+801"])  # roles, top down: p? 1+8=9, 9+0=9, 9+1=10
    revealed = np.zeros((1, 4), dtype=np.bool_)
    assert task.ready(instances, revealed)[0].tolist() == [False, False, True, True]
    revealed[0, 2] = True
    assert task.ready(instances, revealed)[0].tolist() == [False, True, True, True]
