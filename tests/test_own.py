"""Training on the model's own tokens: chains, what they show and cost, and fine-tuning a model of the zoo.

Shapes: B chains, A answer cells, V vocabulary.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from hardtail import HardtailError
from hardtail.models.weights import load_weights
from hardtail.schemes import Mixture, Own, Random, Scheme, View
from hardtail.schemes.named import scheme_named
from hardtail.study.recipes import recipe_named
from hardtail.training.begin import begun, identified
from hardtail.training.estimate import estimate
from hardtail.training.recipe import Recipe
from hardtail.training.run import train
from hardtail.training.step import SeenStates
from tests.conftest import Command
from tests.test_schemes import MASK, corpus, now, views

BATCH = 32


def shown(view: View) -> Tensor:
    """The answer that a view shows."""
    return view.tokens_BL[:, view.at_BA] if isinstance(view.at_BA, slice) else view.tokens_BL.gather(1, view.at_BA)


def written(view: View) -> Tensor:
    assert view.written_BA is not None
    return view.written_BA


def slow_loss(logits: Tensor, view: View, scored: str) -> float:
    """Sequence by sequence and cell by cell: the mean over hidden cells and, if they count, those with own tokens."""
    total = 0.0
    for b in range(len(logits)):
        cells = [
            i
            for i in range(logits.shape[1])
            if view.hidden_BA[b, i] or (scored == "answer" and bool(written(view)[b, i]))
        ]
        for i in cells:
            total -= float(logits[b, i].double().log_softmax(-1)[view.gold_BA[b, i]]) / len(cells) / len(logits)
    return total


@pytest.mark.parametrize("scheme", [Own(), Own(path=3, first="masked"), Own(path=3, scored="hidden")], ids=str)
def test_loss_against_the_formula(scheme: Own) -> None:
    mixed = 0
    for view, _ in views(scheme, corpus(), 6):
        logits = 2 * torch.randn((*view.gold_BA.shape, 14), generator=torch.Generator().manual_seed(1))
        assert float(scheme.loss(logits, view)) == pytest.approx(slow_loss(logits, view, scheme.scored), rel=1e-5)
        mixed += int((view.hidden_BA.any(dim=1) & written(view).any(dim=1)).sum())
    assert mixed > 0 or scheme.path == 1, "on a path some states have both kinds of cells"


def test_the_models_tokens_are_written_and_shown_ones_stay() -> None:
    """At a temperature of 0 the most probable tokens, never the mask, in all hidden cells; then over them again."""
    data, scheme = corpus(), Own(temperature=0.0, again=1.0)
    state = scheme.begin(data, BATCH, now(-1))
    generator = torch.Generator().manual_seed(0)
    first = scheme.corrupt(state, data, BATCH, now(0))
    open_BA, token_BA = first.hidden_BA, torch.zeros_like(first.gold_BA)
    assert not written(first).any()
    assert 0.3 < float(open_BA.float().mean()) < 0.7
    for step in range(4):
        view = scheme.corrupt(state, data, BATCH, now(step))
        assert torch.equal(view.row_B, first.row_B)
        if step:
            assert not view.hidden_BA.any()
            assert torch.equal(written(view), open_BA)
        wanted_BA = torch.where(open_BA, token_BA if step else MASK, first.gold_BA)
        assert torch.equal(shown(view), wanted_BA)
        logits = torch.randn((*view.gold_BA.shape, 14), generator=generator)
        logits[..., MASK] = 99.0
        scheme.advance(state, logits, view, data, now(step))
        logits[..., MASK] = -99.0
        token_BA = logits.argmax(dim=-1)


def test_a_path_fills_the_surest_cells_first_and_ends() -> None:
    """⌈hidden / steps left⌉ cells a step: of 8 cells in 3 steps 3, 3 and 2; the next sequence follows at once."""
    data, scheme = corpus(), Own(path=3, first="masked", scored="hidden", temperature=0.0)
    held = list(views(scheme, data, 7))
    assert [int(view.hidden_BA[0].sum()) for view, _ in held] == [8, 5, 2, 8, 5, 2, 8]
    assert [int(written(view)[0].sum()) for view, _ in held] == [0, 3, 6, 0, 3, 6, 0]
    state = scheme.begin(data, 4, now(-1))
    view = scheme.corrupt(state, data, 4, now(0))
    logits = torch.zeros(4, 8, 14)
    for cell, height in ((2, 3.0), (5, 4.0), (7, 5.0)):
        logits[:, cell, 1] = height
    logits[:, 0, MASK] = 50.0  # sure of the mask: does not count
    scheme.advance(state, logits, view, data, now(0))
    assert all(torch.nonzero(row).flatten().tolist() == [2, 5, 7] for row in state["written_BA"])
    assert (state["token_BA"][:, [2, 5, 7]] == 1).all()


def test_answers_are_shown_again_with_the_given_probability() -> None:
    for again, share in ((0.0, 0.0), (0.5, 0.5), (0.8, 0.8)):
        complete = [~view.hidden_BA.any(dim=1) for view, _ in views(Own(again=again), corpus(), 200)]
        # Of 1 / (1 - again) steps of a chain all but the first show a complete answer.
        assert float(torch.stack(complete[20:]).float().mean()) == pytest.approx(share, abs=0.03)


def test_a_field_that_would_do_nothing_is_refused() -> None:
    assert Own(scored="hidden").again == Own().again
    with pytest.raises(HardtailError, match=r"again=0\.9 with scored=hidden, which never shows a complete answer"):
        scheme_named("own,scored=hidden,again=0.9")


def test_warmer_tokens_are_wrong_more_often() -> None:
    """With one logit of 4 above thirteen others, p(top | T) = 1 / (1 + 12·exp(-4 / T)), the mask left out; T is uniform
    from 0 to the highest."""
    data, rates = corpus(), {}
    for temperature in (0.0, 2.0, 8.0):
        scheme = Own(temperature=temperature, first="masked")
        state = scheme.begin(data, 200, now(-1))
        wrong = []
        for step in range(20):
            view = scheme.corrupt(state, data, 200, now(step))
            logits = 4.0 * torch.nn.functional.one_hot(view.gold_BA, 14).float()
            tokens = scheme._tokens(logits.masked_fill(torch.arange(14) == MASK, -torch.inf), now(step))
            wrong.append((tokens != view.gold_BA).float().mean())
        heat = torch.linspace(1e-3, max(temperature, 1e-3), 1000)
        expected = float((1 - 1 / (1 + 12 * (-4 / heat).exp())).mean())
        rates[temperature] = float(torch.stack(wrong).mean())
        assert rates[temperature] == pytest.approx(expected, abs=0.02)
    assert rates[0.0] == 0.0


def test_a_mixture_scores_own_tokens_of_its_own_chains_only() -> None:
    """And chains whose place went to the other scheme wait."""
    data, own = corpus(300), Own(again=1.0)
    scheme = Mixture(own, Random(), share=0.5)
    waited = 0
    before: tuple[Tensor, Tensor] | None = None
    for view, state in views(scheme, data, 12):
        second_B = view.second_B  # type: ignore[attr-defined]
        assert not (written(view) & second_B[:, None]).any()
        assert torch.equal(
            shown(view)[second_B][~view.hidden_BA[second_B]], view.gold_BA[second_B][~view.hidden_BA[second_B]]
        )
        logits = torch.randn((*view.gold_BA.shape, 14), generator=torch.Generator().manual_seed(3))
        parts = [
            replace(view, hidden_BA=view.hidden_BA & mine[:, None], written_BA=written(view) & mine[:, None])
            for mine in (~second_B, second_B)
        ]
        torch.testing.assert_close(
            scheme.loss(logits, view), own.loss(logits, parts[0]) + Random().loss(logits, parts[1])
        )
        if before is not None:
            assert torch.equal(state["first/token_BA"][before[1]], before[0][before[1]])
            waited += int(before[1].sum())
        before = (state["first/token_BA"].clone(), second_B)
    assert waited > 0


@pytest.mark.parametrize(
    "scheme",
    [Own(), Own(path=3, again=0.8), Own(path=3, scored="hidden"), Mixture(Own(path=2, scored="hidden"), Own())],
    ids=str,
)
def test_cells_that_are_scored_count_as_trained(scheme: Scheme) -> None:
    """Those whose logits the loss moves: hidden ones under their number and rank, the others in row 0."""
    data = corpus()
    seen = SeenStates(data, scheme)
    count, hidden, shown = [0] * 9, 0, 0
    for view, _ in views(scheme, data, 8):
        logits = torch.randn((*view.gold_BA.shape, 14), generator=torch.Generator().manual_seed(4)).requires_grad_()
        scheme.loss(logits, view).backward()  # type: ignore[no-untyped-call]
        assert logits.grad is not None
        moved_BA = (logits.grad != 0).any(dim=-1)
        hidden, shown = hidden + int((moved_BA & view.hidden_BA).sum()), shown + int((moved_BA & ~view.hidden_BA).sum())
        for number in view.hidden_BA.sum(dim=1).tolist():
            count[number] += 1
        seen.add(*seen.bins(view))
    assert seen.count_K.tolist() == count
    assert seen.rank_KR.sum(dim=1)[1:].tolist() == [number * of for number, of in enumerate(count)][1:]
    assert (int(seen.rank_KR[1:].sum()), int(seen.rank_KR[0].sum())) == (hidden, shown)
    assert (shown > 0) == ("answer" in str(scheme))


# -- fine-tuning a model of the zoo -------------------------------------------------------------------------------


def tuning(scheme: Scheme | None = None) -> Recipe:
    recipe = recipe_named("addition-papl-paper-then-own")
    watch = replace(recipe.watch, log_every=2, eval_every=2, gen_every=0, save_every=2, probe_size=8, decoded=2)
    return replace(recipe, scheme=scheme or recipe.scheme, steps=5, batch=4, train_size=16, watch=watch)


def test_a_shipped_model_goes_on_and_a_stopped_run_ends_in_the_same_bytes(tmp_path: Path) -> None:
    recipe = tuning()
    train(recipe, tmp_path / "whole")
    steps: list[int] = []
    assert not train(recipe, tmp_path / "parts", progress=steps.append, should_stop=lambda: len(steps) == 3).finished
    assert train(recipe, tmp_path / "parts").finished
    for name in ("last.safetensors", "best_probe.safetensors", "coverage.json", "recipe.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name
    log = [json.loads(line) for line in (tmp_path / "whole" / "log.jsonl").read_text().splitlines()]
    probes = [line["probe_nll"] for line in log if "probe_nll" in line]
    assert probes[0] < 0.01, "it begins with a model that can add"
    model, about = load_weights(tmp_path / "whole" / "last.safetensors")
    assert about["recipe"]["fields"]["model"]["fields"]["name"] == "zoo:addition-papl-paper"
    assert model.header() == begun(recipe).header()


def test_a_log_counts_complete_answers_too(tmp_path: Path) -> None:
    """Four sums of 33 digits, hidden in the first of five steps and then shown as the model wrote them."""
    train(tuning(Own(first="masked", again=1.0)), tmp_path / "run")
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["tokens"] == 5 * 4 * 33
    coverage = json.loads((tmp_path / "run" / "coverage.json").read_text())
    assert {number: of for number, of in enumerate(coverage["by_count"]) if of} == {0: 16, 33: 4}
    assert [sum(coverage["by_count_and_rank"][number]) for number in (0, 33)] == [16 * 33, 4 * 33]


def test_the_command_line_takes_a_shipped_model(hardtail_command: Command, tmp_path: Path) -> None:
    words = ["train", "addition-papl-paper", "--model", "zoo:addition-papl-paper", "--dry-run"]
    code, out, err = hardtail_command(*words)
    assert code == 0, err
    assert "addition-papl-paper-addition-papl-paper" in out
    assert f"{estimate(tuning()).parameters:,}" in out
    for extra, reason in (
        (["--template", "{prompt}"], "zoo:addition-papl-paper reads problems alone"),
        (["--model", "zoo:addition-pampl"], "did you mean"),
        (["--model", "addition-papl"], "give hf: and a folder"),
        (["--model", "zoo:maze-random"], "zoo:maze-random cannot be trained on addition: the weights are for other"),
        (["--sizes.dropout", "0.2"], "keeps them; say so with --sizes.dropout 0.0, or leave --model out"),
        (["--sizes.mlp-ratio", "4", "--sizes.layers", "3"], "--sizes.layers 2 --sizes.mlp-ratio 3"),
    ):
        code, _, err = hardtail_command(*words, *extra)
        assert code == 2
        assert reason in err
    code, _, err = hardtail_command("train", "addition-random-then-own", "--template", "{prompt}", "--dry-run")
    assert (code, "--template is the text around a problem for --model hf:…" in err) == (2, True)


def test_a_shipped_model_of_another_task_or_another_file_is_refused() -> None:
    recipe = tuning()
    with pytest.raises(HardtailError, match="cannot be trained on addition: the weights are for other sequences"):
        begun(replace(recipe, model=identified("zoo:maze-random")))
    with pytest.raises(HardtailError, match=r"say so with --sizes\.dropout 0\.0"):
        begun(replace(recipe, sizes=replace(recipe.sizes, dropout=0.1)))
    assert recipe.model is not None
    with pytest.raises(HardtailError, match="has changed: its files have the hash"):
        begun(replace(recipe, model=replace(recipe.model, sha256="0" * 64)))


def test_what_is_published_names_a_shipped_model_as_it_is() -> None:
    held = identified("zoo:addition-puma")
    assert held.published == held
