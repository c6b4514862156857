"""The one decoding loop: look, score, commit, until nothing is hidden; everything it does is in the trace.

A row's result depends on nothing but that row. Forward passes always have the same number of rows, because matrix
products of another shape may round differently. On a GPU the step is captured as one graph, which computes all rows of
the batch; where rows end at very different times, because the policy remasks, there are graphs for fewer rows, too. A
step that cannot be captured, and any step on a CPU, leaves out those that are finished.

Our transformer predicts only cells that may be hidden, and a few more where a row has fewer of them than others that
are decoded with it. At other cells the logits are 0, which no policy reads.

Shapes: N instances, B batch, K rows of further passes, L sequence, A answer cells, C cells to predict, V vocabulary.
"""

import operator
import reprlib
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from functools import partial
from itertools import islice
from threading import get_ident
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.noise import gumbel, row_keys, stream
from hardtail.core.types import MOST_STEPS, Instances, Trace, refuse_long, token_dtype
from hardtail.decoding.asked import Asked
from hardtail.decoding.events import Events, Segment, joined
from hardtail.decoding.options import Decoding
from hardtail.decoding.sizes import batch_rows, batches, in_flight, pass_rows, predicted, tile
from hardtail.decoding.workers import Progress, predicts_some, spread, worker_count
from hardtail.models.capture import captured
from hardtail.models.denoiser import Denoiser, ModelDenoiser, refuse_strangers, refuse_unread
from hardtail.models.transformer import first_cells, hooked
from hardtail.policies.base import REFUSED, Guess, Policy, State, fitting, only_hidden, ranked, refuse_unscored
from hardtail.policies.named import name_of

PLAIN = Decoding()
KEPT_LOOPS = 8
"""Loops with captured steps that a denoiser on a GPU keeps."""
WINDOW = 16
"""Batches among which rows of similar length are grouped."""
LOOK_EVERY = 8
"""Steps on a GPU between checks whether all rows are finished."""
_TOKEN = stream("token")


def decode(
    denoiser: Denoiser,
    instances: Instances,
    policy: Policy,
    decoding: Decoding = PLAIN,
    *,
    progress: Progress = lambda done: None,
    about: Mapping[str, Any] | None = None,
) -> Trace:
    """Decode every instance from fully hidden maskable cells.

    `progress` gets the number of instances just finished; `about` goes into the trace.
    """
    return Trace.concat(list(decode_stream(denoiser, instances, policy, decoding, progress=progress, about=about)))


@torch.inference_mode()
def decode_stream(
    denoiser: Denoiser,
    instances: Instances,
    policy: Policy,
    decoding: Decoding = PLAIN,
    *,
    progress: Progress = lambda done: None,
    about: Mapping[str, Any] | None = None,
) -> Generator[Trace, None, None]:
    """Like `decode`, but yield one part at a time, in the order of the instances, to save memory."""
    if not len(instances):
        raise HardtailError("there is nothing to decode: no instances were given")
    refuse_long(instances)
    refuse_unread(denoiser, instances.tokens_NL)
    workers, length = worker_count(denoiser, decoding), instances.tokens_NL.shape[1]
    rows = batch_rows(in_flight(len(instances), decoding), len(instances), tile(length), workers)
    window = rows * WINDOW
    length_N = instances.maskable_NA.sum(axis=1)
    every_N = np.full_like(length_N, instances.answer_len)
    predicted_N = predicted(length_N, instances.answer_len, decoding) if predicts_some(denoiser) else every_N
    starts = range(0, len(instances), window)
    # Rows of similar length end together.
    orders = [start + np.argsort(-length_N[start : start + window], kind="stable") for start in starts]
    windows = [batches(order_N, predicted_N, rows) for order_N in orders]
    jobs = ((instances.take(index_B), int(predicted_N[index_B[0]])) for window in windows for index_B in window)

    def begin(denoiser: Denoiser, moved: Progress) -> Callable[[tuple[Instances, int]], Trace]:
        loops: dict[int, _Loop] = {}

        def run(job: tuple[Instances, int]) -> Trace:
            batch, cells = job
            if cells not in loops:
                loops[cells] = _begun(denoiser, policy, decoding, batch, rows, cells)
            return loops[cells].run(batch, dict(about or {}), moved)

        return run

    with closing(spread(jobs, begin, denoiser, decoding, progress)) as done:
        for order_N, parts in zip(orders, windows, strict=True):
            yield Trace.concat(list(islice(done, len(parts)))).take(np.argsort(order_N, kind="stable"))


def _begun(denoiser: Denoiser, policy: Policy, decoding: Decoding, like: Instances, rows: int, cells: int) -> "_Loop":
    """A loop for batches like this one. A GPU's are kept with our own denoisers, since capturing a step takes longer
    than many of its replays: strata, and calls one after another, share them. Those of a model that was changed are
    not, as they would not see its next change."""
    on_gpu = torch.device(decoding.device).type == "cuda"
    if not on_gpu or not isinstance(denoiser, ModelDenoiser) or not denoiser.untouched:
        return _Loop(denoiser, policy, decoding, like, rows, cells)
    # A step reads its weights where they are, and they may be moved or replaced.
    weights = denoiser.precision, *(weight.data_ptr() for weight in denoiser.model.parameters())
    shape = rows, like.tokens_NL.shape[1], like.answer_len, cells, tuple(like.orders)
    alike = (policy, decoding, weights, shape, get_ident())  # another thread decodes in tensors of its own
    try:
        kept = denoiser.loops.get(alike)
    except TypeError:  # fields that cannot be compared
        return _Loop(denoiser, policy, decoding, like, rows, cells)
    if kept is None:
        kept = denoiser.loops[alike] = _Loop(denoiser, policy, decoding, like, rows, cells)
        while len(denoiser.loops) > KEPT_LOOPS:
            denoiser.loops.pop(next(iter(denoiser.loops)))
    assert isinstance(kept, _Loop)
    return kept


class _Loop:
    """The tensors of one batch, and the step that advances them; used for one batch after another.

    No row may hide more cells than are `predicted`.
    """

    def __init__(
        self, denoiser: Denoiser, policy: Policy, decoding: Decoding, like: Instances, rows: int, predicted: int
    ) -> None:
        self.policy, self.commit = policy, decoding.commit
        self.seed, self.temperature = decoding.seed, decoding.temperature
        self.rows, self.device = rows, (device := torch.device(decoding.device))
        self.cells = like.answer_len

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
        self.cell_BC = zeros(rows, predicted)
        """The cells that are predicted."""
        self.gold_BA = zeros(rows, self.cells)
        self.passes_B = zeros(rows)
        self.unscored = zeros(dtype=torch.bool)
        """Whether a hidden cell of this batch had no score; asked once at the end, as asking waits for a GPU."""
        self.events = Events(rows, self.cells, policy.remasks, device)
        self._fill(like)
        tile = pass_rows(like.tokens_NL.shape[1], rows, decoding)
        self.asked = Asked(denoiser, self.state.tokens_BL, self._at_BC, tile, decoding)
        self.state.vocab_size = self.asked.vocab_size
        self._begin()
        model = denoiser.model if isinstance(denoiser, ModelDenoiser) else None
        foreign = model is not None and (hooked(model) or not model.capturable)  # a replay would call no hook
        self.graphs = self._captured(like) if replays(device) and policy.capturable and not foreign else {}
        """By the number of rows that are computed, the captured step; none if it is not captured."""

    # -- one batch ----------------------------------------------------------------------------------------------

    def run(self, instances: Instances, about: Mapping[str, Any], progress: Progress) -> Trace:
        """Decode up to `rows` instances."""
        gold_NA = instances.answer_NA
        refuse_strangers(int(gold_NA.max(where=instances.maskable_NA, initial=0)), self.asked.predicted)
        refuse_strangers(int(gold_NA.max()), self.state.vocab_size)  # what is never hidden is only looked up
        self._fill(instances)
        self._begin()
        n, most = len(instances), self._steps(int(instances.maskable_NA.sum(axis=1).max()))
        segments: list[Segment] = []
        left = active = n
        for step in range(most):
            if self.policy.remasks or not self.graphs or step % LOOK_EVERY == 0:
                active = int(self._active_B().sum())
            if not active:
                break
            if self.policy.remasks and self.events.crowded:
                segments.append(self.events.flush(n))
            self._step(active)
            progress(n * (step + 1) // most - n * step // most)
            left = n - n * (step + 1) // most
        segments.append(self.events.flush(n))
        refuse_unscored(self.unscored, self.policy)
        progress(left)
        if bool(self.state.hidden_BA.any()):
            raise HardtailError(f"{self.policy} left cells hidden after {most} steps; its `steps` must allow more")
        kind = token_dtype(self.state.vocab_size)
        answer_NA = self.state.token_BA[:n].cpu().numpy().astype(kind)
        passes_N, notes = self.passes_B[:n].to(torch.int32).cpu().numpy(), self._notes(n)
        written = joined(segments)
        written["token_NT"] = written["token_NT"].astype(kind)
        return Trace(instances, self.state.mask_id, answer_NA, **written, about=about, passes_N=passes_N, notes=notes)

    def _active_B(self) -> Tensor:
        """The rows that have something left to do."""
        return ~fitting(self.policy.finished(self.state), self.state.key_B, self.policy, "finished")

    def _notes(self, n: int) -> dict[str, NDArray[Any]]:
        """What the policy reports about the first `n` rows."""
        told = {
            name: fitting(note_B, self.state.key_B, self.policy, "notes")
            for name, note_B in self.policy.notes(self.state).items()
        }
        return {name: note_B[:n].cpu().numpy().copy() for name, note_B in told.items()}  # the next batch reuses memory

    def _begin(self) -> None:
        """The policy's own memory, which stays in the same tensors for every batch."""
        memory = self.policy.begin(self.state)
        if not isinstance(memory, Mapping) or not all(isinstance(fresh, Tensor) for fresh in memory.values()):
            raise HardtailError(f"{self.policy}: begin returned {reprlib.repr(memory)}; it must be a dict of tensors")
        for name, fresh in memory.items():
            self.state.memory.setdefault(name, fresh).copy_(fresh)

    def _steps(self, cells: int) -> int:
        asked = self.policy.steps(cells, self.commit)
        try:
            most = operator.index(asked)
        except TypeError:
            raise HardtailError(f"{self.policy}: steps returned {asked!r}; it must be a whole number") from None
        if most > MOST_STEPS:
            fewer = "; give it fewer `rounds`" if hasattr(self.policy, "rounds") else ""
            raise HardtailError(
                f"{name_of(self.policy)} may take {most:,} steps, and a trace can record at most {MOST_STEPS:,}{fewer}"
            )
        return most

    def _fill(self, instances: Instances) -> None:
        """Put instances into the batch; rows that they do not fill have nothing to do."""
        state, n = self.state, len(instances)

        def put(target: Tensor, array: NDArray[Any]) -> None:
            target[:n].copy_(torch.from_numpy(array))
            target[n:].copy_(target[:1].expand_as(target[n:]))

        put(state.tokens_BL, instances.tokens_NL)
        put(state.at_BA, instances.answer_at_NA)
        put(state.maskable_BA, instances.maskable_NA)
        self.cell_BC.copy_(first_cells(state.maskable_BA, self.cell_BC.shape[1]))
        put(state.key_B, instances.prompt_len_N)
        state.key_B.copy_(row_keys(state.tokens_BL, state.key_B, self.seed))
        put(self.gold_BA, instances.answer_NA)
        for name, rank_BA in state.orders.items():
            put(rank_BA, instances.orders[name])
        state.hidden_BA.copy_(state.maskable_BA)
        state.hidden_BA[n:] = False
        state.tokens_BL.scatter_(1, state.at_BA, self.gold_BA.masked_fill(state.hidden_BA, state.mask_id))
        state.step.zero_()
        self.passes_B.zero_()
        self.unscored.zero_()
        self.events.used_B.zero_()

    # -- one step -----------------------------------------------------------------------------------------------

    def _step(self, active: int) -> None:
        """One step, of which at least the `active` rows are computed."""
        if self.graphs:
            self.graphs[min(rows for rows in self.graphs if rows >= active)]()
        else:
            self._once()

    def _once(self, computed: int | None = None) -> None:
        """One step that computes this many rows, the active ones first; by default the active ones alone."""
        state, policy = self.state, self.policy
        active_B = self._active_B()
        self.passes_B.add_(active_B)
        guess = self._look(active_B, computed)
        if policy.remasks and (anew_BA := policy.overwrite(guess, state)) is not None:
            self._hide(fitting(anew_BA, state.hidden_BA, policy, "overwrite"), guess)
        score_BA = fitting(policy.score(guess, state), state.hidden_BA, policy, "score")
        self.unscored.logical_or_((score_BA.isnan() & state.hidden_BA).any())
        score_BA = only_hidden(score_BA, state.hidden_BA)
        hidden_B = state.hidden_BA.sum(dim=1)
        count_B = fitting(policy.count(guess, score_BA, state, self.commit), hidden_B, policy, "count")
        count_B = count_B.clamp(min=1).minimum(hidden_B)
        token_BA = fitting(policy.token(guess, state), guess.token_BA, policy, "token")
        best_BA, cell_BA = ranked(score_BA)
        chosen_BA = torch.arange(self.cells, device=self.device) < count_B[:, None]
        commit_BA = torch.zeros_like(chosen_BA).scatter_(1, cell_BA, chosen_BA)
        next_B1 = count_B[:, None].clamp(max=self.cells - 1)
        next_score_B1 = best_BA.gather(1, next_B1)
        last_B1 = (count_B == hidden_B)[:, None] | (next_score_B1 <= REFUSED)
        runner_up_B1 = cell_BA.gather(1, next_B1).masked_fill(last_B1, -1)
        margin_BA = (best_BA - next_score_B1).masked_fill(last_B1, torch.nan)
        self._note(guess, cell_BA, chosen_BA, token_BA, token_BA, runner_up_B1, margin_BA)
        self._write(commit_BA, token_BA)
        state.hidden_BA.logical_and_(~commit_BA)
        if policy.remasks:
            self._hide(fitting(policy.review(guess, state, self._further), state.hidden_BA, policy, "review"), guess)
        state.step.add_(1)

    def _hide(self, again_BA: Tensor, guess: Guess) -> None:
        """Hide written cells."""
        state = self.state
        again_BA = again_BA & state.maskable_BA & ~state.hidden_BA
        first_BA, cell_BA = ranked(again_BA.to(torch.uint8))
        mask_BA = torch.full_like(cell_BA, state.mask_id)
        nothing_BA = torch.full_like(guess.top_BA, torch.nan)
        none_B1 = torch.full_like(cell_BA[:, :1], -1)
        self._note(guess, cell_BA, first_BA.bool(), mask_BA, state.token_BA, none_B1, nothing_BA)
        self._write(again_BA, mask_BA)
        state.hidden_BA.logical_or_(again_BA)

    def _note(self, guess: Guess, *event: Tensor) -> None:
        self.events.note(guess, self.state.step, self.gold_BA, *event)

    def _write(self, where_BA: Tensor, token_BA: Tensor) -> None:
        """Change the answer in the sequence."""
        self.state.tokens_BL.scatter_(1, self.state.at_BA, torch.where(where_BA, token_BA, self.state.token_BA))

    @property
    def _at_BC(self) -> Tensor:
        """Where the cells sit that are predicted."""
        return self.state.at_BA.gather(1, self.cell_BC)

    def _computed(self, active_B: Tensor, computed: int | None) -> Tensor:
        """The rows that a step computes; all of them in their order."""
        if computed is None:
            return active_B.nonzero()[:, 0]
        if computed == self.rows:
            return torch.arange(self.rows, device=self.device)
        return torch.argsort(active_B.to(torch.uint8), descending=True, stable=True)[:computed]

    def _look(self, active_B: Tensor, computed: int | None) -> Guess:
        state, row_K = self.state, self._computed(active_B, computed)
        logits_BAV = self.asked.logits(state.tokens_BL[row_K], self._at_BC[row_K])
        if logits_BAV.shape[:2] != state.at_BA.shape:
            logits_KCV = logits_BAV
            logits_BAV = torch.zeros((self.rows, self.cells, state.vocab_size), device=self.device)
            logits_BAV[row_K[:, None], self.cell_BC[row_K]] = logits_KCV
        log_p_BAV = logits_BAV.log_softmax(dim=-1)
        top_BA, token_BA = log_p_BAV.max(dim=-1)
        if self.temperature > 0:
            noise_BAV = self.state.noise(_TOKEN, *logits_BAV.shape[1:])
            # 0 for the most probable token, so that only impossible tokens become -inf at a tiny temperature.
            below_BAV = (log_p_BAV - top_BA[..., None]) / self.temperature
            token_BA = (below_BAV + gumbel(noise_BAV)).argmax(dim=-1)
        return Guess(logits_BAV, log_p_BAV, token_BA, top_BA)

    def _further(self, tokens_KL: Tensor, at_KA: Tensor, row_K: Tensor) -> Tensor:
        """The logits of sequences that a policy makes up, counted as passes of the rows that they are for."""
        self.passes_B.add_(torch.bincount(row_K, minlength=self.rows))
        return self.asked.some_cells(tokens_KL, at_KA, self.state.at_BA[row_K], self.rows)

    def _captured(self, like: Instances) -> dict[int, Callable[[], None]]:
        """The step as CUDA graphs, for all rows and, if the policy remasks, for halves of them down to one forward
        pass; none, with a warning, if it cannot be captured."""
        sizes = [self.rows]
        while self.policy.remasks and sizes[-1] > self.asked.tile:
            sizes.append(max(sizes[-1] // 2, self.asked.tile))
        graphs = {}
        try:
            for rows in sizes:
                self._fill(like)  # a warm-up takes a step
                self._begin()
                graphs[rows] = captured(partial(self._once, rows), self.device, warm_up=1)
        except RuntimeError as error:
            warnings.warn(f"{self.policy} could not be captured and runs step by step: {error}", stacklevel=2)
            return {}
        return graphs


def replays(device: torch.device) -> bool:
    """Whether steps can be captured there and replayed."""
    return device.type == "cuda"
