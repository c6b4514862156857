"""Every registered scheme and policy keeps its contract; a plug-in is tested by being registered."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import hardtail
from hardtail.core.noise import Moment
from hardtail.core.registry import POLICIES, SCHEMES
from hardtail.policies.base import Guess, Logits, Policy, State
from hardtail.policies.named import policy_named
from hardtail.schemes import Corpus, Random, Scheme, View
from hardtail.schemes.base import Carried
from hardtail.study.recipes import recipe_named
from hardtail.testing import check_policy, check_scheme
from hardtail.training.run import train


@pytest.mark.parametrize("name", SCHEMES.names())
def test_scheme(name: str) -> None:
    check_scheme(SCHEMES.load(name)())


@pytest.mark.parametrize("name", POLICIES.names())
def test_policy(name: str) -> None:
    check_policy(policy_named(name))


class Asking(Random):
    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        return super().loss(logits_BAV, view) * float(view.hidden_BA.sum().item() > 0)


class Leaking(Random):
    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        return super().loss(logits_BAV, view) + logits_BAV.float().square().mean()


class Greedy(Random):
    def hide(self, maskable_BA: Tensor, now: Moment) -> tuple[Tensor, Tensor]:
        hidden_BA, rate_B = super().hide(maskable_BA, now)
        return torch.ones_like(hidden_BA), rate_B


class Blank(Random):
    """Says that it wrote every cell that it shows, and wrote the mask."""

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        view = super().corrupt(state, corpus, batch, now)
        return view.with_tokens(~view.hidden_BA, torch.full_like(view.gold_BA, corpus.mask_id))


class Twice(Random):
    """Says that hidden cells are written, too."""

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        view = super().corrupt(state, corpus, batch, now)
        return view.with_tokens(view.hidden_BA, view.gold_BA)


class Fixed(Random):
    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        return super().corrupt(state, corpus, batch, Moment(0, now.step, now.steps))


class Absent(Random):
    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        return None  # type: ignore[return-value]


class Apiece(Random):
    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        return super().loss(logits_BAV, view)[None]


class Constant(Random):
    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        return torch.tensor(1.0)


@pytest.mark.parametrize(
    ("scheme", "found", "told"),
    [
        (Absent(), "corrupt does not return a View", "Absent: corrupt returned None; it must be a View"),
        (Apiece(), "not a scalar", r"Apiece: loss returned a tensor \[1\]; it must be one number"),
        (Constant(), "not depend on the logits", r"a tensor \[\] without a gradient; it must be one number"),
    ],
)
def test_a_scheme_that_returns_something_else_is_told_so(scheme: Scheme, found: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=found):
        check_scheme(scheme)
    with pytest.raises(hardtail.HardtailError, match=told):
        train(replace(recipe_named("addition-random-smoke"), scheme=scheme, steps=1), tmp_path / "run")


@pytest.mark.parametrize(
    ("scheme", "sentence"),
    [
        (Asking(), "loss reads a value on the host"),
        (Leaking(), "shows its gold token has a gradient"),
        (Blank(), "a written cell shows the mask"),
        (Twice(), "a written cell cannot be written"),
        (Fixed(), "another seed gives the same"),
    ],
)
def test_a_scheme_that_breaks_its_promise_is_found(scheme: Scheme, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_scheme(scheme)


def test_a_scheme_that_hides_what_is_never_hidden_is_found() -> None:
    with pytest.raises(AssertionError, match="never hidden is hidden"):
        check_scheme(Greedy(), hardtail.task("sudoku"))


class Doubling(Policy):
    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA.double()


class Neighbourly(Policy):
    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA * guess.top_BA.mean().sign() + guess.top_BA.roll(1, dims=0)


class Impatient(Policy):
    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA

    def finished(self, state: State) -> Tensor:
        return torch.ones_like(state.hidden_BA[:, 0])


class Curious(Policy):
    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA if guess.top_BA.sum() < 0 else -guess.top_BA


class Masking(Policy):
    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA

    def token(self, guess: Guess, state: State) -> Tensor:
        token_BA = guess.token_BA.clone()
        token_BA[~state.hidden_BA] = guess.token_BA[~state.hidden_BA]
        return token_BA


class Nosy(Policy):
    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA

    def finished(self, state: State) -> Tensor:
        return ~state.hidden_BA.any(dim=1) if state.hidden_BA.any() else super().finished(state)


class Revising(Policy):
    """Says that its steps can be captured."""

    remasks = True

    @property
    def capturable(self) -> bool:
        return True

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA


class Rewriting(Revising):
    def overwrite(self, guess: Guess, state: State) -> Tensor | None:
        return None if state.hidden_BA.any() else torch.zeros_like(state.hidden_BA)


class Regretting(Revising):
    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        return torch.zeros_like(state.hidden_BA).index_fill(1, state.hidden_BA.sum().nonzero()[:, 0], value=False)


class LookingAgain(Revising):
    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        first_1 = torch.zeros_like(state.key_B[:1])
        logits(state.tokens_BL[:1], state.at_BA[:1], first_1)
        return torch.zeros_like(state.hidden_BA)


class Uncaptured(Rewriting):
    """May look again, and ask."""

    @property
    def capturable(self) -> bool:
        return False

    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        row_K = state.hidden_BA.any(dim=1).nonzero()[:, 0]
        logits(state.tokens_BL[row_K], state.at_BA[row_K], row_K)
        return torch.zeros_like(state.hidden_BA)


def test_only_a_step_that_is_captured_may_not_ask_the_host() -> None:
    check_policy(Revising())
    check_policy(Uncaptured())


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (Doubling(), "scores are not float32"),
        (Neighbourly(), "depends on"),
        (Impatient(), "counts as finished"),
        (Curious(), "score reads a value on the host"),
        (Masking(), r"token reads a value on the host \(index by a mask\)"),
        (Nosy(), "finished reads a value on the host"),
        (Rewriting(), "overwrite reads a value on the host"),
        (Regretting(), r"review reads a value on the host \(nonzero\)"),
        (LookingAgain(), "review makes a further pass, which a captured step cannot"),
    ],
)
def test_a_policy_that_breaks_its_promise_is_found(policy: Policy, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_policy(policy)
