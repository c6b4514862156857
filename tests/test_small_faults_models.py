"""What small faults change and no other test held, in models, samplers of others, diagnoses and claims."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.pretrained import Pretrained
from hardtail.core.records import jsonable
from hardtail.core.types import TraceSource
from hardtail.decoding.elsewhere import PolicyElsewhere
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.diagnosis import diagnose
from hardtail.measuring.diagnosis.coverage import compare, visits
from hardtail.measuring.evaluate import evaluate, measured_instances
from hardtail.measuring.models import denoiser_of, subject_of
from hardtail.models.hf.loading import load_hf, outlined
from hardtail.policies.base import Commit
from hardtail.policies.named import policy_named
from hardtail.schemes.base import Corpus
from hardtail.schemes.random import Random
from hardtail.study.claims.evidence import Estimate
from hardtail.study.claims.ledger import claim_named
from hardtail.tasks.addition.task import Addition
from hardtail.traces import states
from hardtail.training.gradient import Predicted
from tests import hf_toys
from tests.planted import adder
from tests.test_schemes import now

SMALL = Addition(digits=4)


# -- models -----------------------------------------------------------------------------------------------------------


class Logits(nn.Module):
    """Remembers in which mode it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.modes = nn.Embedding(SMALL.vocabulary.size, SMALL.vocabulary.size), list[bool]()

    def forward(self, tokens_BL: Tensor) -> Tensor:
        self.modes.append(self.training)
        return self.table(tokens_BL)


@pytest.mark.parametrize("training", [True, False])
def test_a_users_module_is_asked_in_evaluation_mode_and_left_as_it_was(training: bool) -> None:
    module = Logits().train(training)
    instances = measured_instances(SMALL, "natural", 3, 0)
    decode(subject_of(module, SMALL).denoiser, instances, policy_named("top1"))
    assert set(module.modes) == {False}
    assert module.training == training


def test_a_users_module_that_fails_is_left_as_it_was() -> None:
    def broken(tokens_BL: Tensor) -> Tensor:
        raise KeyError("x")

    module = Logits().train()
    module.forward = broken  # type: ignore[method-assign]
    with pytest.raises(KeyError):
        denoiser_of(module, 3).logits(torch.zeros((1, 4), dtype=torch.int64), torch.zeros((1, 2), dtype=torch.int64))
    assert module.training


@pytest.mark.parametrize("named", [{"attn_implementation": "someone/kernels"}, {"auto_map": {"AutoConfig": "x.Y"}}])
def test_the_outline_of_a_model_runs_no_code_of_its_own(
    named: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe names a model; to estimate what its training takes runs nothing that came with it."""
    name, path = hf_toys.saved(tmp_path / "model", "bert"), tmp_path / "model" / "config.json"
    plain = outlined(Pretrained(name, ""), SMALL.vocabulary)
    assert all(tensor.is_meta for tensor in plain.parameters())
    assert sum(map(torch.numel, plain.parameters())) == sum(
        map(torch.numel, load_hf(name, SMALL.vocabulary).model.parameters())
    )
    path.write_text(json.dumps(json.loads(path.read_text()) | named))
    (tmp_path / "model" / "x.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Y: ...\n")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    if "auto_map" in named:
        outlined(Pretrained(name, ""), SMALL.vocabulary)
    else:
        with pytest.raises(HardtailError, match="names attention code on the Hub"):
            outlined(Pretrained(name, ""), SMALL.vocabulary)
    assert not (tmp_path / "ran").exists()


def test_a_step_predicts_the_answer_as_one_piece_where_every_cell_can_be_hidden() -> None:
    """A piece of each sequence is a view; cells that are picked out one by one are copies."""
    task = hardtail.task("addition", digits=5)
    corpus = Corpus.on(torch.device("cpu"), task.sample(8, "natural", seed=0), task.vocabulary.mask_id)
    view = Random().corrupt({}, corpus, 4, now(0))
    assert isinstance(view.at_BA, slice)
    assert Predicted(corpus).at(view) is view.at_BA


# -- samplers of other projects ---------------------------------------------------------------------------------------


def kept(policy: PolicyElsewhere, given: Sequence[int] | None, sure: float = 0.0) -> list[int]:
    """How many of eight masked tokens are kept in each of three steps; nothing is ever written."""
    x, mask_id = torch.full((2, 8), 3), 3
    logits = torch.zeros((2, 8, 5))
    logits[:, :3, 1] = sure
    count = None if given is None else torch.tensor(given)
    steps = [policy.transfer_index(logits, 0.0, "", x == mask_id, x, count)[1] for _ in range(3)]
    assert all(bool((keep.sum(dim=1) == keep.sum(dim=1)[:1]).all()) for keep in steps)
    return [int(keep.sum(dim=1)[0]) for keep in steps]


@pytest.mark.parametrize(
    ("name", "commit", "given", "wanted"),
    [
        ("top1", Commit(), [2, 2], [2, 2, 2]),  # the sampler says how many
        ("top1", Commit(each=3), None, [3, 3, 3]),
        ("top1", Commit(steps=4), None, [2, 3, 4]),  # of eight, with four, three and two steps left
        ("threshold", Commit(), [2, 2], [3, 3, 3]),  # the policy decides: three tokens are sure
    ],
)
def test_how_many_tokens_a_sampler_keeps(name: str, commit: Commit, given: list[int] | None, wanted: list[int]) -> None:
    assert kept(PolicyElsewhere(policy_named(name), 3, commit), given, sure=20.0) == wanted


def test_random_order_in_a_sampler_depends_on_its_seed_and_the_step() -> None:
    x, mask_id = torch.full((1, 40), 3), 3
    logits = torch.zeros((1, 40, 5))

    def orders(seed: int) -> list[list[bool]]:
        policy = PolicyElsewhere(policy_named("random"), mask_id, Commit(each=9), seed)
        return [policy.transfer_index(logits, 0.0, "", x == mask_id, x)[1][0].tolist() for _ in range(2)]

    assert orders(1) == orders(1)
    assert len({tuple(order) for seed in (1, 2) for order in orders(seed)}) == 4


# -- measuring --------------------------------------------------------------------------------------------------------


def test_a_decode_in_one_step_is_recorded_as_one() -> None:
    instances = measured_instances(SMALL, "natural", 4, 0)
    subject = subject_of(adder(SMALL), SMALL)
    record = evaluate(subject, "threshold", policy_named("threshold,p=0.01"), instances, "natural", Decoding()).record
    assert (record.steps, record.passes) == (1, 1.0)


def test_a_trace_of_another_size_of_the_task_is_not_diagnosed() -> None:
    trace = decode(adder(SMALL), SMALL.sample(4, Streams(0).named("misfit")), policy_named("top1"))
    with pytest.raises(HardtailError, match=r"the trace has sequences of \d+ with 5 answer cells, this configuration"):
        diagnose(Addition(digits=5), trace)


@pytest.mark.parametrize("name", ["addition", "maze", "listops"])
@pytest.mark.parametrize("policy", ["top1", "remdm,eta=0.5"])
def test_a_diagnosis_in_parts_is_that_of_the_whole(name: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large trace is read in parts that fit in memory."""
    small: dict[str, dict[str, Any]] = {"addition": {"digits": 5}, "maze": {"size": 3}}
    task = hardtail.task(name, **small.get(name, {}))
    instances = task.sample(11, "natural", seed=3)
    rng = np.random.default_rng(0)
    table = torch.from_numpy(rng.normal(size=(64, task.vocabulary.size))).float()

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return 3 * table[(tokens_BL.sum(dim=1, keepdim=True) + 7 * at_BA) % 64]

    trace = decode(subject_of(logits, task).denoiser, instances, policy_named(policy))
    order = task.order_names[0]
    trained = visits(
        decode(subject_of(logits, task).denoiser, instances.take(slice(0, 4)), policy_named("random")), order
    )
    whole, gap = jsonable(diagnose(task, trace)), compare(trace, trained, order)
    monkeypatch.setattr(
        states, "_BLOCK", 3 * (instances.answer_len + 1) * max(instances.answer_len + 1, states.steps_of(trace))
    )
    assert [len(part) for part in states.blocks(trace)] == [3, 3, 3, 2]
    assert jsonable(diagnose(task, trace)) == whole
    assert compare(trace, trained, order) == gap


def test_what_a_trace_says_about_itself_is_read_as_what_it_should_be() -> None:
    about = {"model": 5, "policy": "top1", "seed": "seven", "step": 3, "device": None, "other": "x"}
    assert TraceSource.of(about) == TraceSource(model="5", policy="top1", step=3)
    assert TraceSource.of({"seed": 4, "step": "x"}) == TraceSource(seed=4)


# -- claims -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "signed", "shown"),
    [(99.94, False, "99.940"), (100.0, False, "100"), (-100.0, True, "-100"), (50_000.0, True, "+50,000")],
)
def test_large_figures_are_shown_without_decimals(mean: float, signed: bool, shown: str) -> None:
    assert Estimate(mean, None, None, 1).text(signed=signed) == shown


def test_the_interval_of_a_figure_is_shown_with_both_ends() -> None:
    assert Estimate(0.984, 0.9694, 0.9922, 3).text() == "0.984 [0.969, 0.992]"
    for one_end in (Estimate(0.5, None, 0.6, 1), Estimate(0.5, 0.4, None, 1)):
        assert one_end.text() == "0.500"


def test_three_claims_are_suggested_for_one_that_does_not_exist() -> None:
    with pytest.raises(HardtailError, match="did you mean ") as refused:
        claim_named("addition.random.ls")
    assert str(refused.value).count(",") == 2
    with pytest.raises(HardtailError, match="`hardtail claims` lists them all"):
        claim_named("zzzzzz")
    assert claim_named("addition.random.lsb").id == "addition.random.lsb"
