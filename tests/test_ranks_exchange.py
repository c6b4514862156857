"""What processes that train together send each other: threads here, whose process group only passes tensors on."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor

from hardtail import HardtailError
from hardtail.training import ranks
from hardtail.training.ranks import AGREE_EVERY, LONGEST_WAIT, Together, open_ranks

T = TypeVar("T")
WORLD = 3
HOST = "over the host"


class Group:
    """`torch.distributed` among threads: every call waits for all, and each sees what the others gave."""

    ReduceOp = SimpleNamespace(SUM="sum", MAX="max")

    def __init__(self) -> None:
        self.here = threading.local()
        self.barrier = threading.Barrier(WORLD, timeout=5)
        self.given: list[Any] = [None] * WORLD
        self.calls: list[tuple[str, str | None]] = []

    def get_rank(self) -> int:
        return int(self.here.rank)

    def get_world_size(self) -> int:
        return WORLD

    def new_group(self, backend: str, timeout: Any) -> str:
        assert (backend, timeout) == ("gloo", LONGEST_WAIT)
        return HOST

    def _everyones(self, call: str, value: Any, group: str | None) -> list[Any]:
        self.given[self.here.rank] = value
        self.barrier.wait()
        every = list(self.given)
        if self.here.rank == 0:
            self.calls.append((call, group))
        self.barrier.wait()
        return every

    def all_reduce(self, tensor: Tensor, op: str = "sum", group: str | None = None) -> None:
        every = torch.stack(self._everyones(f"all_reduce {op}", tensor.clone(), group))
        tensor.copy_(every.amax(dim=0) if op == "max" else every.sum(dim=0))

    def gather(self, tensor: Tensor, into: list[Tensor] | None, group: str | None = None) -> None:
        assert tensor.dtype != torch.bool, "not every backend sends these"
        every = self._everyones("gather", tensor.clone(), group)
        assert (into is None) == (self.here.rank > 0)
        for place, held in enumerate(into or ()):
            held.copy_(every[place])

    def broadcast(self, tensor: Tensor, source: int, group: str | None = None) -> None:
        assert tensor.dtype != torch.bool, "not every backend sends these"
        tensor.copy_(self._everyones("broadcast", tensor.clone(), group)[source])

    def scatter(self, into: Tensor, parts: list[Tensor] | None, group: str | None = None) -> None:
        every = self._everyones("scatter", parts, group)
        assert (parts is None) == (self.here.rank > 0)
        into.copy_(every[0][self.here.rank])


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    made = Group()
    monkeypatch.setattr(ranks, "dist", made)
    return made


def in_all(group: Group, work: Callable[[Together], T]) -> list[T]:
    """What each of the processes makes of it."""

    def one(rank: int) -> T:
        group.here.rank = rank
        return work(Together())

    with ThreadPoolExecutor(WORLD) as pool:
        return list(pool.map(one, range(WORLD)))


def test_sums_go_over_the_devices_and_all_else_over_the_host(group: Group) -> None:
    def work(together: Together) -> tuple[Any, ...]:
        vector_P, counts = torch.tensor([1.0, together.rank]), torch.tensor([together.rank, 5])
        together.sum(vector_P)
        total = together.total(counts)
        return vector_P.tolist(), together.most(10 - together.rank), total.tolist(), counts.tolist(), together.first

    found = in_all(group, work)
    assert found == [([3.0, 3.0], 10, [3, 15], [rank, 5], rank == 0) for rank in range(WORLD)]
    assert group.calls == [("all_reduce sum", None), ("all_reduce sum", HOST), ("all_reduce max", HOST)]


def own(rank: int) -> dict[str, Tensor]:
    return {"hidden": torch.tensor([rank == 1, True]), "rows": torch.tensor([[rank, 10 * rank]])}


def test_the_first_process_gets_what_the_others_have_of_their_own(group: Group) -> None:
    first, *others = in_all(group, lambda together: together.gather(own(together.rank)))
    assert others == [[], []]
    assert len(first) == WORLD - 1
    for rank, held in enumerate(first, start=1):
        for name, tensor in own(rank).items():
            assert held[name].dtype == tensor.dtype
            assert torch.equal(held[name], tensor)
    assert group.calls == [("gather", HOST)] * 2


def test_every_process_gets_its_own_back_and_the_first_ones_common_tensors(group: Group) -> None:
    def work(together: Together) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        rank = together.rank
        common = {"weight": torch.full((2,), float(rank), requires_grad=True), "done": torch.tensor([rank == 0])}
        mine = own(0) if rank == 0 else {name: torch.zeros_like(tensor) for name, tensor in own(0).items()}
        together.hand_out(common, mine, [own(1), own(2)] if together.first else [])
        return common, mine

    for rank, (common, mine) in enumerate(in_all(group, work)):
        assert common["weight"].tolist() == [0.0, 0.0]
        assert common["done"].tolist() == [True]
        assert {name: tensor.tolist() for name, tensor in mine.items()} == {
            name: tensor.tolist() for name, tensor in own(rank).items()
        }
    assert group.calls == [("broadcast", HOST)] * 2 + [("scatter", HOST)] * 2


def test_wishes_are_asked_for_every_few_steps_or_at_once(group: Group) -> None:
    def work(together: Together) -> list[int]:
        wish = 2 if together.rank == 2 else 0
        asked = [(step, False) for step in (0, 1, AGREE_EVERY - 1, AGREE_EVERY)] + [(3, True)]
        return [together.agree(wish, step, now=now) for step, now in asked]

    assert in_all(group, work) == [[2, 0, 0, 2, 2]] * WORLD


def test_every_process_draws_from_a_stream_of_its_own(group: Group) -> None:
    seeds = in_all(group, lambda together: together.seed(7))
    assert seeds[0] == 7
    assert len(set(seeds)) == WORLD


# -- how they begin ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "used", "backend"), [("cpu", "cpu", "gloo"), ("cuda", "cuda:1", "nccl")])
def test_processes_of_torchrun_find_each_other(
    asked: str, used: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[Any]()
    dist = SimpleNamespace(
        init_process_group=lambda *given, **how: done.append((*given, how)),
        destroy_process_group=lambda: done.append("ended"),
        get_rank=lambda: 1,
        get_world_size=lambda: 2,
        new_group=lambda **how: HOST,
    )
    monkeypatch.setattr(ranks, "dist", dist)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", done.append)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")

    def fails() -> None:
        with open_ranks(asked) as (together, device):
            assert (together.rank, together.world, together.first, device) == (1, 2, False, used)
            raise KeyError

    with pytest.raises(KeyError):
        fails()  # the group is closed also then
    chosen = [used] if backend == "nccl" else []
    assert done == [*chosen, (backend, {"timeout": LONGEST_WAIT}), "ended"]


@pytest.mark.parametrize(
    ("device", "gpus", "reason"),
    [
        ("cuda:0", 8, "--device cuda:0 names one GPU, and 2 processes train; give --device cuda"),
        ("cuda", 1, "there is no cuda:1: this machine has 1 GPUs"),
    ],
)
def test_a_gpu_for_every_process_or_a_sentence(
    device: str, gpus: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: pytest.fail("it is not there"))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(HardtailError, match=reason), open_ranks(device):
        pass
