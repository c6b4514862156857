"""What only a GPU can show: captured steps are those of a CPU, and runs move between the two.

Run by `make test-gpu`. Compiling makes these slow, and warns of things inside torch.
"""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hardtail import Streams
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.evaluate import evaluate
from hardtail.measuring.one_pass import probe
from hardtail.models.denoiser import Function, ModelDenoiser
from hardtail.models.kernels import TILED_WIDTH
from hardtail.models.transformer import Shape, Transformer
from hardtail.policies.base import Commit, Guess, Policy, State
from hardtail.policies.confidence import Top1
from hardtail.policies.named import policy_named
from hardtail.policies.remask import LeaveOneOut
from hardtail.schemes import Corpus, Scheme
from hardtail.training.gradient import Fused
from hardtail.training.optimiser import AdamW
from hardtail.training.ranks import Ranks, Together
from hardtail.training.run import train
from hardtail.training.step import ALONE, Step
from tests.decoding_toys import MASK, TOY, hashed_logits, problems
from tests.test_evaluate import ADDITION, tiny
from tests.test_step import SCHEMES, TASK, model
from tests.test_train import small

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]
LAST_GPU = f"cuda:{max(torch.cuda.device_count() - 1, 0)}"
"""With several GPUs not the one that is current."""


@dataclass(frozen=True)
class Asking(Policy):
    """A user's own that asks the host, which cannot be captured."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA if bool(state.hidden_BA.any()) else -guess.top_BA


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.7, "seed": 3},
        {"allowed": [2, 5, MASK]},
        {"commit": Commit(steps=3)},
        {"commit": Commit(each=4)},
        {"batch": 1000},
    ],
    ids=str,
)
def test_options_do_the_same_as_on_a_cpu(options: dict[str, Any]) -> None:
    cpu, gpu = (decode(TOY, problems(40), Top1(), Decoding(device=device, **options)) for device in ("cpu", LAST_GPU))
    np.testing.assert_array_equal(cpu.answer_NA, gpu.answer_NA)
    np.testing.assert_array_equal(cpu.cell_NT, gpu.cell_NT)


def test_a_policy_that_asks_the_host_runs_uncaptured_and_spoils_nothing() -> None:
    with pytest.warns(UserWarning, match="could not be captured"):
        asked = decode(TOY, problems(40), Asking(), Decoding(device="cuda"))
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.rand(1, device="cuda")  # torch's generator does not wait for the end of a capture: dropout goes on
    np.testing.assert_array_equal(asked.cell_NT, decode(TOY, problems(40), Top1(), Decoding(device="cuda")).cell_NT)


@pytest.mark.parametrize("batch", [None, 3])
def test_every_look_has_the_same_number_of_rows(batch: int | None) -> None:
    """A compiled model would be compiled anew for another."""
    rows: set[int] = set()

    def watched(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        rows.add(len(tokens_BL))
        return hashed_logits(tokens_BL, at_BA)

    decode(Function(watched, MASK), problems(40), LeaveOneOut(), Decoding(device="cuda", batch=batch))
    assert rows == {batch or 64}


def test_calls_share_a_captured_step_and_decode_as_if_each_had_its_own() -> None:
    shared, fresh = tiny(ADDITION).denoiser, tiny(ADDITION).denoiser
    assert isinstance(shared, ModelDenoiser)
    assert isinstance(fresh, ModelDenoiser)
    for each in (shared, fresh):
        each.model.to(LAST_GPU)
    parts = [ADDITION.sample(n, Streams(0).named(f"gpu/{n}")) for n in (300, 500, 20)]
    policies = (Top1(), policy_named("lsb", ADDITION.order_names), Top1())
    for instances in parts:
        for policy in policies:
            fresh.loops.clear()
            one, two = (decode(each, instances, policy, Decoding(device=LAST_GPU)) for each in (shared, fresh))
            np.testing.assert_array_equal(one.answer_NA, two.answer_NA)
            np.testing.assert_array_equal(one.cell_NT, two.cell_NT)
            np.testing.assert_array_equal(one.prob_NT, two.prob_NT)
    assert len(shared.loops) == 4  # two policies, batches of 512 and of 32


@pytest.mark.parametrize("width", [128, TILED_WIDTH])
def test_a_decode_in_bf16_has_the_logits_of_the_model(width: int) -> None:
    """By the passes that are written out, in every row, on a GPU that is not the current one; hooks prevent them."""
    shape = Shape(3, 4, width, ADDITION.vocabulary.size, ADDITION.seq_len)
    drawn = Transformer(shape).initialise(torch.Generator().manual_seed(0)).to(LAST_GPU)
    instances = ADDITION.sample(100, Streams(0).named("gpu"))
    tokens, at = (torch.from_numpy(part).long().to(LAST_GPU) for part in (instances.tokens_NL, instances.answer_at_NA))
    tokens.scatter_(1, at, ADDITION.vocabulary.mask_id)
    denoiser = ModelDenoiser(drawn, ADDITION.vocabulary.mask_id, "bf16", compiled=True)
    assert not denoiser.compiled
    found, exact = denoiser.logits(tokens, at).double(), deepcopy(drawn).double()(tokens, at)
    assert ((found - exact).norm(dim=-1) / exact.norm(dim=-1)).max() < 3e-2
    exact[..., ADDITION.vocabulary.mask_id] = -torch.inf
    trace = decode(denoiser, instances, Top1(), Decoding(device=LAST_GPU))
    surest = exact.softmax(-1).amax((1, 2)).cpu().numpy()
    np.testing.assert_allclose(trace.prob_NT[:, 0], surest, rtol=1e-2)
    drawn.blocks[0].register_forward_hook(lambda *given: None)
    assert denoiser.compiled


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_captured_step_follows_weights_that_change_in_place(precision: Any) -> None:
    """A run decodes its newest weights with the step that it captured for its first ones."""
    instances = ADDITION.sample(50, Streams(0).named("gpu"))
    models = [tiny(ADDITION, seed).denoiser.model.to(LAST_GPU) for seed in (0, 1)]  # type: ignore[attr-defined]
    followed = ModelDenoiser(models[0].twin(), ADDITION.vocabulary.mask_id, precision)
    for newest in (*models, models[0]):
        followed.model.put(dict(newest.named_parameters()))
        fresh = ModelDenoiser(newest, ADDITION.vocabulary.mask_id, precision)
        one, two = (decode(each, instances, Top1(), Decoding(device=LAST_GPU)) for each in (followed, fresh))
        np.testing.assert_array_equal(one.answer_NA, two.answer_NA)
        np.testing.assert_array_equal(one.prob_NT, two.prob_NT)
    assert len(followed.loops) == 1


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
@pytest.mark.parametrize("batch", [None, 7])
def test_a_model_measures_nearly_as_on_a_cpu(precision: Any, batch: int | None) -> None:
    instances = ADDITION.sample(50, Streams(0).named("gpu"))
    found = []
    for device in ("cpu", LAST_GPU):
        subject = tiny(ADDITION)
        assert isinstance(subject.denoiser, ModelDenoiser)
        subject.denoiser.model.to(device)
        subject.denoiser.precision = precision if device != "cpu" else "fp32"
        decoding = Decoding(device=device, batch=batch)
        accuracy = evaluate(subject, "top1", Top1(), instances, "natural", decoding).record.cell_accuracy
        found.append((probe(subject, instances, "natural", decoding).probe_nll, accuracy))
    assert found[0] == pytest.approx(found[1], abs=0.05)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("name", ["random", "mixture"])
def test_a_captured_step_is_the_step_of_a_cpu(name: str, accumulate: int) -> None:
    """What is hidden is drawn by the same words; a chain may differ where two cells are equally sure."""
    instances = TASK.sample(1000, Streams(0).named("step/train"))
    cpu, gpu = (
        Step(
            model().to(device),
            SCHEMES[name],
            Corpus.on(torch.device(device), instances, TASK.vocabulary.mask_id, "lsb"),
            AdamW(lr=3e-3, warmup=10, ema=None if accumulate > 1 else 0.9),
            batch=32,
            steps=400,
            seed=1,
            accumulate=accumulate,
        )
        for device in ("cpu", LAST_GPU)
    )
    assert gpu.compile() == "compiled, one CUDA graph"
    for _ in range(10):
        cpu()
        gpu()
        assert gpu.loss.item() == pytest.approx(cpu.loss.item(), abs=2e-2)
    assert gpu.step.item() == cpu.step.item() == 10
    if name == "random":
        assert gpu.seen.count_K.tolist() == cpu.seen.count_K.tolist()


def wide(scheme: Scheme, dropout: float, ranks: Ranks = ALONE, width: int = 64, layers: int = 2) -> Step:
    """A step in bf16 whose sizes the written passes fit."""
    shape = Shape(layers, width // 32, width, TASK.vocabulary.size, TASK.seq_len, dropout=dropout)
    made = Transformer(shape).initialise(torch.Generator().manual_seed(0)).to(LAST_GPU).train()
    instances = TASK.sample(1000, Streams(0).named("step/train"))
    corpus = Corpus.on(torch.device(LAST_GPU), instances, TASK.vocabulary.mask_id, "lsb")
    settings = AdamW(lr=3e-3, warmup=10, ema=0.9)
    return Step(made, scheme, corpus, settings, batch=32, steps=400, seed=1, precision="bf16", ranks=ranks)


@pytest.mark.parametrize(("accumulate", "width", "layers"), [(1, 64, 2), (2, 64, 4), (1, TILED_WIDTH, 4)])
def test_a_written_step_is_autograds(accumulate: int, width: int, layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with GELU inside the products, on Hopper, and with blocks that share products."""
    monkeypatch.setattr("hardtail.models.fused.BATCHED", 3)
    written, eager = (wide(SCHEMES["random"], 0.0, width=width, layers=layers) for _ in range(2))
    written.accumulate = eager.accumulate = accumulate
    assert written.compile() == "compiled, one CUDA graph"
    assert isinstance(written._parts.gradient, Fused)
    for _ in range(10):
        written()
        eager()
        assert written.loss.item() == pytest.approx(eager.loss.item(), abs=1e-2)
    torch.testing.assert_close(written.norm, eager.norm, rtol=0.05, atol=0.0)


@pytest.mark.parametrize("layers", [2, 4])
def test_replays_from_the_same_state_end_in_the_same_bytes(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout and chains included; a replay draws new cells to drop, or every step would drop the same."""
    monkeypatch.setattr("hardtail.models.fused.BATCHED", 3)
    step = wide(SCHEMES["puma"], 0.3, layers=layers)
    assert step.compile() == "compiled, one CUDA graph"
    begin = {name: tensor.clone() for name, tensor in step.tensors().items()}
    ends = []
    for seed in (1, 1, 2):
        torch.cuda.manual_seed(seed)
        for name, tensor in step.tensors().items():
            tensor.copy_(begin[name])
        for _ in range(20):
            step()
        ends.append(step.flat.weight_P.clone())
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


def test_a_run_goes_on_from_a_gpu_to_a_cpu_and_back(tmp_path: Path) -> None:
    recipe = small("addition-puma")
    for device, steps in ((LAST_GPU, 13), ("cpu", 9)):
        asked: list[None] = []

        def enough(asked: list[None] = asked, steps: int = steps) -> bool:
            asked.append(None)
            return len(asked) > steps

        assert not train(recipe, tmp_path, device=device, should_stop=enough).finished
    outcome = train(recipe, tmp_path, device=LAST_GPU)
    assert (outcome.finished, outcome.step, outcome.how) == (True, recipe.steps, "compiled, one CUDA graph")


class Doubled(Together):
    """Two processes with the same share of everything, of which this is one: NCCL sums over it alone, and it counts
    twice."""

    def __init__(self) -> None:
        self.rank, self.world = 0, 2

    def sum(self, vector_P: Tensor) -> None:
        super().sum(vector_P)
        vector_P.mul_(2)

    def most(self, value: int) -> int:
        return value


@pytest.mark.parametrize("name", ["puma", "papl"])
def test_a_step_of_several_processes_is_two_graphs_around_a_sum(name: str, tmp_path: Path) -> None:
    """The mean of two equal gradients is that gradient."""
    where = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("nccl", init_method=where, rank=0, world_size=1)
    try:
        alone, shared = wide(SCHEMES[name], 0.0), wide(SCHEMES[name], 0.0, Doubled())
        assert alone.compile() == "compiled, one CUDA graph"
        assert shared.compile() == "compiled, two CUDA graphs around a sum, 2 processes"
        for _ in range(10):
            alone()
            shared()
        torch.testing.assert_close(shared.loss, alone.loss, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(shared.norm, alone.norm, rtol=1e-4, atol=1e-6)
        assert shared.step.item() == 10
    finally:
        torch.distributed.destroy_process_group()
