"""One training step on the device: draw, corrupt, forward, backward, clip, optimise, EMA, advance.

It never waits for the host, so on a GPU it is compiled and captured once as a CUDA graph and then replayed; on a CPU
the same function simply runs.

Shapes: B batch, A answer cells, R logical ranks, V vocabulary.
"""

import gc
import reprlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.noise import Moment
from hardtail.models.capture import captured
from hardtail.models.kernels import fits
from hardtail.models.precision import Precision, matmul_precision
from hardtail.models.trainable import Trainable
from hardtail.models.transformer import Transformer
from hardtail.schemes.base import Corpus, Scheme, View
from hardtail.training.gradient import Autograd, Fused, Gradient, Predicted
from hardtail.training.optimiser import AdamW, Flat, update
from hardtail.training.ranks import Alone, Ranks, Tensors

AttentionPrecision = Literal["same", "bf16"]
ALONE = Alone()
WARM_UP = 3
COMPILER = {
    "combo_kernels": True,  # many small independent kernels become few
    "triton.mix_order_reduction_split_size": 64,  # fewer partial sums of LayerNorm's gradients
}
"""Settings of torch's compiler that pay off at these sizes (docs/performance.md)."""


@dataclass(frozen=True)
class _Parts:
    """What a step calls, one after the other."""

    corrupt: Callable[..., View]
    gradient: Gradient
    bins: Callable[[View], tuple[Tensor, Tensor, Tensor]]
    advance: Callable[..., None]
    update: Callable[..., Tensor]

    def compiled(self, gradient: Gradient) -> "_Parts":
        """The same, compiled by torch, with another way to the gradient."""
        return _Parts(
            torch.compile(self.corrupt, dynamic=False),
            gradient,
            torch.compile(self.bins, dynamic=False),
            torch.compile(self.advance, dynamic=False),
            torch.compile(self.update, dynamic=False),
        )


class Step:
    """Everything a training step reads and writes. Calling it takes one step."""

    def __init__(
        self,
        model: Trainable,
        scheme: Scheme,
        corpus: Corpus,
        settings: AdamW,
        *,
        batch: int,
        steps: int,
        seed: int,
        precision: Precision = "fp32",
        attention: AttentionPrecision = "same",
        accumulate: int = 1,
        ranks: Ranks = ALONE,
    ) -> None:
        """`batch` and `corpus` are this process's own share, where several `ranks` take the step together."""
        self.model, self.scheme, self.corpus, self.settings = model, scheme, corpus, settings
        self.batch, self.steps, self.seed, self.ranks = batch, steps, ranks.seed(seed), ranks
        self.precision, self.accumulate = precision, accumulate
        self.device = corpus.tokens_NL.device
        self.flat = Flat(model)
        self.step = torch.zeros((), dtype=torch.int64, device=self.device)
        self.state = scheme.begin(corpus, batch, Moment(self.seed, self.step - 1, steps))
        self.loss = torch.zeros((), device=self.device)
        self.norm = torch.zeros((), device=self.device)
        self.seen = SeenStates(corpus, scheme, ranks)
        self._predicted = Predicted(corpus, model.whole_answers)
        self._autograd = Autograd(
            model, scheme, self._predicted, precision, torch.bfloat16 if attention == "bf16" else None
        )
        self._eager = _Parts(scheme.corrupt, self._autograd, self.seen.bins, scheme.advance, update)
        self._parts = self._eager
        self._take: Callable[[], None] = self._once
        if ranks.world > 1:
            self._shared = Shared(scheme, len(self.flat.weight_P), accumulate, self.device)
            self._take = self._once_together

    def __call__(self) -> None:
        self._take()

    # -- the step -----------------------------------------------------------------------------------------------

    def _once(self) -> None:
        self._apply(self._learn()[0])

    def _learn(self) -> tuple[Tensor, Tensor]:
        """The gradient of this step, and, among several processes, how many cells it hid; the loss is kept."""
        gradient_P: Tensor | None = None
        hidden = torch.zeros_like(self.loss) if self.ranks.world > 1 else self.loss
        self.loss.zero_()
        for part in range(self.accumulate):
            now = Moment(self.seed, self.step * self.accumulate + part, self.steps * self.accumulate)
            with torch.no_grad():
                view = self._parts.corrupt(self.state, self.corpus, self.batch, now)
            if not isinstance(view, View):
                raise HardtailError(
                    f"{type(self.scheme).__name__}: corrupt returned {reprlib.repr(view)}; it must be a View, as "
                    "corpus.batch(…).hide(…) returns (hardtail.testing.check_scheme)"
                )
            loss, logits_BAV, fresh_P = self._parts.gradient(view)
            with torch.no_grad():
                gradient_P = fresh_P if gradient_P is None else gradient_P + fresh_P
                self.loss.add_(loss / self.accumulate)
                self._parts.advance(self.state, logits_BAV, view, self.corpus, now)
                self.seen.add(*self._parts.bins(view))
                if self.ranks.world > 1:
                    hidden = hidden + view.hidden_BA.sum()
        assert gradient_P is not None
        with torch.no_grad():
            return gradient_P / self.accumulate if self.accumulate > 1 else gradient_P, hidden

    def _apply(self, gradient_P: Tensor) -> None:
        with torch.no_grad():
            norm = self._parts.update(self.flat, gradient_P, self.settings, self.step, self.steps)
            self.norm.copy_(norm)
            self.step.add_(1)

    # -- with other processes -----------------------------------------------------------------------------------

    def _once_together(self) -> None:
        self._give()
        self.ranks.sum(self._shared.sum_P)
        self._receive()

    def _give(self) -> None:
        gradient_P, hidden = self._learn()
        self._shared.give(gradient_P, self.loss, hidden)

    def _receive(self) -> None:
        gradient_P, loss = self._shared.mean()
        self.loss.copy_(loss)
        self._apply(gradient_P)

    # -- on a GPU -----------------------------------------------------------------------------------------------

    def compile(self) -> str:
        """Compile the parts and capture the whole step; return a description of how it runs now.

        Warming up takes real steps, so the state is put back afterwards, whether the capture succeeded or not.
        """
        together = f", {self.ranks.world} processes" if self.ranks.world > 1 else ""
        if self.device.type != "cuda":
            return f"eager on the CPU{together}"
        if not self.model.capturable:
            return f"eager on the GPU, as other projects' models may wait for the host{together}"
        torch.compiler.reset()  # many runs in one process reach the limit on recompilations and then run uncompiled
        gc.collect()  # an earlier run's step refers to itself and holds GPU memory until it is collected
        self._parts = self._eager.compiled(self._on_gpu())
        kept = {name: tensor.clone() for name, tensor in self.tensors().items()}
        generator = torch.cuda.get_rng_state(self.device)
        try:
            with matmul_precision(self.precision), torch._inductor.config.patch(COMPILER), warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")  # fp32 is chosen on purpose
                self._take = self._captured()
        except (RuntimeError, torch._dynamo.exc.TorchDynamoException) as error:
            self._parts = self._eager
            warnings.warn(
                f"the step could not be captured and runs eagerly, several times slower: {error}", stacklevel=2
            )
            return f"eager on the GPU{together}"
        finally:
            with torch.no_grad():
                for name, tensor in self.tensors().items():
                    tensor.copy_(kept[name])
            torch.cuda.set_rng_state(generator, self.device)
        return f"compiled, two CUDA graphs around a sum{together}" if together else "compiled, one CUDA graph"

    def _captured(self) -> Callable[[], None]:
        """A replay of the step; where gradients are summed between processes, of what comes before and after that."""
        if self.ranks.world == 1:
            return captured(self._once, self.device, WARM_UP)
        before, after = (captured(part, self.device, WARM_UP) for part in (self._give, self._receive))

        def take() -> None:
            before()
            self.ranks.sum(self._shared.sum_P)
            after()

        return take

    def _on_gpu(self) -> Gradient:
        """The fastest way to the gradient."""
        if self.precision == "bf16" and isinstance(self.model, Transformer) and fits(self.model.shape, self.device):
            return Fused(self.model, self.scheme, self._predicted, self.flat.weight_P)
        return self._autograd.compiled()

    # -- what a checkpoint holds --------------------------------------------------------------------------------

    def tensors(self) -> Tensors:
        """Everything that changes from step to step; copying into these tensors resumes a run."""
        return self.common() | self.own()

    def common(self) -> Tensors:
        """What is the same in all processes of a run."""
        return {
            "step": self.step,
            "loss": self.loss,
            "norm": self.norm,
            "weight_P": self.flat.weight_P,
            "first_P": self.flat.first_P,
            "second_P": self.flat.second_P,
            "ema_P": self.flat.ema_P,
        }

    def own(self) -> Tensors:
        """What each process has of its own."""
        return {
            "coverage/count": self.seen.count_K,
            "coverage/rank": self.seen.rank_KR,
            **{f"scheme/{name}": tensor for name, tensor in self.state.items()},
        }

    def knows_its_rows(self) -> bool:
        """Whether the rows that the scheme goes on with, if it keeps some, are in the data."""
        kept = [tensor for name, tensor in self.state.items() if name.endswith("row_B")]
        return all(bool(((row_B >= 0) & (row_B < len(self.corpus))).all()) for row_B in kept)


class Shared:
    """What processes sum in a step: gradient and loss, weighted, and the weights, so that the mean is that of all.

    The loss of a batch is the mean of those of its equal shares; a `pooled` one weights them by their hidden cells.
    """

    def __init__(self, scheme: Scheme, parameters: int, accumulate: int, device: torch.device) -> None:
        if not scheme.shareable or (scheme.pooled and accumulate > 1):
            raise HardtailError(
                "this loss is a mean over the hidden cells of a part of the batch, which several processes cannot "
                "share exactly; train in one process, or with another weighting"
            )
        self.pooled = scheme.pooled
        self.sum_P = torch.zeros(parameters + 2, device=device)

    def give(self, gradient_P: Tensor, loss: Tensor, hidden: Tensor) -> None:
        weight = hidden if self.pooled else torch.ones_like(loss)
        self.sum_P[:-2].copy_(gradient_P * weight)
        self.sum_P[-2:].copy_(torch.stack([loss * weight, weight]))

    def mean(self) -> tuple[Tensor, Tensor]:
        weight = self.sum_P[-1].clamp(min=1)
        return self.sum_P[:-2] / weight, self.sum_P[-2] / weight


class SeenStates:
    """Which mask states training has seen: by hidden count K, and the cells it was trained on by that count and their
    logical rank. Trained cells that are not hidden, but show a token of the model's own, are in row 0, where no hidden
    cell can be."""

    def __init__(self, corpus: Corpus, scheme: Scheme, ranks: Ranks = ALONE) -> None:
        cells = corpus.maskable_NA.shape[1]
        device = corpus.tokens_NL.device
        self.rank_NA = corpus.rank_NA
        self.ranks = ranks.most(int(corpus.rank_NA.max()) + 1 if corpus.rank_NA is not None else 1)
        self.count_K = torch.zeros(cells + 1, dtype=torch.int64, device=device)
        self.rank_KR = torch.zeros((cells + 1, self.ranks), dtype=torch.int64, device=device)
        self.together, self.trained = ranks, scheme.trained
        self.total_K, self.total_KR = self.count_K, self.rank_KR
        """The same over all processes, as of the last `add_up`; alone, as of now."""

    def add_up(self) -> None:
        """Count what all processes have seen; all of them must call this at the same step."""
        self.total_K, self.total_KR = self.together.total(self.count_K), self.together.total(self.rank_KR)

    def bins(self, view: View) -> tuple[Tensor, Tensor, Tensor]:
        """Where a batch of states counts: its hidden counts, and each cell's place in `rank_KR` and weight there."""
        count_B = view.hidden_BA.sum(dim=1)
        rank_BA = (
            torch.zeros_like(view.gold_BA) if self.rank_NA is None else self.rank_NA[view.row_B].long().clamp(min=0)
        )
        bin_BA = torch.where(view.hidden_BA, count_B[:, None], 0) * self.ranks + rank_BA
        return count_B, bin_BA.flatten(), self.trained(view).flatten().long()

    def add(self, count_B: Tensor, bin_C: Tensor, trained_C: Tensor) -> None:
        """Add a batch of states. Compiled, these additions would sort first; so they are not."""
        self.count_K.index_add_(0, count_B, torch.ones_like(count_B))
        self.rank_KR.view(-1).index_add_(0, bin_C, trained_C)
