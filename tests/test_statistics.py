"""Intervals and tests against tabled values and brute force."""

from itertools import product

import numpy as np
import pytest

from hardtail.measuring.statistics import auroc, mcnemar, t_interval, wilson


def test_wilson_against_published_values() -> None:
    """Newcombe (1998), table I: 81/263, 15/148, 0/20, 1/29."""
    for right, n, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611)):
        assert wilson(right, n) == pytest.approx((low, high), abs=5e-5)
    assert wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)


def test_wilson_is_honest_at_the_ends() -> None:
    low, high = wilson(500, 500)
    assert low == pytest.approx(0.99238, abs=1e-5)
    assert high == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


def flags(*counts: int) -> tuple[np.ndarray, np.ndarray]:
    """Both right, only the first, only the second, neither."""
    first = np.repeat([True, True, False, False], counts)
    second = np.repeat([True, False, True, False], counts)
    return first, second


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 0), (1, 0), (5, 1), (3, 3), (0, 10), (2, 9)])
def test_mcnemar_is_the_sign_test_on_discordant_pairs(only_first: int, only_second: int) -> None:
    found = mcnemar(*flags(4, only_first, only_second, 3))
    n = only_first + only_second
    extreme = [abs(2 * sum(toss) - n) >= abs(only_first - only_second) for toss in product((0, 1), repeat=n)]
    assert (found.only_first, found.only_second) == (only_first, only_second)
    assert found.p == pytest.approx(sum(extreme) / len(extreme))


def test_mcnemar_of_thousands_of_pairs() -> None:
    assert mcnemar(*flags(0, 700, 700, 0)).p == 1
    shifted = mcnemar(*flags(0, 1100, 1000, 0)).p  # the normal approximation with continuity correction gives 0.0308
    assert shifted == pytest.approx(0.0308, abs=2e-3)
    assert mcnemar(*flags(0, 3000, 0, 0)).p < 1e-300


def test_t_interval() -> None:
    assert t_interval([0.5]) is None
    found = t_interval([1.0, 2.0, 3.0])
    assert found is not None
    assert found == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5))


def test_an_area_of_one_ends_at_one() -> None:
    """Rounding alone would put the upper end of some intervals above it."""
    for n in range(1, 300):
        apart = np.arange(2 * n) >= n
        assert (auroc(apart.astype(float), apart).high or 0) <= 1.0, n
