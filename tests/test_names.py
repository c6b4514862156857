"""Tasks, schemes and recipes by name: in files of any age, on the command line, and from other modules."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hardtail
from hardtail import HardtailError
from hardtail.core.registry import TASKS
from hardtail.schemes import Mixture, Papl, Puma, Random, Scheme
from hardtail.schemes.named import scheme_named
from hardtail.study.recipes import recipe_named
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.named import task_from_json, task_of, task_to_json
from hardtail.training.recipe import Recipe


@pytest.mark.parametrize(
    "said",
    [
        {"name": "addition"},
        {"class": "Addition"},
        {"class": "hardtail.tasks.addition:Addition"},
        {"class": "hardtail.tasks.addition.task:Addition"},
    ],
)
def test_a_task_is_read_from_files_of_any_age(said: dict[str, str]) -> None:
    task = Addition(digits=5, sum="modulo")
    written = task_to_json(task)
    assert written["name"] == "addition"
    assert task_from_json(said | {"fields": written["fields"]}) == task


def test_traces_and_data_sets_of_before_are_read() -> None:
    task = hardtail.task("maze", size=4)
    assert task_of({"task": "maze", "config": task.config()}, "x.npz") == task
    assert task_of({"task": task_to_json(task)}, "x.npz") == task


def test_a_file_cannot_make_us_import_a_class_but_a_person_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from hardtail.tasks.addition.task import Addition\nclass Mine(Addition):\n    name = 'mine'\n"
    (tmp_path / "own_task_module.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(TASKS, "_known", dict(TASKS._known))
    said = {"name": "own_task_module:Mine", "fields": {"digits": 4}}
    with pytest.raises(HardtailError, match="not registered"):
        task_from_json(said)
    assert "own_task_module" not in sys.modules
    kind = TASKS.admit("own_task_module:Mine")
    assert task_from_json(said) == kind(digits=4)  # type: ignore[call-arg]
    assert task_to_json(task_from_json(said)) == task_to_json(kind(digits=4))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("random", Random()),
        ("papl,alpha=5", Papl(alpha=5.0)),
        ("puma, threshold=none, law=around", Puma(threshold=None, law="around")),
        ("mixture,share=0.5", Mixture(Puma(), Random(), share=0.5)),
        ("hardtail.schemes.random:Random,draw=count", Random(draw="count")),
    ],
)
def test_schemes_by_name(text: str, scheme: Scheme) -> None:
    assert scheme_named(text) == scheme


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("pulma", "did you mean 'puma'"),
        ("papl,alpho=5", "one of alpha, tau"),
        ("papl,alpha=much", "must be a number"),
        ("puma,stages=5", "fields of its own"),
        ("puma,law=odd", "one of 'even'"),
        ("hardtail.tasks.addition.task:Addition", "is not a scheme"),
    ],
)
def test_a_mistake_in_a_scheme_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(HardtailError, match=sentence):
        scheme_named(text)


def own_recipe() -> Recipe:
    return Recipe(task=hardtail.task("maze", size=3), scheme=Random())


def no_recipe() -> int:
    return 3


def test_recipes_from_other_modules() -> None:
    assert recipe_named("tests.test_names:own_recipe") == replace(own_recipe(), name="own_recipe")
    for name, sentence in (("no_recipe", "it returned 3"), ("__doc__", "must be a function"), ("gone", "cannot be")):
        with pytest.raises(HardtailError, match=sentence):
            recipe_named(f"tests.test_names:{name}")


def test_a_watch_takes_what_is_hard_and_the_order_from_the_task() -> None:
    recipe = own_recipe()
    assert recipe.watch.hard == recipe.task.gallery()[1]
    assert recipe.watch.order == recipe.task.order_names[0]
