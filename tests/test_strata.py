"""The grammar of strata."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardtail import Streams
from hardtail.core.errors import HardtailError
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.strata import Stratum

AXES: dict[str, tuple[str, ...]] = {"chain": (), "tier": ("easy", "hard")}


@pytest.mark.parametrize("text", ["natural", "chain>=4", "chain<=4", "chain=4", "chain=4-10", "tier=hard,chain>=0.95"])
def test_written_as_read(text: str) -> None:
    assert str(Stratum.parse(text, AXES, "toy")) == text


NONSENSE = ["", "chain", "chain>4", "chain=9-4", "chain>=4-5", "depth=3", "chain>=x", "tier=easy,,", "chain>=nan"]


@pytest.mark.parametrize(
    "text", [*NONSENSE, "chain>=1_0", "chain=hard", "tier=3", "tier=brutal", "tier=easy,tier=hard"]
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(HardtailError, match="toy"):
        Stratum.parse(text, AXES, "toy")


@given(st.text())
def test_any_text_is_a_stratum_or_an_error(text: str) -> None:
    try:
        stratum = Stratum.parse(text, AXES, "toy")
    except HardtailError:
        return
    assert Stratum.parse(str(stratum), AXES, "toy") == stratum


def test_conditions_on_one_axis_are_met_together() -> None:
    between = Stratum.parse("chain>=3,chain<=5", AXES, "toy")
    assert (between.on("chain").low, between.on("chain").high) == (3, 5)


def test_holds() -> None:
    strata = {"chain": np.array([1, 4, 7]), "tier": np.array(["easy", "hard", "hard"])}
    for text, expected in [("chain=4-7", [0, 1, 1]), ("tier=hard,chain>=5", [0, 0, 1]), ("natural", [1, 1, 1])]:
        assert Stratum.parse(text, AXES, "toy").holds(strata).tolist() == [bool(item) for item in expected]


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_disjoint_means_no_value_in_common(a: int, b: int, c: int, d: int) -> None:
    one = Stratum.parse(f"chain={min(a, b)}-{max(a, b)}", AXES, "toy")
    other = Stratum.parse(f"chain={min(c, d)}-{max(c, d)}", AXES, "toy")
    values = {"chain": np.arange(10)}
    assert one.disjoint(other) == (not (one.holds(values) & other.holds(values)).any())


@pytest.mark.parametrize(("text", "attempts"), [("natural", 1), ("chain<=0", 3)])
def test_what_the_last_attempt_finds_counts(text: str, attempts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any sum is natural; of these three, one without a chain comes up at the third attempt only."""
    task, rng = Addition(digits=8), Streams(0).named("attempts")
    usual = task.sample(3, rng, text)
    monkeypatch.setattr(Addition, "max_attempts", attempts)
    np.testing.assert_array_equal(task.sample(3, rng, text).tokens_NL, usual.tokens_NL)
    monkeypatch.setattr(Addition, "max_attempts", attempts - 1)
    if attempts > 1:
        with pytest.raises(HardtailError, match=f"in {attempts - 1} attempts"):
            task.sample(3, rng, text)
