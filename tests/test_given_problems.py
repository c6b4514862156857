"""Problems from files in place of drawn ones: `eval --data`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

import hardtail
from hardtail import HardtailError, Instances
from hardtail.core import hub
from hardtail.core.files import save_instances
from hardtail.core.records import Accuracy, Measurement, read_measurements
from hardtail.core.trace_files import load_trace
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import chosen_policies
from hardtail.measuring.evaluate import Evaluating, Found, evaluate_all, records_of
from hardtail.measuring.given import GivenProblems
from hardtail.measuring.models import subject_of
from hardtail.measuring.plan import Plan
from hardtail.tasks import datasets as data
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.stored import refuse_unsolved
from tests.conftest import Command

TASK = hardtail.task("addition", "paper-carry")
"""The configuration of `zoo:addition-papl-paper`."""


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    path = tmp_path / "sums.txt"
    path.write_text("12345+67890\n1+99999999999999999999999999999999\n5+5\n")
    return path


def test_a_model_is_measured_on_the_problems_of_a_file(tmp_path: Path, sums: Path, hardtail_command: Command) -> None:
    out = tmp_path / "found.jsonl"
    words = ("eval", "zoo:addition-papl-paper", "--data", str(sums), "--policies", "lsb", "--out", str(out))
    code, printed, _ = hardtail_command(*words, "--strata", "natural", "chain>=28")
    assert code == 0
    assert "on sums.txt" in " ".join(printed.split())
    assert "all of the file" in printed
    assert "natural" not in printed
    found = [record for record in read_measurements(out) if isinstance(record, Accuracy)]
    assert [(record.stratum, record.n, record.exact_match) for record in found] == [
        ("natural", 3, 1.0),
        ("chain>=28", 1, 1.0),
    ]
    for record in found:
        assert record.data is not None
        assert (record.data.file, record.data.count) == ("sums.txt", 3)
        assert not record.plainly_decoded, "the ledger counts drawn instances"
    every = GivenProblems.read(TASK, sums)
    assert every.strata(["natural", "chain>=28", "chain=2"]) == ["natural", "chain>=28"]
    assert len(every.spread("chain>=28", 5)) == 1
    together, inside = every.together(["natural", "chain>=28"], 1)
    assert TASK.render(together) == TASK.render(every.together(["natural"], 2)[0])
    assert {name: rows_K.tolist() for name, rows_K in inside.items()} == {
        "natural": [True, False],
        "chain>=28": [False, True],
    }
    assert TASK.render(every.together(["natural"], 2)[0]) == TASK.render(every.together(["natural"], None)[0])[:2]


def test_strata_that_hold_the_same_problems_of_a_file_are_measured_once(sums: Path) -> None:
    subject, given = subject_of("zoo:addition-papl-paper"), GivenProblems.read(TASK, sums)
    assert Plan.of(subject, ["lsb"], given=given).strata == ["natural", "chain>=28"]
    sums.write_text("1+99999999999999999999999999999999\n")
    assert Plan.of(subject, ["lsb"], given=GivenProblems.read(TASK, sums)).strata == ["natural"]
    named = ["chain>=6", "chain>=8"]
    assert Plan.of(subject, ["lsb"], named, given=given).strata == named, "what was asked for is shown"


def test_a_problem_in_several_strata_is_decoded_once_for_each_policy(sums: Path, tmp_path: Path) -> None:
    """What is measured of a stratum is what its problems alone would give."""
    subject, policies = subject_of("zoo:addition-papl-paper"), chosen_policies(TASK, ["lsb", "check"])
    given, decoded = GivenProblems.read(TASK, sums), list[int]()
    strata = ["natural", "chain>=28"]

    def measured(*strata: str) -> list[Found]:
        how, into = Evaluating(progress=decoded.append, failures=1, trust=True), tmp_path / str(len(strata))
        asked = subject, policies, strata, None, Decoding(), how
        return list(evaluate_all(*asked, data_seed=0, given=given, traces=into))

    together = records_of(measured(*strata))
    assert sum(decoded) == 3 * len(policies)
    alone = [record for stratum in strata for record in records_of(measured(stratum))]
    assert [_timeless(record) for record in together] == [_timeless(record) for record in alone]
    for name in ("natural.lsb.npz", "chain-ge-28.check.npz"):
        assert _written(tmp_path / "2" / name) == _written(tmp_path / "1" / name)


def _timeless(record: Measurement) -> Measurement:
    return structs.replace(record, wall=None) if isinstance(record, Accuracy) else record


def _written(path: Path) -> list[object]:
    trace = load_trace(path)
    return [trace.about, trace.to_frame().to_csv(), trace.notes["comb energy"].tolist()]


@pytest.mark.parametrize(
    ("split", "preset", "sentence"),
    [
        ("train", "paper-carry", "is training data"),
        ("test", "paper", "does not hold data of addition in this model's configuration: it differs in sum"),
        ("test", None, "set.npz holds data of listops, the model is of addition; give data of addition"),
    ],
)
def test_data_that_would_mislead_is_refused(tmp_path: Path, split: str, preset: str | None, sentence: str) -> None:
    built = data.build(hardtail.task("addition" if preset else "listops", preset), split, n=5)
    save_instances(tmp_path / "set.npz", built.instances, built.manifest)
    with pytest.raises(HardtailError, match=sentence):
        GivenProblems.read(TASK, tmp_path / "set.npz")


def test_a_file_without_strata_has_only_natural_problems(tmp_path: Path) -> None:
    built = data.build(TASK, "test", n=4)
    save_instances(tmp_path / "set.npz", built.instances.bare(), built.manifest)
    bare = GivenProblems.read(TASK, tmp_path / "set.npz")
    assert len(bare.together(["natural"], None)[0]) == 4
    with pytest.raises(HardtailError, match="built with `--bare`"):
        bare.together(["chain>=2"], None)


def test_a_text_that_cannot_be_read_is_named_with_what_is_wrong_in_it(tmp_path: Path) -> None:
    path = tmp_path / "sums.txt"
    path.write_text("12+34\nno sum\n")
    with pytest.raises(HardtailError, match=r"sums\.txt: problem 2: addition: 'no sum' is not a sum"):
        GivenProblems.read(TASK, path)
    path.unlink()
    with pytest.raises(HardtailError, match=rf"^{path} cannot be read: No such file or directory$"):
        GivenProblems.read(TASK, path)


def test_a_stratum_that_the_file_lacks_is_named(sums: Path) -> None:
    with pytest.raises(HardtailError, match=r"sums.txt has no problem of the stratum chain=2"):
        GivenProblems.read(TASK, sums).together(["chain=2"], None)


def test_a_stratum_that_the_file_lacks_is_refused_before_decodes_are_announced(
    sums: Path, hardtail_command: Command
) -> None:
    words = ("eval", "zoo:addition-papl-paper", "--data", str(sums), "--strata", "chain=2")
    code, printed, said = hardtail_command(*words)
    assert (code, printed) == (2, "")
    assert said == "hardtail: sums.txt has no problem of the stratum chain=2; leave it out\n"


def test_drawn_and_given_instances_exclude_each_other(sums: Path, hardtail_command: Command) -> None:
    code, _, said = hardtail_command("eval", "zoo:addition-papl-paper", "--data", str(sums), "--data-seed", "3")
    assert code == 2
    assert "leave one out" in said


class Longer(Addition):
    """Finds its prompts longer than they are."""

    def parse(self, prompts: Sequence[str]) -> Instances:
        found = super().parse(prompts)
        return replace(found, prompt_len_N=found.prompt_len_N + 1)


class Other(Addition):
    """Writes the first sign of its prompts in another way."""

    def parse(self, prompts: Sequence[str]) -> Instances:
        found = super().parse(prompts)
        found.tokens_NL[:, 0] += 1
        return found


@pytest.mark.parametrize("kind", [Longer, Other])
def test_prompts_that_the_task_would_write_otherwise_are_refused(kind: type[Addition]) -> None:
    instances = Addition(digits=3).parse(["123+456", "100+250"])
    refuse_unsolved(Addition(digits=3), instances, "sums.npz")
    with pytest.raises(HardtailError, match="its prompts are not written as the task writes them"):
        refuse_unsolved(kind(digits=3), instances, "sums.npz")


def test_problems_on_the_hub_are_read_as_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Addition(digits=4)
    built = data.build(task, "test", n=3)
    save_instances(tmp_path / "data.npz", built.instances, built.manifest)
    pinned = Path(f"hf:me/sums@{'a' * 40}")
    monkeypatch.setattr(hub, "pinned_data", lambda path: pinned)
    monkeypatch.setattr(hub, "fetch", lambda *given: hub.Snapshot(tmp_path, hub.Address("me/sums", "a" * 40)))
    found = GivenProblems.read(task, Path("hf:me/sums"))
    assert (found.file.file, found.file.count) == ("me/sums@aaaaaaa", 3)
    np.testing.assert_array_equal(found.instances.tokens_NL, built.instances.tokens_NL)
