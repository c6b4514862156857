"""The lm-evaluation-harness runs our tasks with its models, and our models on our tasks; the figures are `eval`'s."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

import hardtail as ht
from hardtail import HardtailError
from hardtail.core.registry import TASKS
from hardtail.harness.files import GROUP, task_name, write_tasks
from hardtail.harness.model import HardtailLM
from hardtail.harness.problems import Wanted, drawn, judge
from tests.conftest import Command

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    assert write_tasks(folder) == [GROUP, *(f"{GROUP}_{name}" for name in TASKS.names())]
    return folder


def scores(model: str | LM, tasks: list[str], folder: Path, problems: str, n: int, **more: Any) -> dict[str, Any]:
    """What the harness says of a model: its results by task."""
    metadata = {"n": n, "problems": problems}
    manager = TaskManager(include_path=str(folder), include_defaults=False, metadata=metadata)
    found = simple_evaluate(model, tasks=tasks, task_manager=manager, bootstrap_iters=0, device="cpu", **more)
    assert found is not None
    results: dict[str, Any] = found["results"]
    return results


class Oracle(LM):  # type: ignore[misc]
    """Answers every document with its gold answer, and the given ones with another text."""

    def __init__(self, wrong: dict[int, str]) -> None:
        super().__init__()
        self.wrong = wrong
        self.contexts: list[str] = []

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        self.contexts += [request.args[0] for request in requests]
        return [self.wrong.get(request.doc["row"], f" {request.doc['answer']}\n") for request in requests]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> Any:
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def test_every_stratum_of_every_task_is_a_task_of_the_harness(folder: Path) -> None:
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    for name in TASKS.names():
        task = ht.task(name)
        members = [task_name(task, stratum) for stratum in task.strata()]
        assert set(members) <= set(manager.all_subtasks)
        assert yaml.safe_load((folder / f"{GROUP}_{name}.yaml").read_text())["task"] == members
    assert set(yaml.safe_load((folder / f"{GROUP}.yaml").read_text())["task"]) == {
        f"{GROUP}_{name}" for name in TASKS.names()
    }


def test_our_model_scores_in_the_harness_what_eval_says(folder: Path) -> None:
    model, strata = "zoo:addition-papl-paper", ["natural", "chain>=28"]
    subject = ht.load(model)
    problems = "addition," + ",".join(f"{key}={value}" for key, value in subject.task.config().items())
    tasks = [task_name(subject.task, stratum) for stratum in strata]
    found = scores("hardtail", tasks, folder, problems, 6, model_args={"model": model, "policy": "top1"})
    expected = ht.evaluate(subject, policies=["top1"], strata=strata, n=6, data_seed=0)
    for task, stratum in zip(tasks, strata, strict=True):
        assert found[task]["exact_match,none"] == pytest.approx(expected.accuracy("top1", stratum))
    assert 0 < found[tasks[1]]["exact_match,none"] < 1 == found[tasks[0]]["exact_match,none"]


@pytest.mark.parametrize("name", ["addition,digits=8", "listops", "countdown"])
def test_a_language_model_is_scored_by_our_rules(name: str, folder: Path) -> None:
    task = drawn(name, "natural", 4, 0)[0]
    oracle = Oracle({1: "I do not know", 2: ""})
    found = scores(oracle, [task_name(task, "natural")], folder, name, 4)[task_name(task, "natural")]
    assert (found["exact_match,none"], found["valid,none"]) == (0.5, 0.5)
    assert all(context.endswith("\nAnswer:") for context in oracle.contexts)


def test_a_valid_answer_need_not_be_the_gold_one() -> None:
    doc = {"problems": "countdown", "stratum": "natural", "n": 8, "seed": 0}
    task, held = drawn("countdown", "natural", 8, 0)
    worth = []
    for row in range(8):
        one, two, three = task.answer_text(held, row).split(",")
        assert judge({**doc, "row": row}, [f"{one},{two},{three}"]) == {"exact_match": 1.0, "valid": 1.0}
        worth.append(judge({**doc, "row": row}, [f"{two},{one},{three}"]))
    assert not any(found["exact_match"] for found in worth)
    assert 0 < sum(found["valid"] for found in worth) < 8  # right wherever the second step does not need the first


def test_shots_come_from_training_problems(folder: Path) -> None:
    oracle, name = Oracle({}), f"{GROUP}_addition_natural"
    assert scores(oracle, [name], folder, "addition,digits=8", 2, num_fewshot=2)[name]["exact_match,none"] == 1
    problems = oracle.contexts[0].split("Problem: ")[1:]
    assert len(problems) == 3
    for shot in problems[:2]:
        prompt, answer = shot.strip().split("\nAnswer: ")
        assert sum(map(int, prompt.split("+"))) == int(answer)
    measured = set(ht.task("addition", digits=8).render(drawn("addition,digits=8", "natural", 2, 0)[1]))
    assert not measured & {shot.split("\n")[0] for shot in problems[:2]}


def test_a_causal_model_of_transformers_runs_our_tasks(folder: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    signs = {chr(code): code - 32 for code in range(32, 127)} | {"\n": 95, "<e>": 96}
    plain = Tokenizer(models.WordLevel(signs, unk_token="<e>"))
    plain.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<e>", pad_token="<e>", unk_token="<e>")
    tokenizer.save_pretrained(tmp_path)
    config = GPT2Config(
        vocab_size=97, n_positions=256, n_embd=16, n_layer=1, n_head=2, bos_token_id=96, eos_token_id=96
    )
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    name = f"{GROUP}_addition_natural"
    found = scores("hf", [name], folder, "addition,digits=4", 2, model_args={"pretrained": str(tmp_path)})
    assert found[name]["exact_match,none"] == 0  # its weights are random


def test_refusals(hardtail_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = HardtailLM("zoo:addition-random")
    for ask in (model.loglikelihood, model.loglikelihood_rolling):
        with pytest.raises(HardtailError, match="no likelihood of a text from left to right"):
            ask([])
    with pytest.raises(HardtailError, match="addition"):  # a task of someone else
        model.generate_until([Instance("generate_until", {"question": "?"}, ("What is the capital of France?", {}), 0)])
    code, out, _ = hardtail_command("lm-eval", "write", str(tmp_path))
    assert code == 0
    assert "--include_path" in out
    assert json.dumps("chain>=28") in (tmp_path / f"{GROUP}_addition_chain_ge_28.yaml").read_text()
    code, _, err = hardtail_command("lm-eval", "run", "--include_path", "x")
    assert (code, "--include_path is taken" in err) == (2, True)
    monkeypatch.setattr("hardtail.cli.lm_eval.find_spec", lambda name: None)
    code, _, err = hardtail_command("lm-eval", "run", "--tasks", "hardtail_addition")
    assert (code, "pip install 'hardtail[lm-eval]'" in err) == (2, True)


@pytest.mark.parametrize("metadata", [{"n": "x"}, {"n": 0}, {"n": 10**9}, {"seed": -1}, {"stratum": 3}, {"\ud800": 1}])
def test_metadata_that_names_no_problems_is_refused(metadata: dict[str, Any]) -> None:
    with pytest.raises(HardtailError, match=r"--metadata: .*give n from 1 to 100,000"):
        Wanted.read({"problems": "addition", "stratum": "natural"} | metadata)


def test_a_number_of_cells_that_is_none_is_refused() -> None:
    with pytest.raises(HardtailError, match="each=two: give a whole number"):
        HardtailLM("zoo:addition-random", each="two")  # type: ignore[arg-type]
