"""`import hardtail as ht`: load, evaluate, decode, diagnose, report, with our models and one's own."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hardtail as ht
from hardtail.core.registry import TASKS
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import Function
from hardtail.models.own import denoiser_of
from hardtail.policies.base import Policy
from hardtail.policies.confidence import Top1
from hardtail.policies.learned import Planned
from hardtail.policies.parallel import Threshold
from tests.conftest import Command

TASK = ht.task("addition", digits=4)
SIZE = TASK.vocabulary.size


def carries_ignored(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
    """Adds digit by digit and forgets every carry."""
    digit_BA = torch.nn.functional.pad((tokens_BL[:, :4] + tokens_BL[:, 5:9]) % 10, (1, 0))
    return 5.0 * torch.nn.functional.one_hot(digit_BA, SIZE).float()


def whole(tokens_BL: Tensor) -> Tensor:
    """The same for every position of the sequence."""
    logits_BLV = torch.zeros(*tokens_BL.shape, SIZE)
    logits_BLV[:, 10:15] = carries_ignored(tokens_BL, tokens_BL)
    return logits_BLV


class Silent:
    """A denoiser, of which the class is no denoiser."""

    mask_id = TASK.vocabulary.mask_id

    def logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return torch.zeros((*at_BA.shape, TASK.vocabulary.size))


class Module(nn.Module):
    """The same as a module, in the style of Hugging Face."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.modes: list[bool] = []

    def forward(self, tokens_BL: Tensor) -> SimpleNamespace:
        self.modes.append(self.training)
        return SimpleNamespace(logits=self.weight * whole(tokens_BL))


def test_names_are_listed_and_imported_when_used() -> None:
    assert {"load", "evaluate", "decode", "diagnose", "report", "task", "load_trace"} <= set(dir(ht))
    for name in ht.__all__:
        assert getattr(ht, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        ht.evalute  # type: ignore[attr-defined]  # noqa: B018
    program = (
        "import sys, hardtail; hardtail.task('addition').sample(2, 'chain>=4', seed=1); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_instances_are_those_of_the_command(hardtail_command: Command) -> None:
    ours = ht.task("addition", digits=4).sample(3, "chain>=2", seed=7)
    for named in (["addition", "--set", "digits=4"], ["addition,digits=4"]):
        _, out, _ = hardtail_command("sample", *named, "--stratum", "chain>=2", "-n", "3", "--seed", "7", "--json")
        assert [line.split('"')[3] for line in out.splitlines()] == TASK.render(ours)
    assert ht.task("addition, digits=4") == TASK
    assert np.array_equal(TASK.sample(3, stratum="chain>=2", seed=7).tokens_NL, ours.tokens_NL)
    assert ht.task("addition,digits=4") == TASK
    with pytest.raises(ht.HardtailError, match="addition: digits is set after the name and by an argument"):
        ht.task("addition,digits=4", digits=5)


def optional(input_ids: Tensor | None = None, attention_mask: Tensor | None = None) -> Tensor:
    """As the models of `transformers` take their tokens."""
    assert input_ids is not None
    assert attention_mask is None
    return whole(input_ids)


@pytest.mark.parametrize(
    "model", [carries_ignored, whole, optional, Module()], ids=["places", "whole", "optional", "module"]
)
def test_any_function_or_module_is_a_model(model: object) -> None:
    sums = TASK.sample(20, "natural", seed=0)
    trace = ht.decode(model, sums, "top1", TASK)
    obvious = decode(denoiser_of(carries_ignored, TASK.vocabulary), sums, Top1())
    assert np.array_equal(trace.answer_NA, obvious.answer_NA)
    assert 0 < trace.exact_N.mean() < 1
    assert trace.about["policy"] == "top1"
    assert trace.about["task"] == {"name": "addition", "fields": TASK.config()}
    assert trace.about["stratum"] == "natural"
    assert repr(trace).startswith(f"<Trace: {trace.about['model']}, top1, natural, ")


def test_logits_of_tokens_that_the_task_does_not_have_are_left_out() -> None:
    """Vocabularies are padded; such a token in an answer could be neither judged by Countdown nor drawn."""

    def padded(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return nn.functional.pad(carries_ignored(tokens_BL, at_BA), (0, 50), value=9.0)

    sums = TASK.sample(5, seed=0)
    plain = ht.decode(carries_ignored, sums, "top1", TASK)
    for model in (padded, Function(padded, TASK.vocabulary.mask_id)):
        assert np.array_equal(ht.decode(model, sums, "top1", TASK).answer_NA, plain.answer_NA)


@pytest.mark.parametrize("training", [True, False])
def test_a_module_is_decoded_in_evaluation_mode_and_left_as_it_was(training: bool) -> None:
    module = Module().train(training)
    ht.decode(module, TASK.sample(2, seed=0), task="addition,digits=4")
    assert module.training == training
    assert set(module.modes) == {False}


def test_a_module_in_training_mode_is_decoded_by_several_threads() -> None:
    module = Module().train()
    module.frozen = nn.Dropout().eval()
    sums, denoiser = TASK.sample(600, seed=0), denoiser_of(module, TASK.vocabulary)
    decode(denoiser, sums, Top1(), Decoding(batch=16, workers=3))
    assert set(module.modes) == {False}
    assert (module.training, module.frozen.training) == (True, False)


def test_a_module_that_fails_is_left_as_it_was() -> None:
    class Broken(nn.Module):
        def forward(self, tokens_BL: Tensor) -> Tensor:
            raise KeyError("x")

    module = Broken().train()
    with pytest.raises(KeyError) as failed:
        ht.decode(module, TASK.sample(2, seed=0), task=TASK)
    assert failed.value.__notes__ == ["Broken got tokens of shape [32, 15], where 12 is the mask"]
    assert module.training


def test_an_evaluation_prints_as_a_table_and_gives_its_records(tmp_path: Path) -> None:
    table = ht.evaluate(
        carries_ignored,
        TASK,
        policies=["top1", Threshold(p=0.5)],
        strata=["natural", "chain>=2"],
        n=10,
        traces=tmp_path,
    )
    assert table.accuracy("top1", "chain >= 2") == table.accuracy("threshold,p=0.5", "chain>=2") < 1
    with pytest.raises(ht.HardtailError, match="lsb on natural was not measured; there is top1 on natural, threshold"):
        table.accuracy("lsb", "natural")
    assert repr(table).startswith("carries_ignored: exact match (95 % interval)\nstratum   top1 ")
    assert max(map(len, repr(table).splitlines())) <= 80
    frame = table.to_frame()
    assert list(frame.exact_match) == [record.exact_match for record in table.accuracies]
    assert r"chain$\geq$2 & " in table.latex()
    assert "| chain>=2 |" in table._repr_markdown_()
    saved = ht.load_trace(str(tmp_path / "natural.top1.npz"))
    assert saved.exact_N.mean() == table.accuracy("top1", "natural")
    with pytest.raises(ht.HardtailError, match="is a trace of carries_ignored, which one of other would replace"):
        ht.evaluate(ht.load(carries_ignored, TASK, name="other"), policies="top1", strata="natural", traces=tmp_path)


def test_policies_of_one_class_are_told_apart() -> None:
    def evaluated(*policies: Policy) -> list[str]:
        found = ht.evaluate(carries_ignored, TASK, policies=policies, strata=["natural"], n=2)
        return [record.policy for record in found.accuracies]

    assert evaluated(Threshold(p=0.5), Threshold(p=0.99)) == ["threshold,p=0.5", "threshold,p=0.99"]
    with pytest.raises(ht.HardtailError, match="two different policies are called Planned"):
        evaluated(Planned(lambda tokens_BL, at_BA: at_BA), Planned(lambda tokens_BL, at_BA: -at_BA))


def test_what_a_loaded_model_is_called_and_what_it_is_not() -> None:
    assert ht.load("zoo:addition-random", name="mine").name == "mine"
    loaded = ht.load(carries_ignored, TASK)
    assert ht.load(loaded, ht.task("addition", digits=4), name="mine").name == "mine"
    with pytest.raises(ht.HardtailError, match="carries_ignored: its task is addition, but maze was given; leave"):
        ht.evaluate(loaded, "maze")
    with pytest.raises(ht.HardtailError, match=r"its task has digits=4, but .*digits=5.* was given"):
        ht.load(loaded, "addition,digits=5")
    assert ht.load(loaded, device="cpu:0") is loaded
    assert ht.load("zoo:addition-random", device=torch.device("cpu")).device == "cpu"
    with pytest.raises(ht.HardtailError, match="--device gpu: there is no such device"):
        ht.load(loaded, device="gpu")
    with pytest.raises(ht.HardtailError, match="computes on cuda:1, not on cpu"):
        ht.load(replace(loaded, device="cuda:1"), device="cpu")
    with pytest.raises(ht.HardtailError, match=r"^carries_ignored: .* can be chosen for runs and weights only"):
        ht.load(loaded, precision="bf16")
    odd: Any = {"precision": "fp64", "checkpoint": "best", "device": 0, "template": 3}  # fp64 was computed in fp32
    for name, value in odd.items():
        with pytest.raises(ht.HardtailError, match=f": {name} is {value!r}; it must be "):
            ht.load("zoo:addition-random", **{name: value})


def test_a_single_name_is_a_list_of_one() -> None:
    table = ht.evaluate(carries_ignored, TASK, policies="lsb", strata="chain>=2", n=2)
    assert [(record.policy, record.stratum) for record in table.accuracies] == [("lsb", "chain>=2")]
    table = ht.evaluate(carries_ignored, TASK, policies=Top1(), strata="natural", n=2)
    assert [record.policy for record in table.accuracies] == ["top1"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda: ht.evaluate(carries_ignored, TASK, n="5"), "n is '5'; give a whole number"),  # type: ignore[arg-type]
        (lambda: ht.evaluate(carries_ignored, TASK, policies=[3]), "3 is not a policy"),  # type: ignore[list-item]
        (lambda: ht.evaluate(carries_ignored, TASK, policies=Top1), "is not a policy; .* such as Top1()"),  # type: ignore[arg-type]
        (lambda: ht.decode(carries_ignored, ["12+34"], task=TASK), r"\['12\+34'\] cannot be decoded; draw"),  # type: ignore[arg-type]
        (lambda: TASK.sample(-1, "natural"), "addition: -1 instances cannot be drawn"),
        (lambda: ht.report([], "x.html"), "nothing to show"),
        (lambda: ht.report("nowhere.npz", "page.txt"), "must end in .html"),
        (lambda: ht.report("page.html", 3), "3 is not the name of a page; give the traces first, then a name"),  # type: ignore[arg-type]
        (lambda: ht.report(ht.load("zoo:addition-random"), "x.html"), "is not a trace; give one, such as ht.decode"),  # type: ignore[arg-type]
        (lambda: ht.diagnose(ht.load("zoo:addition-random")), "is not a trace; give one, such as ht.decode"),  # type: ignore[arg-type]
        (lambda: ht.diagnose("zoo:addition-random"), "'zoo:addition-random' is not a trace"),
        (
            lambda: ht.evaluate(carries_ignored, "addition,digits=5", n=2),
            r"shape \[32, 5, 14\]; .* must be \[32, 6, voc",
        ),
    ],
)
def test_a_mistake_is_one_sentence(asked: Callable[[], object], words: str) -> None:
    with pytest.raises(ht.HardtailError, match=words):
        asked()


def test_a_verdict_says_how_it_was_decoded_if_not_as_usual() -> None:
    sums = TASK.sample(12, "chain>=2", seed=3)
    usual, several = (ht.decode(carries_ignored, sums, "top1", TASK, each=each) for each in (1, 2))
    first, *_, last = ht.diagnose(usual, several).verdict.lines
    assert first.startswith("Surest cell first (top1) it fails")
    assert last.startswith("Surest cell first (top1, 2 a step) it fails")


def test_problems_of_another_task_or_size_are_refused() -> None:
    model = ht.load(carries_ignored, TASK)
    with pytest.raises(ht.HardtailError, match=r"not problems for carries_ignored: they have .* and 6 answer cells"):
        ht.decode(model, ht.task("addition", digits=5).sample(2), "top1")
    others = replace(TASK.sample(2), strata={"depth": np.zeros(2, dtype=np.int16)})
    with pytest.raises(ht.HardtailError, match="they have no chain"):
        ht.decode(model, others, "top1")


def test_a_trace_saves_itself_and_is_explained_and_shown(tmp_path: Path) -> None:
    sums = TASK.sample(12, "chain>=2", seed=3)
    trace, other = (ht.decode(carries_ignored, sums, policy, TASK) for policy in ("top1", "lsb"))
    trace.save(str(tmp_path / "mine.npz"))
    again = ht.load_trace(tmp_path / "mine.npz")
    assert again.about == trace.about
    explained = ht.diagnose(tmp_path / "mine.npz", other)
    assert repr(explained) == explained.verdict.text()
    assert [found.policy for found in explained.diagnoses] == ["top1", "lsb"]
    assert explained.details.result.exact == int(trace.exact_N.sum())
    assert explained.diagnoses[1].cross is not None
    assert "result" in [table.title for table in explained.tables()]
    with pytest.raises(ht.HardtailError, match="diagnose each by itself"):
        ht.diagnose(trace, ht.decode(carries_ignored, TASK.sample(3, seed=1), "top1", TASK))
    frame = again.to_frame()
    assert len(frame) == int(trace.happened_NT.sum())
    assert frame.wrong.sum() == trace.wrong_NT.sum()
    assert set(frame.columns) >= {"instance", "step", "cell", "token", "gold", "prob", "wrong"}
    page = ht.report([tmp_path / "mine.npz", other], tmp_path / "mine.html")
    assert "carries_ignored" in page.read_text()


def test_models_of_the_zoo_and_runs_are_named() -> None:
    model = ht.load("zoo:addition-papl-paper")
    assert repr(model) == "<addition-papl-paper: addition, last weights of step 300,000, on cpu>"
    assert ht.load(model) is model


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("zoo:nothing",), "the zoo has no model 'nothing'"),
        ((carries_ignored,), "does not say its task; give it, for example as task='addition'"),
        ((Module(),), "Module does not say its task"),  # and not all of its layers
        ((carries_ignored, "adition"), "did you mean 'addition'?"),
        ((carries_ignored, type(TASK)), "Addition'> is not a task; give a name, such as 'addition', or a Task"),
        ((carries_ignored, "addition,digit=4"), "'digit=4' does not set a field"),
        ((3, TASK), "3 cannot be decoded; give a function"),
        ((TASK.sample(2, "natural", seed=0),), "Instances cannot be decoded; give a function"),  # swapped arguments
        ((None,), "NoneType cannot be decoded; give a function"),
        ((Module, TASK), "cannot be decoded"),
        ((Silent, TASK), "cannot be decoded"),
        ((Function(carries_ignored, 5), TASK), "the mask 5, but hidden cells of this task hold 12; set mask_id to 12"),
        ((lambda: 0, TASK), "needs 0 arguments"),
        (("tests.test_api:nothing", TASK), "cannot be loaded"),
        (("nowhere",), "nowhere: there is no such run or file; give"),
    ],
)
def test_mistakes_are_named(given: tuple[object, ...], sentence: str) -> None:
    with pytest.raises(ht.HardtailError, match=r".*") as found:
        ht.load(*given)  # type: ignore[arg-type]
    assert sentence in str(found.value)


def test_a_model_that_returns_something_else_is_refused() -> None:
    with pytest.raises(ht.HardtailError, match="returned a tensor"):
        ht.decode(lambda tokens_BL: tokens_BL, TASK.sample(1, seed=0), task=TASK)
    with pytest.raises(ht.HardtailError, match=r"returned a tensor \[32, 5, 14\]"):
        ht.decode(lambda tokens_BL: torch.zeros(len(tokens_BL), 5, 14), TASK.sample(1, seed=0), task=TASK)
    with pytest.raises(ht.HardtailError, match=r"for tokens \[32, 15\]; it must return logits \[32, 15, vocabulary\]"):
        ht.decode(lambda tokens_BL: torch.zeros(len(tokens_BL), 5, 14), TASK.sample(1, seed=0), task=TASK)
    with pytest.raises(ht.HardtailError, match=r"a tensor \[32, 5\] .* it must return logits \[32, 5, vocabulary\]"):
        ht.decode(lambda tokens_BL, at_BA: torch.zeros(at_BA.shape), TASK.sample(1, seed=0), task=TASK)
    for away in (
        lambda tokens_BL: torch.zeros(*tokens_BL.shape, 14, device="meta"),
        lambda tokens_BL, at_BA: torch.zeros(*at_BA.shape, 14, device="meta"),
    ):
        with pytest.raises(ht.HardtailError, match="logits are on meta, but its tokens are on cpu; return"):
            ht.decode(away, TASK.sample(1, seed=0), task=TASK)
    with pytest.raises(ht.HardtailError, match="returned a list"):
        ht.decode(lambda tokens_BL: [], TASK.sample(1, seed=0), task=TASK)
    with pytest.raises(ht.HardtailError, match="n is 0"):
        ht.evaluate(carries_ignored, TASK, n=0)


# -- the same on the command line -------------------------------------------------------------------------------------

MINE = ("tests.test_api:carries_ignored", "--task", "addition,digits=4")


def test_commands_take_an_object_as_a_model(hardtail_command: Command, tmp_path: Path) -> None:
    code, out, err = hardtail_command("eval", *MINE, "--strata", "chain>=2", "-n", "5", "--policies", "top1", "lsb")
    assert code == 0, err
    assert out.startswith("carries_ignored: exact match (95 % interval)")
    assert "carries_ignored: 10 decodes = 5 instances × 1 stratum × 2 policies" in err
    code, out, err = hardtail_command("diagnose", *MINE, "--strata", "chain>=2", "-n", "5")
    assert code == 0, err
    assert out.startswith("carries_ignored, addition\n  Surest cell first (top1) it fails on ")
    page = tmp_path / "mine.html"
    code, out, err = hardtail_command("report", *MINE, "-n", "3", "--out", str(page))
    assert code == 0, err
    assert "carries_ignored" in page.read_text()
    code, out, err = hardtail_command("view", *MINE, "--stratum", "chain>=2", "-n", "3")
    assert code == 0, err
    assert out.startswith("carries_ignored · top1 · chain>=2")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["eval", MINE[0]], "does not say its task"),
        (["eval", *MINE, "--checkpoint", "last"], "for runs and weights only"),
        (["eval", *MINE, "--device", "gpu"], "--device gpu: there is no such device; give cpu, cuda or"),
        (["eval", *MINE, "--steps", "0"], "--steps is 0; it must be at least 1"),
        (["eval", "zoo:addition-random", "--task", "maze"], "is a model of addition, but --task is maze"),
        (["eval", "zoo:addition-random", "--task", "addition,digits=8"], "its task has digits=32"),
        (["eval", "tests.test_api:missing", "--task", "addition"], "cannot be loaded"),
    ],
)
def test_mistakes_with_models_get_one_sentence(words: list[str], sentence: str, hardtail_command: Command) -> None:
    code, out, err = hardtail_command(*words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("hardtail: ")


def test_a_task_says_its_own_presets() -> None:
    """No task has a reading that it does not define."""
    for name in TASKS.names():
        kind = TASKS.load(name)
        assert kind.preset() == kind.preset(next(iter(kind.presets)))


def test_what_the_file_system_refuses_is_told_in_a_sentence(tmp_path: Path) -> None:
    """With the path, and what to do, as any other mistake."""
    trace, inside = ht.decode(carries_ignored, TASK.sample(2), task=TASK), tmp_path / "file"
    inside.write_text("text")
    told = f"{inside} is not a folder, or is inside a file; give another name"
    with pytest.raises(ht.HardtailError, match=told):
        trace.save(inside / "trace.npz")
    with pytest.raises(ht.HardtailError, match=told):
        ht.report(trace, inside / "page.html")
    with pytest.raises(ht.HardtailError, match=told):
        ht.evaluate(carries_ignored, TASK, policies="top1", strata="natural", n=2, traces=inside)
    long = "x" * 300
    for read in (ht.load, ht.load_trace, ht.load_instances):
        with pytest.raises(ht.HardtailError, match=f"{long}.*: File name too long"):
            read(long)
