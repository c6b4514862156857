"""What small faults change and no other test held, in runs, their estimates and what their commands refuse."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from hardtail import HardtailError
from hardtail.core.files import save_instances
from hardtail.core.records import LogLine
from hardtail.core.registry import POLICIES, SCHEMES, TASKS
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.models.hf.families import family_of
from hardtail.models.hf.loading import load_hf
from hardtail.models.weights import saved_step
from hardtail.policies.base import Commit
from hardtail.policies.confidence import Top1
from hardtail.schemes.base import Corpus
from hardtail.study.pack import unpack
from hardtail.study.recipes import recipe_named
from hardtail.tasks import datasets as data
from hardtail.tasks.addition.task import Addition
from hardtail.training.keeper import Keeper, _named
from hardtail.training.probe import Probe
from hardtail.training.run import train
from tests.decoding_toys import TOY, problems


def plain_fields() -> list[tuple[Any, str]]:
    """Every field of a registered task, scheme or policy that is a number or one of some words."""
    found = []
    for registry in (TASKS, SCHEMES, POLICIES):
        for name in registry.names():
            kind: Any = registry.load(name)
            hints = get_type_hints(kind)
            found += [
                (kind, item.name)
                for item in fields(kind)
                if {int, float} & {hints[item.name], *get_args(hints[item.name])}
                or get_origin(hints[item.name]) is Literal
            ]
    return found


@pytest.mark.parametrize(("kind", "field"), plain_fields(), ids=lambda value: getattr(value, "__name__", value))
def test_a_field_that_is_a_number_or_one_of_some_words_takes_nothing_else(kind: Any, field: str) -> None:
    """Also from Python, where nobody reads the words of a command line."""
    with pytest.raises(HardtailError, match=field):
        replace(kind(), **{field: "no such word"})


def test_a_trace_is_shown_whatever_is_known_about_it() -> None:
    trace = decode(TOY, problems(3), Top1())
    for about, shown in (({}, "<Trace: "), ({"policy": "top1"}, "<Trace: top1, "), ({"model": "m"}, "<Trace: m, ")):
        told: Trace = replace(trace, about=about)
        assert repr(told).startswith(shown)
        assert repr(told).endswith(" of 3 right>")


@pytest.mark.parametrize(("commit", "most"), [(Commit(steps=9), 5), (Commit(steps=3), 3), (Commit(each=2), 3)])
def test_the_most_steps_of_a_row(commit: Commit, most: int) -> None:
    assert Top1().steps(5, commit) == most


@pytest.mark.parametrize("name", ["no.pack.json", "run.json"])
def test_a_packed_run_that_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(HardtailError, match="is not a packed run"):
        unpack(tmp_path / name, tmp_path / "runs")


@pytest.mark.parametrize("name", ["hf:/no/such/folder", "hf:./none", "hf:a/b/c"])
def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(name: str) -> None:
    with pytest.raises(HardtailError, match="there is no such folder"):
        load_hf(name, Addition(digits=3).vocabulary)


def test_code_that_comes_with_a_model_may_name_it_a_masked_language_model() -> None:
    named = {"AutoModelForMaskedLM": "code.Model"}
    assert family_of(SimpleNamespace(model_type="mine", auto_map=named)).auto_class == "AutoModelForMaskedLM"
    for auto_map in (None, {}, {"AutoModel": "code.Model"}):
        with pytest.raises(HardtailError, match="is not a masked language model"):
            family_of(SimpleNamespace(model_type="mine", auto_map=auto_map))


def test_a_run_is_saved_as_often_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, save = list[int](), Keeper.save

    def counted(self: Keeper, *given: Any) -> None:
        saved.append(self.progress.step)
        save(self, *given)

    monkeypatch.setattr(Keeper, "save", counted)
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, save_every=3, eval_every=100, gen_every=0, probe_size=4, decoded=2)
    train(replace(recipe, steps=7, batch=2, train_size=10, watch=watch), tmp_path)
    assert saved == [3, 6, 7]


@pytest.mark.parametrize("cut", [1, 2])
def test_a_run_that_is_stopped_after_its_first_steps_ends_as_if_it_had_not_been(cut: int, tmp_path: Path) -> None:
    """Also with dropout, whose random numbers go on where they were."""
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, save_every=100, eval_every=100, gen_every=0, probe_size=4, decoded=2)
    recipe = replace(recipe, steps=4, batch=2, train_size=10, watch=watch)
    assert recipe.sizes.dropout > 0
    train(recipe, tmp_path / "whole", device="cpu")
    steps = list[int]()
    stopped = train(
        recipe, tmp_path / "cut", device="cpu", progress=steps.append, should_stop=lambda: len(steps) >= cut
    )
    assert (stopped.step, stopped.finished) == (cut, False)
    torch.manual_seed(99)  # what happens between two calls
    assert train(recipe, tmp_path / "cut", device="cpu").finished
    for file in ("last.safetensors", "coverage.json"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes(), file


def test_a_state_names_what_other_processes_have_by_their_ranks() -> None:
    """Another name, and no state that people have would be continued."""
    others = [{"row_B": torch.tensor([rank])} for rank in (1, 2)]
    assert {name: int(tensor) for name, tensor in _named(others).items()} == {"rank 1/row_B": 1, "rank 2/row_B": 2}


def test_patience_does_not_run_out_over_best_weights_that_are_gone(tmp_path: Path) -> None:
    """They were newer than the saved state: the next probe is the best, and patience counts from there."""
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, save_every=100, eval_every=2, gen_every=0, probe_size=4, decoded=2)
    recipe, steps = replace(recipe, steps=8, batch=2, train_size=10, watch=watch), list[int]()
    train(recipe, tmp_path, device="cpu", progress=steps.append, should_stop=lambda: len(steps) >= 5)
    (tmp_path / "best_probe.safetensors").unlink()
    ended = train(recipe, tmp_path, device="cpu", patience=3)
    assert (ended.step, ended.finished, ended.patience) == (8, True, None)
    assert saved_step(tmp_path / "best_probe.safetensors") in (6, 8)


def test_a_reader_of_reports_that_has_gone_ends_the_run_as_it_is(tmp_path: Path) -> None:
    """`train | head`: no sentence about a disk, and no result that nobody made."""

    def gone(line: LogLine) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        train(recipe_named("addition-random-smoke"), tmp_path, device="cpu", report=gone)


def test_what_is_the_same_everywhere_takes_no_guess() -> None:
    """Of a cell that one problem has, its token is known; of one that two have, what they have in common."""
    task = Addition(digits=4)
    for prompts, guessed in ((["1234+1111"], 0.0), (["1234+1111", "1235+1111"], math.log(2)), (["1234+1111"] * 2, 0.0)):
        corpus = Corpus.on(torch.device("cpu"), task.parse(prompts), task.vocabulary.mask_id)
        guess_A = Probe(corpus, task.vocabulary.size).guess_A
        assert float(guess_A.max()) == pytest.approx(guessed)
        assert int((guess_A > 0).sum()) == (guessed > 0)


def test_what_a_data_file_differs_in_is_named_in_the_order_of_the_recipe(tmp_path: Path) -> None:
    """A field that the recipe's task does not have comes last, wherever the file has it."""
    recipe, path = recipe_named("addition-random-smoke"), tmp_path / "sums.npz"
    built = data.build(Addition(digits=3), data.TRAIN, 0, 4)
    save_instances(path, built.instances, built.manifest)
    side = path.with_suffix(".json")
    held = json.loads(side.read_text())
    held["task"]["fields"] = {"flavour": "mild", **held["task"]["fields"]}
    side.write_text(json.dumps(held))
    with pytest.raises(HardtailError, match=r"it differs in digits.*, flavour$"):
        train(recipe, tmp_path / "run", device="cpu", data_file=path)
