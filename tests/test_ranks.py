"""One training in two processes: the gradient of the whole batch, exact resumption, and one voice."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hardtail.core.errors import HardtailError
from hardtail.schemes.mixture import Mixture
from hardtail.schemes.named import scheme_named
from hardtail.schemes.random import Random
from hardtail.study.recipes import recipe_named
from hardtail.training.keeper import _named
from hardtail.training.ranks import Alone, Ranks, open_ranks
from hardtail.training.run import train
from hardtail.training.step import Shared
from tests.ranks_toys import STEPS, recorded, stepping
from tests.test_step import Work, as_if_on_a_gpu

TWO = ("-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2")
TRAIN = ("train", "addition-puma-smoke", "--steps", "24", "--batch", "8", "--train-size", "60", "--device", "cpu")
WATCH = ("--watch.log-every", "4", "--watch.eval-every", "10", "--watch.gen-every", "0", "--watch.save-every", "10")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=300)


def in_two(*words: str) -> subprocess.CompletedProcess[str]:
    done = run(*TWO, *words)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("scheme", ["puma", "random,weighting=batch"])
def test_two_processes_take_the_step_of_one_with_both_batches(scheme: str, tmp_path: Path) -> None:
    """One process is shown what the two were shown, and must have their gradient and their losses.

    Weights are not compared: Adam divides a gradient by its size, and so turns the rounding of tiny ones into steps.
    """
    in_two("-m", "tests.ranks_toys", str(tmp_path), scheme)
    first, second = (load_file(tmp_path / f"{rank}.safetensors") for rank in range(2))
    assert torch.equal(first["weight_P"], second["weight_P"])
    whole = stepping(scheme, Alone())
    shown = iter(range(STEPS))

    def corrupt(*given: object) -> object:
        place = next(shown)

        def both(name: str) -> torch.Tensor:
            return torch.cat([first[f"{name}/{place}"], second[f"{name}/{place}"]])

        row_B = 2 * both("row_B") + torch.arange(8) // 4  # the place in all data of a row of a share
        rate_B = both("rate_B") if f"rate_B/{place}" in first else None
        return whole.corpus.rows(row_B).hide(both("hidden_BA"), whole.corpus, rate_B)

    whole._parts = replace(whole._parts, corrupt=corrupt, advance=lambda *given: None)  # type: ignore[arg-type]
    _, gradients = recorded(whole)
    losses = []
    for _ in range(STEPS):
        whole()
        losses.append(whole.loss.clone())
    torch.testing.assert_close(torch.stack(losses), first["losses"], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradients[0], first["gradient_P"], rtol=1e-5, atol=1e-7)
    rows = [torch.cat([held[f"row_B/{place}"] for place in range(STEPS)]) for held in (first, second)]
    assert not torch.equal(*rows), "both drew from the same stream"


def test_a_run_of_two_processes_resumes_exactly_and_with_two_only(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    done = in_two("-m", "hardtail", *TRAIN, *WATCH, "--out", str(whole))
    assert done.stdout.count("finished at step 24 (eager on the CPU, 2 processes)") == 1, "only one of them speaks"
    for step in ("0", "12"):  # before the first step, the first process alone has measured something
        in_two("-m", "tests.stopped_at", step, *TRAIN, *WATCH, "--out", str(cut))
    assert not (cut / "finished.json").exists()
    alone = run("-m", "hardtail", *TRAIN, *WATCH, "--out", str(cut))
    assert alone.returncode == 2
    assert "is trained by 2 processes, and this is 1 process; continue it with torchrun" in alone.stderr
    in_two("-m", "hardtail", *TRAIN, *WATCH, "--out", str(cut))
    for file in ("last.safetensors", "best_probe.safetensors", "coverage.json"):
        assert (whole / file).read_bytes() == (cut / file).read_bytes(), file
    coverage = json.loads((whole / "coverage.json").read_text())
    assert sum(coverage["by_count"]) == 24 * 8, "the states of both are counted"


def test_what_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    for scheme, accumulate in ((Mixture(second=Random(weighting="batch")), 1), (Random(weighting="batch"), 2)):
        with pytest.raises(HardtailError, match="several processes cannot share exactly"):
            Shared(scheme, 3, accumulate, torch.device("cpu"))
    Shared(scheme_named("mixture"), 3, 2, torch.device("cpu"))
    corpus = stepping("random", Alone()).corpus
    with pytest.raises(HardtailError, match="101 training instances cannot be shared by 102 processes"):
        corpus.share(0, 102)
    three = Alone()
    three.world = 3
    with pytest.raises(HardtailError, match="a batch of 64 cannot be shared by 3 processes; start a number that div"):
        train(replace(recipe_named("addition-random-smoke"), batch=64), tmp_path / "run", ranks=three)
    assert not (tmp_path / "run").exists()


def test_every_instance_is_one_ranks_and_ranks_have_equal_shares() -> None:
    corpus = stepping("random", Alone()).corpus
    shares = [corpus.share(rank, 3) for rank in range(3)]
    assert {len(share) for share in shares} == {33}
    whole = torch.stack([share.tokens_NL for share in shares], dim=1).flatten(0, 1)
    assert torch.equal(whole, corpus.tokens_NL[:99])


def test_without_torchrun_a_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for world in ("", "1", "none"):
        monkeypatch.setenv("WORLD_SIZE", world)
        with open_ranks("cpu") as (ranks, device):
            assert (ranks.world, ranks.first, device, ranks.seed(7)) == (1, True, "cpu", 7)


class Asking(Alone):
    """One process that asks for agreement as one of several does."""

    agree = Ranks.agree


@pytest.mark.parametrize("ranks", [Alone(), Asking()], ids=["one", "several"])
def test_patience_ends_a_run_at_the_same_step_however_many_train_it(ranks: Ranks, tmp_path: Path) -> None:
    """Nothing is learned, so the probe of step 0 stays the best."""
    recipe = recipe_named("addition-random-smoke")
    still = replace(recipe.optimiser, lr=1e-30, floor=0.0, weight_decay=0.0)
    watch = replace(recipe.watch, eval_every=7, log_every=100, gen_every=0, save_every=12)
    recipe = replace(recipe, steps=40, optimiser=still, watch=watch)
    ended = train(recipe, tmp_path / "run", device="cpu", patience=5, ranks=ranks)
    assert (ended.step, ended.patience) == (7, 5)

    def cut(step: int) -> None:
        if step == 13:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "cut", device="cpu", progress=cut, ranks=ranks)
    resumed = train(recipe, tmp_path / "cut", device="cpu", patience=5, ranks=ranks)
    assert (resumed.step, resumed.patience) == (12, 5), "it had run out before"


class Doubled(Alone):
    """One of two processes with the same share of everything."""

    world = 2

    def sum(self, vector_P: torch.Tensor) -> None:
        vector_P.mul_(2)


@pytest.mark.parametrize("scheme", ["puma", "random,weighting=batch"])
def test_on_a_gpu_the_sum_is_between_two_captured_parts(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of two equal gradients is that gradient; what is captured takes no step by itself."""
    eager, captured = stepping(scheme, Doubled()), stepping(scheme, Doubled())
    parts: list[str] = []

    def capture(work: Work, device: torch.device, warm_up: int) -> Work:
        work()

        def replay() -> None:
            parts.append(work.__name__)
            work()

        return replay

    as_if_on_a_gpu(monkeypatch, capture)
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    monkeypatch.setattr(captured, "device", torch.device("cuda"))
    assert captured.compile() == "compiled, two CUDA graphs around a sum, 2 processes"
    captured.device = torch.device("cpu")
    for _ in range(3):
        eager()
        captured()
    assert parts == ["_give", "_receive"] * 3
    for name, tensor in eager.tensors().items():
        assert torch.equal(tensor, captured.tensors()[name]), name


def test_a_state_names_what_other_processes_have_by_their_ranks() -> None:
    """Another name, and no state that people have would be continued."""
    others = [{"row_B": torch.tensor([rank])} for rank in (1, 2)]
    assert {name: int(tensor) for name, tensor in _named(others).items()} == {"rank 1/row_B": 1, "rank 2/row_B": 2}
