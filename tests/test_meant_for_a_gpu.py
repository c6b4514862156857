"""What is decided for a GPU, tested without one: sizes of passes, steps that are kept, what a capture consists of."""

import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import hardtail
from hardtail.core.noise import Moment
from hardtail.core.types import Instances
from hardtail.decoding import loop, sizes
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import worker_count
from hardtail.models import attention
from hardtail.models.denoiser import Denoiser, ModelDenoiser
from hardtail.models.transformer import Block, Shape, Transformer
from hardtail.policies import nested
from hardtail.policies.base import Guess, Policy, State
from hardtail.policies.confidence import Margin, Top1
from hardtail.policies.named import policy_named
from hardtail.schemes.base import Corpus
from hardtail.schemes.puma import Puma, official
from hardtail.schemes.stages import Fixed
from hardtail.testing.host import forbid_host_reads
from hardtail.training import step as training
from hardtail.training.gradient import Predicted
from tests.decoding_toys import CELLS, NAMES, TOY, problems, same_trace, toy_policy

ON_GPU = Decoding(device="cuda")


@pytest.mark.parametrize(
    ("n", "batch", "rows"),
    [
        (10_000, None, 512),
        (257, None, 512),  # more than half full: the same step as any other batch's
        (256, None, 256),
        (1, None, 32),
        (33, None, 64),
        (100, 48, 48),
        (25, 48, 48),
        (24, 48, 32),
        (3, 20, 20),
    ],
)
def test_rows_in_flight_on_a_gpu(n: int, batch: int | None, rows: int) -> None:
    assert sizes.in_flight(n, replace(ON_GPU, batch=batch)) == rows


@pytest.mark.parametrize(
    ("length", "in_flight", "rows"),
    [(200, 512, 512), (257, 512, 256), (1 << 17, 512, 4), (400, 256, 256), (400, 48, 48)],
)
def test_rows_of_a_pass_on_a_gpu(length: int, in_flight: int, rows: int) -> None:
    assert sizes.pass_rows(length, in_flight, ON_GPU) == rows


@pytest.mark.parametrize(("length", "rows"), [(64, 32), (65, 16), (128, 16), (256, 8), (257, 4), (512, 4), (5000, 4)])
def test_rows_of_a_pass_on_a_cpu(length: int, rows: int) -> None:
    """Whatever is in flight: the bytes of a result depend on this number."""
    assert {sizes.pass_rows(length, in_flight, Decoding()) for in_flight in (4, 32, 4096)} == {rows}


def test_a_gpu_has_one_worker() -> None:
    ours = hardtail.load("zoo:addition-random").denoiser
    assert worker_count(ours, replace(ON_GPU, workers=3)) == 1


@dataclass(frozen=True)
class Unhashable(Policy):
    """Has a field that cannot be compared."""

    weights: Any = None

    def __hash__(self) -> int:
        raise TypeError("unhashable")

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, ...]]:
    """`_begun` with loops that only say what they were made of, and where they came in turn."""

    class Stub:
        made = 0

        def __init__(self, *given: Any) -> None:
            Stub.made += 1
            self.told = (Stub.made, *given)

    monkeypatch.setattr(loop, "_Loop", Stub)

    def begin(
        denoiser: Denoiser, policy: Policy, like: Instances, rows: int, on: Decoding = ON_GPU, cells: int = CELLS
    ) -> tuple[Any, ...]:
        found: Any = loop._begun(denoiser, policy, on, like, rows, cells)
        assert found.told[1] is denoiser
        return tuple(found.told)

    return begin


def test_a_captured_step_is_kept_for_what_is_decoded_alike(begun: Callable[..., tuple[Any, ...]]) -> None:
    ours, like = hardtail.load("zoo:addition-random").denoiser, problems(8)
    assert isinstance(ours, ModelDenoiser)
    ours.loops.clear()
    first = begun(ours, Top1(), like, 32)
    assert first == (1, ours, Top1(), ON_GPU, like, 32, CELLS)
    assert begun(ours, Top1(), problems(8, seed=1), 32)[0] == 1
    different = [
        begun(ours, Margin(), like, 32),
        begun(ours, Top1(), like, 64),
        begun(ours, Top1(), problems(8, cells=5), 32),
        begun(ours, Top1(), replace(like, orders={}), 32),
        begun(ours, Top1(), like, 32, replace(ON_GPU, seed=1)),
    ]
    assert [told[0] for told in different] == [2, 3, 4, 5, 6]
    few = [begun(ours, Top1(), like, 32, replace(ON_GPU, allowed=list(range(10))))[0] for _ in range(2)]
    assert few == [7, 7], "tokens that are restricted by a list are alike, too"
    seen = list[Any]()
    other = threading.Thread(target=lambda: seen.append(begun(ours, Top1(), like, 32)[0]))
    other.start()
    other.join()
    assert seen == [8]  # another thread has tensors of its own
    assert begun(ours, Top1(), like, 32)[0] == 1
    assert begun(ours, Top1(), like, 32, cells=CELLS - 1)[0] == 9  # a row may have too many cells for that one
    ours.loops.clear()


def test_few_captured_steps_are_kept_the_oldest_goes_first(begun: Callable[..., tuple[Any, ...]]) -> None:
    ours, like = hardtail.load("zoo:addition-random").denoiser, problems(8)
    assert isinstance(ours, ModelDenoiser)
    ours.loops.clear()
    for seed in range(loop.KEPT_LOOPS + 1):
        begun(ours, Top1(), like, 32, replace(ON_GPU, seed=seed))
    assert len(ours.loops) == loop.KEPT_LOOPS
    assert begun(ours, Top1(), like, 32, replace(ON_GPU, seed=1))[0] == 2
    assert begun(ours, Top1(), like, 32, replace(ON_GPU, seed=0))[0] == loop.KEPT_LOOPS + 2
    ours.loops.clear()


def test_what_cannot_be_compared_or_is_not_ours_is_captured_every_time(begun: Callable[..., tuple[Any, ...]]) -> None:
    ours, like = hardtail.load("zoo:addition-random").denoiser, problems(8)
    assert isinstance(ours, ModelDenoiser)
    ours.loops.clear()
    hidden, plain = Unhashable(), Decoding()
    for place, (denoiser, policy, on) in enumerate(
        [(ours, hidden, ON_GPU), (ours, hidden, ON_GPU), (TOY, Top1(), ON_GPU), (ours, Top1(), plain)], start=1
    ):
        told = begun(denoiser, policy, like, 32, on)
        assert (told[0], told[1], told[2], told[3], told[4], told[5]) == (place, denoiser, policy, on, like, 32)
    assert not ours.loops


def noted(model: Transformer) -> None:
    model.blocks[1].register_forward_hook(lambda part, inputs, output: None)


def replaced(model: Transformer) -> None:
    block = model.blocks[0]
    assert isinstance(block, Block)
    block.widen = nn.Sequential(block.widen)  # type: ignore[assignment]


def alike(model: Transformer) -> None:
    block = model.blocks[0]
    assert isinstance(block, Block)
    block.widen = deepcopy(block.widen)


@pytest.mark.parametrize("change", [noted, replaced, alike])
def test_a_captured_step_is_not_used_for_a_model_that_was_changed_since(
    change: Callable[[Transformer], None], begun: Callable[..., tuple[Any, ...]]
) -> None:
    model, like = Transformer(Shape(2, 2, 24, 8, 17)), problems(8)
    ours = ModelDenoiser(model, 7)
    assert [begun(ours, Top1(), like, 32)[0] for _ in range(2)] == [1, 1]
    change(model)
    assert begun(ours, Top1(), like, 32)[0] == 2


def test_hooks_see_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A captured step would call them while it is captured, and never again."""
    monkeypatch.setattr(loop, "captured", lambda work, device, warm_up: work)
    monkeypatch.setattr(loop, "replays", lambda device: True)
    model = Transformer(Shape(2, 2, 24, 8, 17)).initialise(torch.Generator().manual_seed(0))
    assert loop._Loop(ModelDenoiser(model, 7), Top1(), Decoding(), problems(8), 32, CELLS).graphs
    noted(model)
    assert not loop._Loop(ModelDenoiser(model, 7), Top1(), Decoding(), problems(8), 32, CELLS).graphs


def test_a_step_that_cannot_be_captured_runs_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    held = loop._Loop(TOY, Top1(), Decoding(), problems(4), 32, CELLS)
    asked = list[Any]()

    def captured(function: Any, device: torch.device, warm_up: int) -> Callable[[], None]:
        asked.append((function.func, function.args, device, warm_up))
        if len(asked) > 1:
            raise RuntimeError("operation not permitted")
        return lambda: None

    monkeypatch.setattr(loop, "captured", captured)
    assert list(held._captured(problems(4))) == [32]
    with pytest.warns(
        UserWarning, match="could not be captured and runs step by step: operation not permitted"
    ) as told:
        assert held._captured(problems(4)) == {}
    assert told[0].filename == __file__  # whoever asked
    assert asked == [(held._once, (32,), torch.device("cpu"), 1)] * 2


@pytest.mark.parametrize("name", [name for name in NAMES if toy_policy(name).capturable])
def test_captured_steps_never_wait_and_commit_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, except that a replay computes anew: nothing waits, and what a graph would hold stays in place."""
    sizes, most = list[int](), list[int]()

    def captured(work: Any, device: torch.device, warm_up: int) -> Callable[[], None]:
        most.extend(work.args)
        memory = work.func.__self__.state.memory

        def replay() -> None:
            places = {key: tensor.data_ptr() for key, tensor in memory.items()}
            sizes.extend(work.args)
            with forbid_host_reads("a step"):
                work()
            assert {key: tensor.data_ptr() for key, tensor in memory.items()} == places

        for _ in range(warm_up):
            work()
        return replay

    policy, instances, decoding = toy_policy(name), problems(150), Decoding(batch=128, workers=1)
    usual = decode(TOY, instances, policy, decoding)
    monkeypatch.setattr(loop, "captured", captured)
    monkeypatch.setattr(loop, "replays", lambda device: True)
    monkeypatch.setattr(nested, "asking_waits", lambda device: True)
    assert same_trace(decode(TOY, instances, policy, decoding), usual)
    assert most[0] == 128
    assert set(most) == ({128, 64, 32} if policy.remasks else {128})
    assert set(sizes) <= set(most)


def test_warm_ups_of_many_graphs_leave_room_for_their_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a step, which may write every cell three times."""

    def captured(work: Any, device: torch.device, warm_up: int) -> Callable[[], None]:
        for _ in range(warm_up):
            work()
        return partial(work)

    policy, decoding = policy_named("check,draft=threshold+p=0.01,hide=none,rounds=3"), Decoding(batch=1024, workers=1)
    usual = decode(TOY, problems(1024), policy, decoding)
    monkeypatch.setattr(loop, "captured", captured)
    monkeypatch.setattr(loop, "replays", lambda device: True)
    assert same_trace(decode(TOY, problems(1024), policy, decoding), usual)


def test_rows_that_are_finished_are_left_out_of_captured_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a ladder end at very different times: the last of them are computed alone."""
    sizes = list[int]()

    def captured(work: Any, device: torch.device, warm_up: int) -> Callable[[], None]:
        def replay() -> None:
            held = work.func.__self__
            assert int(held._active_B().sum()) <= work.args[0]
            sizes.extend(work.args)
            work()

        return replay

    monkeypatch.setattr(loop, "captured", captured)
    monkeypatch.setattr(loop, "replays", lambda device: True)
    decode(TOY, problems(128), policy_named("ladder,limit=16,splits=1"), Decoding(batch=128, workers=1))
    assert sizes == sorted(sizes, reverse=True)
    assert set(sizes) == {128, 64, 32}


def test_a_training_step_is_captured_around_the_sum_of_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one graph alone; among several processes as one before the sum and one after it."""
    done, device = list[str](), torch.device("cpu")

    def captured(function: Callable[[], None], on: torch.device, warm_up: int) -> Callable[[], None]:
        assert (on, warm_up) == (device, training.WARM_UP)
        return function

    monkeypatch.setattr(training, "captured", captured)
    for world, wanted in ((1, ["once"]), (2, ["give", "sum", "receive"])):
        done.clear()
        ranks = SimpleNamespace(world=world, sum=lambda of: done.append(of))
        step: Any = SimpleNamespace(
            _once=lambda: done.append("once"),
            _give=lambda: done.append("give"),
            _receive=lambda: done.append("receive"),
            _shared=SimpleNamespace(sum_P="sum"),
            ranks=ranks,
            device=device,
        )
        training.Step._captured(step)()
        assert done == wanted


class OnGpu:
    """As much of a packed tensor on a GPU as it takes to choose how to attend."""

    is_cuda, device = True, torch.device("cpu")

    def __init__(self, length: int, width: int, dtype: torch.dtype) -> None:
        self.shape, self.dtype = (2, length, width), dtype

    def new_empty(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.full(shape, -1, dtype=dtype)

    def chunk(self, *given: Any, **how: Any) -> Any:
        raise NotImplementedError("left to torch")


@pytest.mark.parametrize(
    ("length", "width", "query", "kernels", "ours"),
    [
        (128, 3 * 128, None, True, True),  # 2 heads of 64: as many keys as one program can hold
        (129, 3 * 128, None, True, False),
        (128, 2 * 128, "queries", True, True),
        (128, 3 * 96, None, True, False),  # heads of 48
        (128, 3 * 128, None, False, False),
    ],
)
def test_attention_on_a_gpu_is_ours_where_that_pays(
    length: int, width: int, query: Any, kernels: bool, ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Any]()

    def fused(*given: Any) -> tuple[str, str]:
        asked.append(given)
        return "out", "log"

    monkeypatch.setattr(attention, "fused", fused)
    monkeypatch.setattr(attention, "_runs_kernels", lambda device: kernels)
    packed: Any = OnGpu(length, width, torch.bfloat16)
    for dropout in (0.0, 0.1, 0.1):
        if ours:
            assert str(attention.attend(packed, query, 2, dropout)) == "out"
        else:
            with pytest.raises(NotImplementedError, match="left to torch"):
                attention.attend(packed, query, 2, dropout)
    seeds = [given[2] for given in asked]
    assert [(given[0], given[1], *given[3:]) for given in asked] == [
        (packed, query, 2, dropout) for dropout in (0.0, 0.1, 0.1) if ours
    ]
    assert all(seed.shape == (1,) and seed.dtype == torch.int32 for seed in seeds)
    drawn = {int(seed) for seed in seeds[1:]}
    assert not ours or (len(drawn) == 2 and min(drawn) >= 0)  # a new one in every step


class Sorting(TorchFunctionMode):
    """Sees every order that is asked for; among equal values, only a stable one is the same on a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.stable, self.loose = 0, list[Tensor]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func in (torch.sort, torch.argsort, Tensor.sort, Tensor.argsort):
            given, place = args[0], found if isinstance(found, Tensor) else found[1]
            ordered = given.gather(-1, place)
            if bool((ordered[..., 1:] == ordered[..., :-1]).any()):
                self.stable += bool((kwargs or {}).get("stable"))
                self.loose += [] if (kwargs or {}).get("stable") else [given]
        return found


@pytest.mark.parametrize("name", ["top1", "check,hide=random,parts=2,rounds=2", "ladder,rungs=threshold/top1,limit=0"])
def test_cells_of_equal_score_have_one_order_on_every_device(name: str) -> None:
    with Sorting() as seen:
        decode(TOY, problems(12), policy_named(name))
    assert seen.stable > 0
    assert seen.loose == []


@pytest.mark.parametrize("scheme", [Puma(stages=Fixed(3)), official(Fixed(3))], ids=str)
def test_chains_reveal_cells_of_equal_score_in_one_order_on_every_device(scheme: Puma) -> None:
    """By position, and without a sort that could have another order elsewhere."""
    task = hardtail.task("addition", digits=5)
    corpus = Corpus.on(torch.device("cpu"), task.sample(20, "natural", seed=0), task.vocabulary.mask_id, "lsb")
    now = Moment(1, torch.tensor(0), 10)
    with Sorting() as seen:
        state = scheme.begin(corpus, 4, now)
        view = scheme.corrupt(state, corpus, 4, now)
        scheme.advance(state, torch.zeros((*view.gold_BA.shape, 14)), view, corpus, now)
    assert seen.loose == []
    goes_on_B = state["row_B"] == view.row_B
    assert goes_on_B.any()
    for was_A, is_A in zip(view.hidden_BA[goes_on_B], state["hidden_BA"][goes_on_B], strict=True):
        revealed_K, hidden_K = (was_A & ~is_A).nonzero(), (was_A & is_A).nonzero()
        assert len(revealed_K) == 0 or revealed_K.max() < hidden_K.min()


def test_the_cells_that_a_step_predicts_have_one_order_on_every_device() -> None:
    """Instances with different numbers of maskable cells: each has its own cells first, and then some others."""
    task = hardtail.task("maze", size=3)
    corpus = Corpus.on(torch.device("cpu"), task.sample(6, "natural", seed=0), task.vocabulary.mask_id)
    with Sorting() as seen:
        Predicted(corpus, whole_answers=False)
    assert seen.stable == 1
    assert seen.loose == []
