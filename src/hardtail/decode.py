"""The one decoding loop: look, score, commit, until nothing is hidden; everything it does is in the trace.

A row's result depends on nothing but that row. On a CPU forward passes always have the same number of rows, because
matrix products of another shape may round differently; on a GPU the batch is fixed and the step captured as one graph.

Shapes: N instances, B batch, L sequence, A answer cells, T events, V vocabulary.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardtail.denoiser import Denoiser
from hardtail.errors import HardtailError
from hardtail.noise import mix, stream
from hardtail.policies.base import REFUSED, Commit, Guess, Policy, State, only_hidden, ranked
from hardtail.types import NO_EVENT, Instances, Trace

ONE = Commit()
CPU_BATCH = 32
"""Rows in flight on a CPU; every tile divides it."""
TILE_TOKENS = 2048
"""Tokens of a forward pass on a CPU: activations stay in its caches, and matrix products are still large."""
GPU_BATCH = 512
WINDOW = 16
"""Batches among which rows of like length are put together."""
LOOK_EVERY = 8
"""Steps between questions to a GPU whether all rows are finished."""
_TOKEN = stream("token")


def decode(
    denoiser: Denoiser,
    instances: Instances,
    policy: Policy,
    commit: Commit = ONE,
    *,
    batch: int | None = None,
    device: str | torch.device = "cpu",
    seed: int = 0,
    temperature: float = 0.0,
    allowed: Sequence[int] | None = None,
    progress: Callable[[int], None] = lambda done: None,
    about: Mapping[str, Any] | None = None,
) -> Trace:
    """Decode every instance from fully hidden maskable cells.

    `allowed`      the tokens that may be committed; by default all but the mask
    `temperature`  0 commits the most probable token, more samples one from p^(1/temperature)
    `batch`        rows at a time: a bound on memory that changes no result
    `progress`     gets the number of instances that were just finished
    """
    options: dict[str, Any] = {"batch": batch, "device": device, "seed": seed, "temperature": temperature}
    parts = decode_stream(denoiser, instances, policy, commit, **options, allowed=allowed, about=about)
    kept: list[Trace] = []
    for part in parts:
        kept.append(part)
        progress(len(part))
    return Trace.concat(kept)


@torch.inference_mode()
def decode_stream(
    denoiser: Denoiser,
    instances: Instances,
    policy: Policy,
    commit: Commit = ONE,
    *,
    batch: int | None = None,
    device: str | torch.device = "cpu",
    seed: int = 0,
    temperature: float = 0.0,
    allowed: Sequence[int] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Iterator[Trace]:
    """As `decode`, a part at a time and in the instances' order, so that any number of them fits in memory."""
    device = torch.device(device)
    _refuse(instances, batch, temperature)
    rows = batch or (GPU_BATCH if device.type == "cuda" else CPU_BATCH)
    if device.type == "cpu":
        rows = -(-rows // CPU_BATCH) * CPU_BATCH
    rows = min(rows, -(-len(instances) // CPU_BATCH) * CPU_BATCH)
    loop: _Loop | None = None
    for start in range(0, len(instances), rows * WINDOW):
        window = instances.take(slice(start, start + rows * WINDOW))
        length_N = window.maskable_NA.sum(axis=1)
        order_N = np.argsort(-length_N, kind="stable")  # rows of like length end together
        done: list[Trace] = []
        for at in range(0, len(window), rows):
            chosen = window.take(order_N[at : at + rows])
            if loop is None:
                loop = _Loop(denoiser, policy, commit, chosen, rows, device, seed, temperature, allowed)
            done.append(loop.run(chosen, dict(about or {})))
        yield Trace.concat(done).take(np.argsort(order_N, kind="stable"))


def tile(length: int) -> int:
    """Rows of a forward pass on a CPU: a power of two that depends on the sequences' length alone."""
    fitting = max(TILE_TOKENS // length, 4)
    return min(1 << (fitting.bit_length() - 1), CPU_BATCH)


def _refuse(instances: Instances, batch: int | None, temperature: float) -> None:
    if not len(instances):
        raise HardtailError("there is nothing to decode: no instance was given")
    if batch is not None and batch < 1:
        raise HardtailError(f"the batch is {batch}; it must be at least 1")
    if temperature < 0:
        raise HardtailError(f"the temperature is {temperature}; it is 0 for the most probable token, or more")


class _Loop:
    """The tensors of one batch, and the step that moves them on; used for one batch after another."""

    def __init__(
        self,
        denoiser: Denoiser,
        policy: Policy,
        commit: Commit,
        like: Instances,
        rows: int,
        device: torch.device,
        seed: int,
        temperature: float,
        allowed: Sequence[int] | None,
    ) -> None:
        self.denoiser, self.policy, self.commit = denoiser, policy, commit
        self.rows, self.device, self.seed, self.temperature = rows, device, seed, temperature
        self.cells = like.answer_len
        self.capacity = 8 * self.cells if policy.remasks else self.cells

        def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.state = State(
            tokens_BL=zeros(rows, like.tokens_NL.shape[1]),
            at_BA=zeros(rows, self.cells),
            hidden_BA=zeros(rows, self.cells, dtype=torch.bool),
            maskable_BA=zeros(rows, self.cells, dtype=torch.bool),
            key_B=zeros(rows),
            step=zeros(),
            mask_id=denoiser.mask_id,
            orders={name: zeros(rows, self.cells, dtype=torch.float32) for name in like.orders},
        )
        self.gold_BA = zeros(rows, self.cells)
        self.used_B = zeros(rows)
        # One column more than there can be events: whatever is no event is written there.
        self.events = {name: zeros(rows, self.capacity + 1, dtype=dtype) for name, dtype in _EVENTS.items()}
        self.allowed_V = self._allowed(like, allowed)
        self.state.vocab_size = len(self.allowed_V)
        self._load(like)
        self._step = self._captured(like) if device.type == "cuda" and not policy.remasks else self._once

    # -- one batch ----------------------------------------------------------------------------------------------

    def run(self, instances: Instances, about: Mapping[str, Any]) -> Trace:
        """Decode up to `rows` instances."""
        self._load(instances)
        n, most = len(instances), self.policy.steps(int(instances.maskable_NA.sum(axis=1).max()), self.commit)
        segments: list[_Segment] = []
        for step in range(most):
            if (self.device.type == "cpu" or step % LOOK_EVERY == 0) and bool(self.policy.finished(self.state).all()):
                break
            if self.policy.remasks and int(self.used_B.max()) + 2 * self.cells > self.capacity:
                segments.append(self._flush(n))
            self._step()
        segments.append(self._flush(n))
        answer_NA = self.state.token_BA[:n].to(torch.uint8).cpu().numpy()
        return Trace(instances, self.denoiser.mask_id, answer_NA, **_joined(segments), about=about)

    def _load(self, instances: Instances) -> None:
        """Put instances into the batch, before the first step."""
        self._fill(instances)
        for name, fresh in self.policy.begin(self.state).items():
            self.state.memory.setdefault(name, fresh).copy_(fresh)

    def _fill(self, instances: Instances) -> None:
        """The instances' tensors; a batch that they do not fill gets rows that have nothing to do."""
        state, n = self.state, len(instances)

        def put(target: Tensor, array: NDArray[Any]) -> None:
            target[:n].copy_(torch.from_numpy(array))
            target[n:].copy_(target[:1].expand_as(target[n:]))

        put(state.tokens_BL, instances.tokens_NL)
        put(state.at_BA, instances.answer_at_NA)
        put(state.maskable_BA, instances.maskable_NA)
        put(state.key_B, _keys(instances, self.seed))
        put(self.gold_BA, instances.answer_NA)
        for name, rank_BA in state.orders.items():
            put(rank_BA, instances.orders[name])
        state.hidden_BA.copy_(state.maskable_BA)
        state.hidden_BA[n:] = False
        state.tokens_BL.scatter_(1, state.at_BA, self.gold_BA.masked_fill(state.hidden_BA, state.mask_id))
        state.step.zero_()
        self.used_B.zero_()

    # -- one step -----------------------------------------------------------------------------------------------

    def _once(self) -> None:
        state, policy = self.state, self.policy
        guess = self._look()
        score_BA = only_hidden(policy.score(guess, state), state.hidden_BA)
        hidden_B = state.hidden_BA.sum(dim=1)
        count_B = policy.count(guess, score_BA, state, self.commit).clamp(min=1).minimum(hidden_B)
        best_BA, cell_BA = ranked(score_BA)
        chosen_BA = torch.arange(self.cells, device=self.device) < count_B[:, None]
        commit_BA = torch.zeros_like(chosen_BA).scatter_(1, cell_BA, chosen_BA)
        next_B1 = count_B[:, None].clamp(max=self.cells - 1)
        next_score_B1 = best_BA.gather(1, next_B1)
        last_B1 = (count_B == hidden_B)[:, None] | (next_score_B1 <= REFUSED)
        runner_up_B1 = cell_BA.gather(1, next_B1).masked_fill(last_B1, -1)
        margin_BA = (best_BA - next_score_B1).masked_fill(last_B1, torch.nan)
        self._note(guess, cell_BA, chosen_BA, guess.token_BA, guess.token_BA, runner_up_B1, margin_BA)
        self._write(commit_BA, guess.token_BA)
        state.hidden_BA.logical_and_(~commit_BA)
        if policy.remasks:
            again_BA = policy.review(guess, state, self._logits) & state.maskable_BA & ~state.hidden_BA
            first_BA, cell_BA = ranked(again_BA.to(torch.uint8))
            mask_BA = torch.full_like(cell_BA, state.mask_id)
            nothing_BA = torch.full_like(margin_BA, torch.nan)
            none_B1 = torch.full_like(runner_up_B1, -1)
            self._note(guess, cell_BA, first_BA.bool(), mask_BA, state.token_BA, none_B1, nothing_BA)
            self._write(again_BA, mask_BA)
            state.hidden_BA.logical_or_(again_BA)
        state.step.add_(1)

    def _write(self, where_BA: Tensor, token_BA: Tensor) -> None:
        """Change the answer in the sequence."""
        self.state.tokens_BL.scatter_(1, self.state.at_BA, torch.where(where_BA, token_BA, self.state.token_BA))

    def _note(
        self,
        guess: Guess,
        cell_BA: Tensor,
        chosen_BA: Tensor,
        token_BA: Tensor,
        judged_BA: Tensor,
        runner_up_B1: Tensor,
        margin_BA: Tensor,
    ) -> None:
        """Append one event for each chosen cell. `cell_BA` lists cells from the best on and `chosen_BA` says how many
        of them; `token_BA` (what is written) and `judged_BA` (whose probability is noted) are by cell."""
        log_p_BA = guess.log_p_BAV.gather(-1, judged_BA[..., None])[..., 0]
        gold_log_p_BA1 = guess.log_p_BAV.gather(-1, self.gold_BA[..., None])
        columns = {
            "cell_NT": cell_BA,
            "step_NT": self.state.step.expand_as(cell_BA),
            "token_NT": token_BA.gather(1, cell_BA),
            "prob_NT": log_p_BA.exp().gather(1, cell_BA),
            "gold_prob_NT": gold_log_p_BA1[..., 0].exp().gather(1, cell_BA),
            "gold_rank_NT": (guess.log_p_BAV > gold_log_p_BA1).sum(dim=-1).gather(1, cell_BA),
            "runner_up_NT": runner_up_B1.expand_as(cell_BA),
            "margin_NT": margin_BA,
        }
        place_BA = self.used_B[:, None] + torch.arange(self.cells, device=self.device)
        place_BA = place_BA.masked_fill(~chosen_BA, self.capacity)
        for name, column_BA in columns.items():
            self.events[name].scatter_(1, place_BA, column_BA.to(_EVENTS[name]))
        self.used_B.add_(chosen_BA.sum(dim=1))

    def _look(self) -> Guess:
        logits_BAV = self._logits(self.state.tokens_BL, self.state.at_BA)
        log_p_BAV = logits_BAV.log_softmax(dim=-1)
        top_BA, token_BA = log_p_BAV.max(dim=-1)
        if self.temperature > 0:
            noise_BAV = self.state.noise(_TOKEN, *logits_BAV.shape[1:])
            token_BA = (log_p_BAV / self.temperature - (-noise_BAV.log()).log()).argmax(dim=-1)
        return Guess(logits_BAV, log_p_BAV, token_BA, top_BA)

    def _logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        """Logits in float32, tokens that may not be committed at -inf; any number of rows, looked at in tiles."""
        rows = tile(tokens_BL.shape[1]) if self.device.type == "cpu" else self.rows
        n = len(tokens_BL)
        if short := -n % rows:
            tokens_BL, at_BA = (torch.cat([part, part[:1].expand(short, -1)]) for part in (tokens_BL, at_BA))
        tiles = zip(torch.split(tokens_BL, rows), torch.split(at_BA, rows), strict=True)
        logits_BAV = torch.cat([self.denoiser.logits(tokens, at).float() for tokens, at in tiles])[:n]
        return logits_BAV.masked_fill(~self.allowed_V, -torch.inf)

    def _allowed(self, like: Instances, allowed: Sequence[int] | None) -> Tensor:
        """Which tokens may be committed; never the mask. How many there are is seen from the denoiser's answer."""
        self._fill(like)
        few = tile(self.state.tokens_BL.shape[1])
        size = self.denoiser.logits(self.state.tokens_BL[:few], self.state.at_BA[:few]).shape[-1]
        token_V = torch.arange(size, device=self.device)
        allowed_V = token_V != self.denoiser.mask_id
        if allowed is not None:
            allowed_V &= torch.isin(token_V, torch.tensor(list(allowed), dtype=torch.int64, device=self.device))
        if not bool(allowed_V.any()):
            raise HardtailError("no token may be committed: `allowed` names none besides the mask")
        return allowed_V

    def _captured(self, like: Instances) -> Callable[[], None]:
        """The step as one CUDA graph; eager, and said aloud, where it cannot be captured."""
        graph = torch.cuda.CUDAGraph()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(aside):
                self._once()
            torch.cuda.current_stream().wait_stream(aside)
            with torch.cuda.graph(graph):
                self._once()
        except RuntimeError as error:
            warnings.warn(f"{self.policy} could not be captured and runs step by step: {error}", stacklevel=2)
            return self._once
        return graph.replay

    def _flush(self, n: int) -> "_Segment":
        """The events noted so far, of the first `n` rows; there is room for new ones afterwards."""
        used_N = self.used_B[:n].cpu().numpy().copy()
        self.used_B.zero_()
        longest = int(used_N.max())
        happened_NT = np.arange(longest) < used_N[:, None]
        arrays: dict[str, NDArray[Any]] = {}
        for name, buffer in self.events.items():
            array_NT = buffer[:n, :longest].cpu().numpy()
            arrays[name] = np.where(happened_NT, array_NT, array_NT.dtype.type(NO_EVENT.get(name, 0)))
        return used_N, arrays


_Segment = tuple[NDArray[np.int64], dict[str, NDArray[Any]]]
_EVENTS = {
    "cell_NT": torch.int16,
    "step_NT": torch.int16,
    "token_NT": torch.uint8,
    "prob_NT": torch.float32,
    "gold_prob_NT": torch.float32,
    "gold_rank_NT": torch.int32,
    "runner_up_NT": torch.int16,
    "margin_NT": torch.float32,
}


def _joined(segments: Sequence[_Segment]) -> dict[str, NDArray[Any]]:
    """The events of several segments behind each other, row by row without gaps."""
    if len(segments) == 1:
        return segments[0][1]
    total_N = np.sum([used_N for used_N, _ in segments], axis=0)
    n, longest = len(total_N), int(total_N.max())
    joined = {
        name: np.full((n, longest), NO_EVENT.get(name, 0), dtype=array.dtype) for name, array in segments[0][1].items()
    }
    offset_N = np.zeros(n, dtype=np.int64)
    for used_N, arrays in segments:
        row_K, event_K = np.nonzero(np.arange(int(used_N.max())) < used_N[:, None])
        for name, array in arrays.items():
            joined[name][row_K, offset_N[row_K] + event_K] = array[row_K, event_K]
        offset_N += used_N
    return joined


def _keys(instances: Instances, seed: int) -> NDArray[np.int64]:
    """A random word per instance from the seed and the problem's own tokens, wherever it stands in the batch."""
    seen_NL = np.where(
        np.arange(instances.tokens_NL.shape[1]) < instances.prompt_len_N[:, None], instances.tokens_NL, 0
    )
    key_N = mix(torch.full((len(instances),), seed, dtype=torch.int64))
    for token_N in torch.from_numpy(seen_NL.astype(np.int64)).unbind(dim=1):
        key_N = mix(key_N + token_N)
    return key_N.numpy()
