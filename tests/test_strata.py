"""The grammar of strata."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardtail.errors import HardtailError
from hardtail.tasks.strata import Stratum

AXES = ("chain", "tier")


@pytest.mark.parametrize("text", ["natural", "chain>=4", "chain<=4", "chain=4", "chain=4-10", "tier=hard,chain>=0.95"])
def test_written_as_read(text: str) -> None:
    assert str(Stratum.parse(text, AXES, "toy")) == text


@pytest.mark.parametrize("text", ["", "chain", "chain>4", "chain=9-4", "chain>=4-5", "depth=3", "chain>=x", "tier=a,,"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(HardtailError, match="natural"):
        Stratum.parse(text, AXES, "toy")


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
