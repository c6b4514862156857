"""Random numbers that are a function of seed, step and name."""

import numpy as np
import pytest
import torch

from hardtail.core.noise import Moment, mix, shuffled, signed, stream
from hardtail.core.seeds import words
from hardtail.policies.base import State

A, B = stream("a"), stream("b")


def at(step: int, seed: int = 3) -> Moment:
    return Moment(seed, torch.tensor(step), 100)


def test_mix_is_splitmix64() -> None:
    """The same function as `seeds.words`, which counts in multiples of its constant."""
    keys = np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)
    steps = keys + np.uint64(0x9E3779B97F4A7C15)
    ours = mix(torch.from_numpy(steps.view(np.int64))).numpy().view(np.uint64)
    np.testing.assert_array_equal(ours, words(keys, 1)[:, 0])


def test_a_function_of_seed_step_and_stream() -> None:
    drawn = [at(5).words(A, 50), at(6).words(A, 50), at(5, seed=4).words(A, 50), at(5).words(B, 50)]
    assert torch.equal(drawn[0], at(5).words(A, 50))
    assert len(set(torch.cat(drawn).tolist())) == 200


def test_uniform() -> None:
    draw = torch.cat([at(step).uniform(A, 100, 50).flatten() for step in range(20)])
    assert 0 < draw.min() < draw.max() < 1
    counts = torch.histc(draw, bins=20, min=0, max=1)
    expected = draw.numel() / 20
    assert float(((counts - expected) ** 2 / expected).sum()) < 50  # chi-square with 19 degrees of freedom


@pytest.mark.parametrize("count", [1, 2, 3, 7, 1000, 20_011])
def test_shuffled_is_a_permutation(count: int) -> None:
    order = shuffled(torch.arange(count), count, torch.tensor([12345]))
    assert torch.equal(order.sort().values, torch.arange(count))


def test_shuffled_spreads_and_differs_by_key() -> None:
    orders = torch.stack([shuffled(torch.arange(1000), 1000, torch.tensor([key])) for key in range(200)]).float()
    assert orders.mean(dim=0).std() < 1000 / (12 * 200) ** 0.5 * 1.2  # every place ends everywhere
    assert len({tuple(order.tolist()) for order in orders}) == 200
    lag = torch.corrcoef(torch.stack([orders[0, :-1], orders[0, 1:]]))[0, 1]
    assert abs(lag) < 0.15


@pytest.mark.parametrize("name", ["order", "remask", "token"])
def test_a_decoders_noise_is_a_word_of_key_stream_and_step(name: str) -> None:
    """In whole 64-bit words: `order` and `remask` have numbers above what an int64 holds, `token` has not."""
    key_B = torch.tensor([7, -(2**63), 2**63 - 1])
    nothing_BA = torch.zeros((3, 1), dtype=torch.int64)
    state = State(nothing_BA, nothing_BA, nothing_BA.bool(), nothing_BA.bool(), key_B, torch.tensor(4), mask_id=0)

    def mixed(word: int) -> int:
        return int(mix(torch.tensor((word + 2**63) % 2**64 - 2**63))) % 2**64

    expected = []
    for key in key_B.tolist():
        mine = mixed(mixed(key + (stream(name) << 32)) + 4)
        expected.append([((mixed(mixed(mine + cell) ^ mine) >> 41) + 0.5) * 2.0**-23 for cell in range(5)])
    assert state.noise(stream(name), 5).tolist() == expected


@pytest.mark.parametrize(("word", "number"), [(0, 0), ((1 << 63) - 1, (1 << 63) - 1), (1 << 63, -(1 << 63))])
def test_words_are_twos_complements(word: int, number: int) -> None:
    assert signed(word) == number
    assert torch.tensor(signed(word)).item() == number
