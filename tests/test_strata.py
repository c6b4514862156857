"""The grammar of strata, and how long a task looks for instances of one."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hardtail import Instances, Streams
from hardtail.core.errors import HardtailError
from hardtail.tasks import base
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.strata import Stratum

AXES: dict[str, tuple[str, ...]] = {"chain": (), "tier": ("easy", "hard")}


@pytest.mark.parametrize("text", ["natural", "chain>=4", "chain<=4", "chain=4", "chain=4-10", "tier=hard,chain>=0.95"])
def test_written_as_read(text: str) -> None:
    assert str(Stratum.parse(text, AXES, "toy")) == text


@given(st.integers(0, 999_999_999), st.integers(0, 999_999), st.sampled_from(["chain>={}", "chain<={}", "chain=0-{}"]))
def test_numbers_are_written_with_all_their_digits(whole: int, millionths: int, form: str) -> None:
    """A stratum's name finds its records, so that another number must be another name."""
    text = form.format(f"{whole}.{millionths:06d}".rstrip("0").removesuffix("."))
    assert str(Stratum.parse(text, AXES, "toy")) in (text, "chain=0")


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


class Choosy(Addition):
    """One draw in four has a chain of nine; gives up after five seconds without any."""

    patience = 5.0
    min_attempts = 1

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        made = super().propose(key_N, self.stratum("natural"))
        return replace(
            made, strata={**made.strata, "chain": np.where(key_N % np.uint64(4) == 0, 9, 0).astype(np.int16)}
        )


class Labelled(Addition):
    """One draw in four has a label that is longer than that of the others."""

    axes: ClassVar[tuple[str, ...]] = ("chain", "size")
    labels: ClassVar[Mapping[str, tuple[str, ...]]] = {"size": ("small", "enormous")}

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        made = super().propose(key_N, self.stratum("natural"))
        size = ["enormous" if key % 4 == 0 else "small" for key in key_N.tolist()]
        return replace(made, strata={**made.strata, "size": np.array(size)})


def test_a_label_that_only_a_later_attempt_finds_is_whole() -> None:
    drawn = [Labelled(digits=4).sample(1, "size=enormous", seed=seed).strata["size"].item() for seed in range(8)]
    assert drawn == ["enormous"] * 8


def test_drawing_goes_on_while_some_of_what_is_asked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes a second here; all together take longer than the patience."""
    ticks = count()
    monkeypatch.setattr(base, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
    found = Choosy(digits=12).sample(64, "chain>=9", seed=1)
    assert (found.strata["chain"] == 9).all()
    assert next(ticks) > 2 * Choosy.patience


def test_a_slow_machine_gets_its_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes a minute here: long after any patience, but the third attempt finds the sums."""
    usual = Addition(digits=8).sample(3, Streams(0).named("attempts"), "chain<=0")
    minutes = count(0, 60)
    monkeypatch.setattr(base, "time", SimpleNamespace(monotonic=lambda: float(next(minutes))))
    found = Addition(digits=8).sample(3, Streams(0).named("attempts"), "chain<=0")
    np.testing.assert_array_equal(found.tokens_NL, usual.tokens_NL)
    with pytest.raises(HardtailError, match=f"in {Addition.min_attempts} attempts"):
        Impossible(digits=8).sample(1, "chain>=9", seed=1)


class Impossible(Addition):
    """Every draw is of another stratum."""

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        return super().propose(key_N, self.stratum("chain<=0"))
