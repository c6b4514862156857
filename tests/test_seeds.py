"""Streams: what a user loses when two runs that should differ share data, or two that should agree do not."""

import numpy as np
import pytest

from hardtail.core.seeds import Stream, Streams, below, words
from hardtail.tasks import rng


def test_frozen_keys() -> None:
    """The same name gives the same bytes on any machine, today and in a year."""
    assert Streams(42).named("addition/train").keys(3).tolist() == FROZEN


FROZEN = [9924183135919802192, 7986505784887686500, 14171194870009166544]


def test_neighbouring_seeds_and_names_share_nothing() -> None:
    keys = [Stream(name, seed).keys(1000) for name in ("a", "b", "a/b") for seed in (41, 42, 43)]
    assert np.unique(np.concatenate(keys)).size == 9 * 1000


def test_skip_and_child() -> None:
    stream = Streams(3).named("x")
    np.testing.assert_array_equal(stream.keys(10)[4:], stream.skip(4).keys(6))
    np.testing.assert_array_equal(stream.skip(4).skip(2).keys(2), stream.keys(8)[6:])
    assert not np.intersect1d(stream.child("y").keys(100), stream.keys(100)).size


def test_compiled_words_are_the_vectorised_ones() -> None:
    keys = Streams(0).named("words").keys(5)
    expected = words(keys, 7)
    for key, row in zip(keys, expected, strict=True):
        state = np.array([key])
        assert [int(rng.next_word(state)) for _ in range(7)] == row.tolist()


@pytest.mark.parametrize("bound", [2, 9, 10, 97])
def test_below_is_uniform_and_in_range(bound: int) -> None:
    draws = below(words(Streams(1).named("uniform").keys(2000), 50), bound)
    counts = np.bincount(draws.ravel(), minlength=bound)
    assert draws.min() >= 0
    assert counts.size == bound
    expected = draws.size / bound
    assert (((counts - expected) ** 2 / expected).sum() - bound) / np.sqrt(2 * bound) < 5  # chi-square, 5 sigma
