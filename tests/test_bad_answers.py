"""Denoisers, policies, files and requests that are not what they should be: one sentence, and nothing lost."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hardtail import HardtailError, Streams
from hardtail.cli.common import usable_device
from hardtail.core.records import LogLine, read_jsonl
from hardtail.core.trace_files import load_trace, save_trace
from hardtail.core.types import Array
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.decoding.sizes import tile
from hardtail.measuring.choices import chosen_policies
from hardtail.measuring.evaluate import evaluate_all, records_of
from hardtail.measuring.explain import explain_traces
from hardtail.measuring.one_pass import probe
from hardtail.measuring.subject import load_subject
from hardtail.models.denoiser import Function, ModelDenoiser
from hardtail.models.transformer import Transformer
from hardtail.models.weights import save_weights
from hardtail.policies.base import Commit, Guess, Logits, Policy, State
from hardtail.policies.confidence import Top1
from hardtail.policies.named import policy_named
from hardtail.policies.remask import P2
from hardtail.show.scoreboard import eval_tables
from hardtail.tasks.named import task_of
from hardtail.tasks.stored import stored_trace
from tests.conftest import Command
from tests.decoding_toys import CELLS, MASK, TOY, VOCAB, hashed_logits, problems, same_trace
from tests.test_evaluate import ADDITION, tiny

# -- denoisers --------------------------------------------------------------------------------------------------------


def with_nan(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
    logits_BAV = hashed_logits(tokens_BL, at_BA)
    logits_BAV[3, 2, 1] = torch.nan
    return logits_BAV


@pytest.mark.parametrize("policy", ["top1", "l2r", "p2"])
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (with_nan, "NaN"),
        (lambda tokens_BL, at_BA: torch.full((*at_BA.shape, VOCAB), -torch.inf), "-inf for every token"),
        (lambda tokens_BL, at_BA: torch.zeros((*tokens_BL.shape, VOCAB)), r"\[32, 9, vocabulary\]"),
        (lambda tokens_BL, at_BA: torch.zeros(at_BA.shape), "shape"),
        (lambda tokens_BL, at_BA: torch.zeros(()).expand(*at_BA.shape, (1 << 20) + 1), "below 1,048,576"),
        (lambda tokens_BL, at_BA: hashed_logits(tokens_BL, at_BA).numpy(), "ndarray; they must be a torch tensor"),
    ],
)
def test_a_denoisers_answer_that_is_none(policy: str, function: Callable[..., torch.Tensor], words: str) -> None:
    with pytest.raises(HardtailError, match=words):
        decode(Function(function, MASK), problems(40), policy_named(policy))


def test_a_denoiser_of_another_vocabulary() -> None:
    with pytest.raises(HardtailError, match="predicts only 3 tokens; its vocabulary differs"):
        decode(Function(lambda tokens_BL, at_BA: torch.zeros((*at_BA.shape, 3)), 0), problems(40), Top1())
    with pytest.raises(HardtailError, match="its mask is -1"):
        decode(Function(hashed_logits, -1), problems(40), Top1())


def test_logits_in_bfloat16_are_read_as_float32() -> None:
    low = Function(lambda tokens_BL, at_BA: hashed_logits(tokens_BL, at_BA).bfloat16(), MASK)
    same = Function(lambda tokens_BL, at_BA: hashed_logits(tokens_BL, at_BA).bfloat16().float(), MASK)
    assert same_trace(decode(low, problems(40), Top1()), decode(same, problems(40), Top1()))


@pytest.mark.parametrize("eta", [0.0, 1.0, 4.0])
def test_a_token_that_became_impossible_does_not_stop_p2(eta: float) -> None:
    """Each cell's only possible token changes in every step; cells that are never hidden come first."""

    def fickle(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        hidden_B1 = (tokens_BL == MASK).sum(dim=1, keepdim=True)
        only_BA = (hidden_B1 + at_BA) % MASK
        return torch.nn.functional.one_hot(only_BA, VOCAB).float().log()

    instances = problems(60)
    maskable_NA = instances.maskable_NA & (np.arange(CELLS) >= 3)
    trace = decode(Function(fickle, MASK), replace(instances, maskable_NA=maskable_NA), P2(eta=eta))
    assert (trace.answer_NA != MASK).all()


# -- policies ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slow(Policy):
    """Commits one cell whatever is asked for, and does not say that it takes so many steps."""

    def score(self, guess: Guess, state: State) -> torch.Tensor:
        return guess.top_BA

    def count(self, guess: Guess, score_BA: torch.Tensor, state: State, commit: Commit) -> torch.Tensor:
        return torch.ones_like(state.key_B)


@dataclass(frozen=True)
class Misshapen(Policy):
    """Scores tokens, not cells."""

    def score(self, guess: Guess, state: State) -> torch.Tensor:
        return guess.log_p_BAV


@dataclass(frozen=True)
class Outside(Policy):
    """Scores that are no tensor; printed whole they would fill the screen."""

    def score(self, guess: Guess, state: State) -> torch.Tensor:
        return guess.top_BA.numpy()  # type: ignore[return-value]


@dataclass(frozen=True)
class Halves(Policy):
    """Counts in fractions, or hides cells again by a score."""

    remasks = True
    counts: bool = True

    def score(self, guess: Guess, state: State) -> torch.Tensor:
        return guess.top_BA

    def count(self, guess: Guess, score_BA: torch.Tensor, state: State, commit: Commit) -> torch.Tensor:
        return state.hidden_BA.sum(dim=1) / 2 if self.counts else super().count(guess, score_BA, state, commit)

    def review(self, guess: Guess, state: State, logits: Logits) -> torch.Tensor:
        return torch.zeros_like(guess.top_BA)


@dataclass(frozen=True)
class Forgetful(Policy):
    """Says nothing where something is asked of it."""

    says: str = "all"

    def score(self, guess: Guess, state: State) -> torch.Tensor:
        return guess.top_BA

    def begin(self, state: State) -> dict[str, torch.Tensor]:
        return super().begin(state) if self.says != "memory" else None  # type: ignore[return-value]

    def steps(self, cells: int, commit: Commit) -> int:
        return super().steps(cells, commit) if self.says != "steps" else None  # type: ignore[return-value]

    def finished(self, state: State) -> torch.Tensor:
        return super().finished(state) if self.says != "end" else None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Forgetful("memory"), "begin returned None; it must be a dict of tensors"),
        (Forgetful("steps"), "steps returned None; it must be a whole number"),
        (Forgetful("end"), r"finished returned None; it must be \[\d+\] of torch.bool"),
        (Slow(), "left cells hidden after 3 steps"),
        (Misshapen(), "score returned a tensor"),
        (Outside(), r"^Outside\(\): score returned array.{1,40}; it must be \[\d+, \d+\] of torch.float32$"),
        (Halves(), "count returned a tensor .* of torch.float32; it must be .* of torch.int64"),
        (Halves(counts=False), "review returned a tensor .* of torch.float32; it must be .* of torch.bool"),
    ],
)
def test_a_policy_that_breaks_its_promise(policy: Policy, words: str) -> None:
    with pytest.raises(HardtailError, match=words):
        decode(TOY, problems(40), policy, Decoding(Commit(each=3)))


@pytest.mark.parametrize("name", ["block,size=1" + 30 * "0", "topk,k=1" + 30 * "0"])
def test_numbers_that_no_tensor_holds(name: str) -> None:
    with pytest.raises(HardtailError, match="between -2\\^62 and 2\\^62"):
        policy_named(name)


@pytest.mark.parametrize("change", [{"temperature": float("nan")}, {"temperature": float("inf")}, {"seed": 1 << 70}])
def test_an_option_that_is_no_number_for_it(change: dict[str, Any]) -> None:
    with pytest.raises(HardtailError, match=next(iter(change))):
        Decoding(**change)
    with pytest.raises(HardtailError, match="below 2\\^31"):
        Commit(each=1 << 40)


def test_a_tiny_temperature_is_no_other_than_none() -> None:
    first = Function(
        lambda tokens_BL, at_BA: hashed_logits(tokens_BL, at_BA).roll(1, dims=-1), 0
    )  # the mask is token 0
    cold, none = (
        decode(first, problems(40), Top1(), Decoding(temperature=temperature)) for temperature in (1e-42, 0.0)
    )
    assert (cold.answer_NA[cold.instances.maskable_NA] != 0).all()
    np.testing.assert_array_equal(cold.token_NT, none.token_NT)


def test_a_device_that_computes_nothing_is_refused() -> None:
    with pytest.raises(HardtailError, match="--device meta"):
        usable_device("meta")


def test_a_gpu_that_is_too_small_is_one_sentence(hardtail_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*words: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nSee the documentation")

    monkeypatch.setattr("hardtail.measuring.plan.evaluate_all", full)
    code, _, err = hardtail_command("eval", "zoo:addition-puma", "--device", "cpu")
    *plan, sentence = err.splitlines()
    assert (code, len(plan)) == (2, 1)
    assert "a smaller batch" in sentence


# -- evaluations ------------------------------------------------------------------------------------------------------


def test_every_look_of_the_probe_has_the_same_number_of_rows() -> None:
    """Matrix products of another shape may round differently, and then the NLL would depend on `--batch`."""
    rows: set[int] = set()
    subject, instances = tiny(ADDITION), ADDITION.sample(70, Streams(0).named("probe"))

    def watched(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        rows.add(len(tokens_BL))
        return subject.denoiser.logits(tokens_BL, at_BA)

    seen = replace(subject, denoiser=Function(watched, subject.denoiser.mask_id))
    found = {probe(seen, instances, "natural", Decoding(batch=batch)).probe_nll for batch in (None, 7, 64)}
    assert (len(found), rows) == (1, {tile(ADDITION.seq_len)})
    one, twice = (probe(seen, instances.take(np.zeros(n, dtype=int)), "natural", Decoding()) for n in (1, 2))
    assert one.probe_nll == twice.probe_nll


def test_a_model_of_nan_has_no_probe() -> None:
    """It would be kept as a record with NaN, which is no JSON."""
    subject = tiny(ADDITION)
    assert isinstance(subject.denoiser, ModelDenoiser)
    with torch.no_grad():
        next(subject.denoiser.model.parameters()).fill_(torch.nan)
    with pytest.raises(HardtailError, match="tiny: the model's logits hold NaN"):
        probe(subject, ADDITION.sample(3, Streams(0).named("probe")), "natural", Decoding())


def test_tables_of_many_policies_fit_a_screen() -> None:
    subject = tiny(ADDITION)
    names = ("top1", "max-logit", "margin", "entropy", "random", "l2r", "r2l", "lsb", "eb")
    found = evaluate_all(subject, chosen_policies(ADDITION, names), ["natural"], 2, Decoding(), data_seed=0)
    tables = eval_tables(subject, records_of(list(found)))
    assert max(table.width for table in tables) <= 80
    *accuracies, probes = tables[: [table.title for table in tables].index("one pass with everything hidden") + 1]
    shown = [column for table in accuracies for column in table.columns]
    assert shown == [word for group in (names[:3], names[3:6], names[6:]) for word in ("stratum", *group)]
    assert probes.columns == ("stratum", "probe NLL", "n")
    assert probes.rows[0][2] == 2


def test_the_probe_joins_the_only_table_of_accuracy_where_it_fits() -> None:
    subject = tiny(ADDITION)
    found = evaluate_all(subject, chosen_policies(ADDITION, ("top1", "lsb")), ["natural"], 2, Decoding(), data_seed=0)
    first, passes, *_ = eval_tables(subject, records_of(list(found)))
    assert first.columns == ("stratum", "top1", "lsb", "probe NLL", "n")
    assert passes.texts() == [["natural", f"{ADDITION.most_hidden}.0", f"{ADDITION.most_hidden}.0"]]


def test_results_that_cannot_be_kept_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hardtail_command: Command
) -> None:
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    few = ("--policies", "l2r", "--strata", "natural", "-n", "2", "--each", "33", "--json")
    out = tmp_path / "out.jsonl"
    out.write_text('{"kind":')  # the middle of a line: nothing may be added after it
    code, shown, err = hardtail_command("eval", "zoo:addition-puma", *few, "--out", str(out))
    assert (code, shown) == (2, "")
    assert err == f"hardtail: {out} ends in the middle of a line; fix or move it, then try again\n"
    out.unlink()
    monkeypatch.setattr("os.fsync", full)
    code, shown, err = hardtail_command("eval", "zoo:addition-puma", *few, "--out", str(out))
    assert (code, json.loads(shown)[0]["n"]) == (2, 2)
    assert "No space left on device" in err.splitlines()[-1]


# -- files ------------------------------------------------------------------------------------------------------------


def test_processes_that_keep_records_at_once_lose_none(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hardtail.core.files import sole_writer\n"
        "from hardtail.core.records import LogLine, append_jsonl\n"
        "path = Path(sys.argv[1])\n"
        "for i in range(50):\n"
        "    with sole_writer(path, wait=60): append_jsonl(path, [LogLine(how=sys.argv[2], step=i)])"
    )
    path = tmp_path / "records.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), str(who)]) for who in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert sorted((line.how, line.step) for line in read_jsonl(path, LogLine)) == sorted(
        (str(who), i) for who in range(4) for i in range(50)
    )


def test_a_trace_that_cannot_be_described_leaves_the_old_one(tmp_path: Path) -> None:
    path, trace = tmp_path / "t.npz", decode(TOY, problems(5), Top1())
    save_trace(path, trace)
    with pytest.raises(TypeError):
        save_trace(path, replace(trace.take(slice(2)), about={"what": object()}))
    assert len(load_trace(path)) == 5
    assert len(list(tmp_path.iterdir())) == 2


Change = Callable[[dict[str, Array], dict[str, Any]], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, said: said.update(parts=0),
        lambda arrays, said: said.update(count=99),
        lambda arrays, said: said.update(parts="many"),
        lambda arrays, said: said.update(about=None),
        lambda arrays, said: said["about"].update(task="antigravity:fly"),
        lambda arrays, said: said["about"].update(config={"preset": "paper"}),
        lambda arrays, said: arrays.update(cell_NT=arrays["cell_NT"] + 99),
        lambda arrays, said: arrays.update(cell_NT=arrays["cell_NT"].astype(np.float32)),
        lambda arrays, said: arrays.update(prob_NT=arrays["prob_NT"][:, :2]),
        lambda arrays, said: arrays.update(answer_NA=arrays["answer_NA"][:3]),
        lambda arrays, said: arrays.update({"instances/parents_NAE": arrays["instances/parents_NAE"] + 99}),
        lambda arrays, said: arrays.update({"instances/orders/lsb": arrays["instances/orders/lsb"][:, :2]}),
        lambda arrays, said: arrays.update({"instances/maskable_NA": 3 * arrays["instances/maskable_NA"]}),
        lambda arrays, said: arrays.update({"instances/prompt_len_N": arrays["instances/prompt_len_N"] + 99}),
    ],
)
def test_a_trace_made_up_by_others_is_refused(change: Change, tmp_path: Path) -> None:
    """Its hash is right: whoever wrote it meant it."""
    about = {"task": "addition", "config": ADDITION.config(), "policy": "lsb", "model": "x"}
    instances = ADDITION.sample(9, Streams(0).named("made up"))
    trace = decode(tiny(ADDITION).denoiser, instances, policy_named("lsb", ("lsb",)), about=about)
    save_trace(tmp_path / "good.npz", trace)
    (explained,) = explain_traces([("good", stored_trace(tmp_path / "good.npz")[1])])
    assert [diagnosis.policy for diagnosis in explained.diagnoses] == ["lsb"]
    arrays, said = trace.arrays(), json.loads((tmp_path / "good.json").read_text())
    change(arrays, said)
    np.savez(tmp_path / "bad.npz", allow_pickle=False, **{f"000000/{name}": array for name, array in arrays.items()})
    said["sha256"] = sha256((tmp_path / "bad.npz").read_bytes()).hexdigest()
    (tmp_path / "bad.json").write_text(json.dumps(said))
    with pytest.raises(HardtailError):
        explain_traces([("bad", stored_trace(tmp_path / "bad.npz")[1])])
    assert "antigravity" not in sys.modules


def test_a_header_is_read_as_what_it_must_be_or_refused_by_file_and_field(tmp_path: Path) -> None:
    subject, path = tiny(ADDITION), tmp_path / "w.safetensors"
    task = {"class": "hardtail.tasks.addition.task:Addition", "fields": ADDITION.config()}
    recipe = {"fields": {"task": task}}
    assert isinstance(subject.denoiser, ModelDenoiser)
    model = subject.denoiser.model
    assert isinstance(model, Transformer)
    for wrong, field in (
        ({"step": "many"}, "step"),
        ({"kind": 3}, "kind"),
        ({"recipe": {"fields": {"task": task, "seed": "abc"}}}, "fields.seed"),
        ({"recipe": {"fields": {"task": task, "watch": {"fields": {"order": 1}}}}}, "fields.watch.fields.order"),
    ):
        save_weights(path, dict(model.named_parameters()), model.shape, {"recipe": recipe} | wrong)
        with pytest.raises(HardtailError, match=rf"w\.safetensors: {field}: expected"):
            load_subject(str(path))
    save_weights(path, dict(model.named_parameters()), model.shape, {"recipe": recipe})
    found = load_subject(str(path))
    assert (found.seed, found.origin.recipe, found.origin.step, found.order) == (0, "w", None, None)
    assert "unknown origin" in eval_tables(found, records_of(list(evaluated(found))))[0].title


@pytest.mark.parametrize("config", [{"size": 9}, {"digits": 0}, {"digits": None}])
def test_a_file_whose_task_cannot_be_is_named(config: dict[str, Any]) -> None:
    with pytest.raises(HardtailError, match=r"^x\.npz does not name a task .* its fields do not fit the task addition"):
        task_of({"task": "addition", "config": config}, "x.npz")


def evaluated(subject: Any) -> Any:
    return evaluate_all(subject, {"top1": Top1()}, ["natural"], 2, Decoding(), data_seed=0)


def test_models_that_share_a_name_are_explained_apart() -> None:
    """Every `last.safetensors` is called `last`, whatever it was trained with."""
    instances = ADDITION.sample(5, Streams(0).named("two"))
    order, about = policy_named("lsb", ("lsb",)), {"task": "addition", "config": ADDITION.config(), "policy": "lsb"}
    traces = [
        ("", decode(tiny(ADDITION).denoiser, instances, order, about=about | {"model": "last", "seed": seed}))
        for seed in (1, 2)
    ]
    assert [len(explained.diagnoses) for explained in explain_traces(traces)] == [1, 1]
