"""The training step: its optimiser against torch's, its golden losses, and what it learns."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.noise import Moment
from hardtail.decoding.loop import decode
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.transformer import Shape, Transformer
from hardtail.policies.confidence import Top1
from hardtail.policies.orders import Logical
from hardtail.schemes import Corpus, Focal, Mixture, Own, Papl, Puma, Random, Scheme, View
from hardtail.schemes.chains import surest
from hardtail.schemes.puma import official, oracle_order, paper
from hardtail.schemes.stages import Fixed
from hardtail.training.gradient import flatten
from hardtail.training.optimiser import AdamW, Flat, update
from hardtail.training.probe import Probe
from hardtail.training.step import Step

CPU = torch.device("cpu")
TASK = hardtail.task("addition", digits=2)


def corpus(n: int = 1000, name: str = "train") -> Corpus:
    return Corpus.on(CPU, TASK.sample(n, Streams(0).named(f"step/{name}")), TASK.vocabulary.mask_id, "lsb")


def model(width: int = 32, heads: int = 2) -> Transformer:
    shape = Shape(2, heads, width, TASK.vocabulary.size, TASK.seq_len)
    return Transformer(shape).initialise(torch.Generator().manual_seed(0)).train()


def step(scheme: Scheme, batch: int = 32, accumulate: int = 1) -> Step:
    settings = AdamW(lr=3e-3, warmup=10, ema=0.9)
    return Step(model(), scheme, corpus(), settings, batch=batch, steps=400, seed=1, accumulate=accumulate)


# -- the optimiser ------------------------------------------------------------------------------------------------


def test_adamw_clip_and_ema_are_torchs() -> None:
    settings = AdamW(lr=1e-2, floor=1e-3, warmup=3, weight_decay=0.1, clip=0.5, ema=0.9)
    ours, theirs = model().double(), model().double()
    flat = Flat(ours)
    reference = torch.optim.AdamW(theirs.parameters(), lr=1.0, betas=(0.9, 0.99), weight_decay=0.1)
    ema = [parameter.detach().clone() for parameter in theirs.parameters()]
    generator = torch.Generator().manual_seed(3)
    for it in range(8):
        tokens = torch.randint(0, 12, (4, TASK.seq_len), generator=generator)
        for module in (ours, theirs):
            module.zero_grad()
        loss = ours(tokens, slice(6, 9)).square().mean() * 50
        gradient = flatten(torch.autograd.grad(loss, flat.parameters)).double()
        update(flat, gradient, settings, torch.tensor(it), 8)

        torch.autograd.backward(theirs(tokens, slice(6, 9)).square().mean() * 50)
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        rate = 1e-2 * (it + 1) / 3
        if it + 1 >= 3:
            rate = 1e-3 + 0.5 * (1e-2 - 1e-3) * (1 + torch.cos(torch.tensor(torch.pi * (it + 1 - 3) / 5)).item())
        reference.param_groups[0]["lr"] = rate
        reference.step()
        for mean, parameter in zip(ema, theirs.parameters(), strict=True):
            mean.lerp_(parameter.detach(), 0.1)
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(flat.views(flat.weight_P)[name], parameter.detach(), rtol=2e-4, atol=2e-6)
    for view, mean in zip(flat.views(flat.ema_P).values(), ema, strict=True):
        torch.testing.assert_close(view, mean, rtol=2e-4, atol=2e-6)


def test_accumulated_halves_are_one_batch() -> None:
    """Two parts of 16 give the gradient of their 32 sequences together."""
    one, two = step(Random()), step(Random(), batch=16, accumulate=2)
    # The same 32 sequences with the same masks: take what the parts drew and show it in one batch.
    parts: list[View] = []

    def keep(*words: Any) -> View:
        parts.append(two.scheme.corrupt(*words))
        return parts[-1]

    two._parts = replace(two._parts, corrupt=keep)
    two()
    joined = View(
        tokens_BL=torch.cat([part.tokens_BL for part in parts]),
        at_BA=parts[0].at_BA,
        gold_BA=torch.cat([part.gold_BA for part in parts]),
        hidden_BA=torch.cat([part.hidden_BA for part in parts]),
        maskable_BA=torch.cat([part.maskable_BA for part in parts]),
        row_B=torch.cat([part.row_B for part in parts]),
    )
    one._parts = replace(one._parts, corrupt=lambda *words: joined)
    one()
    torch.testing.assert_close(one.flat.weight_P, two.flat.weight_P, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(one.loss, two.loss)
    torch.testing.assert_close(one.norm, two.norm)  # AdamW's first step is the same whatever the gradient's length


def test_attention_in_bf16_moves_little() -> None:
    """The field reaches the model: other bytes, and losses that differ by bf16's rounding of attention only."""
    settings = AdamW(lr=3e-3, warmup=10, ema=0.9)
    same = Step(model(), Random(), corpus(), settings, batch=32, steps=400, seed=1)
    half = Step(model(), Random(), corpus(), settings, batch=32, steps=400, seed=1, attention="bf16")
    for _ in range(10):
        same()
        half()
        assert half.loss.item() == pytest.approx(same.loss.item(), abs=5e-3)
    assert not torch.equal(same.flat.weight_P, half.flat.weight_P)


def test_bf16_rounds_the_model_and_not_the_loss() -> None:
    """The field reaches the forward pass; loss, and the confidences that choose cells, stay float32."""
    settings = AdamW(lr=3e-3, warmup=10, ema=0.9)
    full = Step(model(), Puma(stages=Fixed(3)), corpus(), settings, batch=32, steps=400, seed=1)
    half = Step(model(), Puma(stages=Fixed(3)), corpus(), settings, batch=32, steps=400, seed=1, precision="bf16")
    view = half.scheme.corrupt(half.state, half.corpus, 32, Moment(1, half.step, 400))
    loss, logits, _ = half._parts.gradient(view)
    assert (loss.dtype, logits.dtype) == (torch.float32, torch.bfloat16)
    assert surest(logits, TASK.vocabulary.mask_id).dtype == torch.float32
    for _ in range(5):
        full()
        half()
        assert half.loss.item() == pytest.approx(full.loss.item(), abs=0.05)
    assert half.flat.weight_P.dtype == torch.float32
    assert not torch.equal(full.flat.weight_P, half.flat.weight_P)


Work = Callable[[], None]


def as_if_on_a_gpu(monkeypatch: pytest.MonkeyPatch, capture: Callable[[Work, torch.device, int], Work]) -> None:
    """What `Step.compile` asks of a GPU, on a CPU."""
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda precision: None)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: torch.set_rng_state(state))
    monkeypatch.setattr("hardtail.training.step.captured", capture)


def test_a_capture_that_fails_is_said_aloud_and_takes_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warming up for a capture takes real steps: where it fails, the eager run starts from the untouched state."""
    usual, failed = step(SCHEMES["puma"]), step(SCHEMES["puma"])

    def capture(work: Work, device: torch.device, warm_up: int) -> Work:
        work()
        raise RuntimeError("operation not permitted when stream is capturing")

    as_if_on_a_gpu(monkeypatch, capture)
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    monkeypatch.setattr(failed, "device", torch.device("cuda"))
    with pytest.warns(UserWarning, match="runs eagerly, several times slower: operation not permitted"):
        assert failed.compile() == "eager on the GPU"
    for _ in range(3):
        usual()
        failed()
    for name, tensor in usual.tensors().items():
        assert torch.equal(tensor, failed.tensors()[name]), name


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
@pytest.mark.parametrize("name", ["papl", "puma", "own", "mixture"])
def test_each_part_of_a_step_compiles_as_one_graph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration that is made inside a step, say, would check its fields there and break the graph."""

    def capture(work: Work, device: torch.device, warm_up: int) -> Work:
        work()
        return work

    as_if_on_a_gpu(monkeypatch, capture)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager", fullgraph=True))
    usual, whole = step(SCHEMES[name]), step(SCHEMES[name])
    monkeypatch.setattr(whole, "device", torch.device("cuda"))
    try:
        assert whole.compile() == "compiled, one CUDA graph"
        usual()
        whole()
    finally:
        torch.compiler.reset()
    assert torch.equal(usual.loss, whole.loss)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
def test_many_runs_in_one_process_are_all_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another seed is compiled anew, and after eight times the compiler would go on without a word that a log keeps."""

    def capture(work: Work, device: torch.device, warm_up: int) -> Work:
        work()
        return work

    as_if_on_a_gpu(monkeypatch, capture)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    try:
        with torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
            for seed in range(2):
                taken = Step(model(), Random(), corpus(), AdamW(), batch=32, steps=400, seed=seed)
                monkeypatch.setattr(taken, "device", torch.device("cuda"))
                assert taken.compile() == "compiled, one CUDA graph"
    finally:
        torch.compiler.reset()


# -- golden losses ------------------------------------------------------------------------------------------------

SCHEMES: dict[str, Scheme] = {
    "random": Random(),
    "papl": Papl(alpha=5.0),
    "focal": Focal(),
    "puma": Puma(stages=Fixed(3)),
    "puma-paper": paper(Fixed(2)),
    "puma-around": replace(paper(Fixed(3)), law="around"),
    "puma-official": official(Fixed(3)),
    "oracle": oracle_order(Fixed(3)),
    "own": Own(),
    "mixture": Mixture(Puma(stages=Fixed(3)), Random()),
}


def losses(scheme: Scheme, steps: int = 20) -> list[float]:
    taken = step(scheme)
    curve = []
    for _ in range(steps):
        taken()
        curve.append(round(taken.loss.item(), 4))
    return curve


@pytest.mark.parametrize("name", SCHEMES)
def test_golden_losses(name: str) -> None:
    """Twenty steps on a CPU. A change here is a change of what is trained: say why, then renew the figures."""
    assert losses(SCHEMES[name]) == pytest.approx(GOLDEN[name], abs=2e-3)


def test_same_seed_same_bytes() -> None:
    one, two = step(SCHEMES["mixture"]), step(SCHEMES["mixture"])
    for _ in range(5):
        one()
        two()
    for name, tensor in one.tensors().items():
        assert torch.equal(tensor, two.tensors()[name]), name


def test_coverage_counts_what_was_hidden() -> None:
    taken = step(oracle_order(Fixed(3)), batch=30)
    for _ in range(6):
        taken()
    assert taken.seen.count_K.tolist() == [0, 60, 60, 60]
    # The oracle reveals the lowest digit first: with two cells hidden they are ranks 1 and 2, with one it is rank 2.
    assert taken.seen.rank_KR.tolist() == [[0, 0, 0], [0, 0, 60], [0, 60, 60], [60, 60, 60]]


# -- learning -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [Random(), Puma(stages=Fixed(3))], ids=["random", "puma"])
def test_two_digits_are_learned(scheme: Scheme) -> None:
    """With eight heads small batches are enough to find the carry early."""
    settings = AdamW(lr=3e-3, floor=3e-4, warmup=50, weight_decay=0.01, ema=0.99)
    torch.manual_seed(0)
    training = Corpus.on(CPU, TASK.sample(6000, Streams(0).named("step/large")), TASK.vocabulary.mask_id, "lsb")
    taken = Step(model(64, heads=8), scheme, training, settings, batch=64, steps=1000, seed=1)
    for _ in range(1000):
        taken()
    judge = model(64, heads=8).eval()
    judge.load_state_dict(taken.flat.views(taken.flat.ema_P))
    denoiser = ModelDenoiser(judge, TASK.vocabulary.mask_id)
    test = TASK.sample(400, Streams(0).named("step/test"))
    assert decode(denoiser, test, Top1()).exact_N.mean() > 0.95
    assert decode(denoiser, test, Logical("lsb")).exact_N.mean() > 0.95
    probed = Probe(corpus(400, "test"), TASK.vocabulary.size).of(judge)
    assert probed.nll < 0.2
    assert probed.guessed == 0


# fmt: off
GOLDEN: dict[str, list[float]] = {
    "random": [
        2.7242, 2.6553, 2.6084, 2.509, 2.4924, 2.4203, 2.4638, 2.4034, 2.3654, 2.3527,
        2.3352, 2.2472, 2.2362, 2.1477, 2.1653, 2.3289, 2.0125, 2.1124, 1.9807, 1.9284,
    ],
    "papl": [
        12.2099, 12.2547, 11.4616, 11.0536, 12.0722, 10.865, 11.6934, 10.5316, 10.4154, 10.588,
        10.9012, 11.0309, 9.7096, 9.5325, 9.4942, 10.9963, 8.9055, 9.5421, 8.9103, 9.0649,
    ],
    "focal": [
        2.3782, 2.2949, 2.2376, 2.1177, 2.0959, 2.0087, 2.0615, 1.9905, 1.9445, 1.9265,
        1.9037, 1.8, 1.7893, 1.6834, 1.6972, 1.8954, 1.5284, 1.6515, 1.5021, 1.4501,
    ],
    "puma": [
        2.7058, 2.6229, 2.4313, 2.5023, 2.5634, 2.5085, 2.4521, 2.5465, 2.5143, 2.4323,
        2.5014, 2.4808, 2.3705, 2.4951, 2.4449, 2.2916, 2.4045, 2.3743, 2.26, 2.4527,
    ],
    "puma-paper": [
        2.7058, 2.6233, 2.5103, 2.5357, 2.5173, 2.5442, 2.5104, 2.493, 2.4696, 2.4392,
        2.4234, 2.3944, 2.3273, 2.3259, 2.3728, 2.3553, 2.4013, 2.2473, 2.2448, 2.3291,
    ],
    "puma-around": [
        2.7058, 2.6106, 2.5495, 2.5693, 2.5042, 2.5279, 2.5006, 2.5027, 2.4494, 2.4533,
        2.3952, 2.4045, 2.3732, 2.3347, 2.4086, 2.3556, 2.3143, 2.337, 2.1878, 2.3199,
    ],
    "puma-official": [
        2.6987, 2.6393, 2.5089, 2.4903, 2.521, 2.5462, 2.5207, 2.5238, 2.4888, 2.4489,
        2.4605, 2.4178, 2.3989, 2.3632, 2.3579, 2.3742, 2.3421, 2.4058, 2.3606, 2.3522,
    ],
    "oracle": [
        2.7058, 2.6557, 2.4325, 2.5039, 2.4102, 2.1829, 2.45, 2.3442, 2.0414, 2.3445,
        2.205, 1.7677, 2.2706, 2.0507, 1.5249, 2.2197, 1.9526, 1.3109, 2.0494, 1.8171,
    ],
    "own": [
        2.682, 2.6507, 2.5953, 2.4983, 2.487, 2.4342, 2.4351, 2.3768, 2.4093, 2.3611,
        2.3123, 2.2678, 2.1488, 2.1394, 2.1274, 2.1101, 2.1729, 2.106, 2.1383, 2.0774,
    ],
    "mixture": [
        2.7149, 2.6224, 2.4765, 2.5015, 2.5041, 2.4514, 2.5148, 2.4805, 2.4869, 2.4773,
        2.4319, 2.4324, 2.3868, 2.3055, 2.4, 2.3487, 2.2897, 2.2284, 2.3122, 2.2221,
    ],
}
# fmt: on


def test_the_learning_rate_step_by_step() -> None:
    def rates(settings: AdamW, *steps: int) -> list[float]:
        return [round(float(settings.rate(torch.tensor(step), 10)), 4) for step in steps]

    cosine = AdamW(lr=1.0, floor=0.2, warmup=4)
    assert rates(cosine, 0, 2, 3, 6, 9, 50) == [0.25, 0.75, 1.0, 0.6, 0.2, 0.2]
    assert rates(AdamW(lr=1.0, floor=0.2, warmup=0), 0, 9) == [0.9804, 0.2]
    assert rates(replace(cosine, schedule="constant"), 0, 3, 9) == [0.25, 1.0, 1.0]
    AdamW(lr=1e-4, floor=1e-4)
    with pytest.raises(HardtailError, match=r"floor=0.0002 is above lr=0.0001"):
        AdamW(lr=1e-4, floor=2e-4)
