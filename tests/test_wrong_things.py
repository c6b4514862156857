"""A person names the wrong thing: the sentence says what it is, and what to give instead."""

import io
from inspect import signature
from pathlib import Path
from typing import Annotated

import pytest

from hardtail.cli.options import option, refuse_outside
from hardtail.cli.study import READ, study
from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds
from tests.conftest import Command
from tests.hostile import small_addition, trace_file, untrained_run


def refused(hardtail_command: Command, *words: str) -> str:
    code, out, err = hardtail_command(*words)
    assert (code, out) == (2, ""), words
    return err.splitlines()[-1]


def test_a_trace_is_no_model(hardtail_command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    trace = trace_file(folder / "mine.npz", small_addition())
    assert f"{trace} is not a model: diagnose, view, compare and report read" in refused(
        hardtail_command, "eval", str(trace)
    )
    for command in ("diagnose", "view", "report", "compare"):
        assert f"it has no recipe.json; name its traces, {folder}/*.npz" in refused(
            hardtail_command, command, str(folder)
        )
    (tmp_path / "empty").mkdir()
    assert "no recipe.json; give one that `hardtail train` wrote" in refused(
        hardtail_command, "eval", str(tmp_path / "empty")
    )


@pytest.mark.parametrize("command", ["diagnose", "view", "report", "compare"])
@pytest.mark.parametrize(
    "option", ["--policy top1", "-n 5", "--template {prompt}", "--trust-remote-code", "--data-seed 0", "--device cpu"]
)
def test_options_of_models_are_refused_for_traces(
    command: str, option: str, hardtail_command: Command, tmp_path: Path
) -> None:
    trace, (flag, *_) = trace_file(tmp_path / "mine.npz", small_addition()), option.split()
    said = refused(hardtail_command, command, str(trace), *option.split())
    named = "--policies" if flag == "--policy" and command != "view" else flag
    assert said == f"hardtail: {named} applies only to models, and none is given; leave it out"


@pytest.mark.parametrize("option", ["--template {prompt}", "--trust-remote-code"])
def test_options_of_other_projects_models_need_one(option: str, hardtail_command: Command) -> None:
    said = refused(hardtail_command, "compare", "zoo:addition-puma", "zoo:addition-papl", *option.split())
    assert "is for models of other projects (hf:…), not for zoo:addition-puma; leave it out" in said


@pytest.mark.parametrize("name", ["nothing.npz", "folder"])
def test_data_that_is_not_there(name: str, hardtail_command: Command, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    given, run = str(tmp_path / name), str(tmp_path / "run")
    for words in (("inspect", given), ("train", "addition-random-smoke", "--out", run, "--data", given)):
        assert f"{given} is not a file; give an .npz or .parquet that `hardtail data` wrote" in refused(
            hardtail_command, *words
        )


def test_a_text_file_without_a_problem(hardtail_command: Command, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    said = f"{empty} has no problem of addition; give one on each line"
    assert said in refused(hardtail_command, "eval", "zoo:addition-random", "--data", str(empty))
    assert said in refused(
        hardtail_command, "data", "addition", "--from", str(empty), "--out", str(tmp_path / "new.npz")
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("eval zoo:addition-random --policy dead_end_filling", "'dead_end_filling' is a logical order of maze alone"),
        ("eval no_such_module:model --task addition", "No module named 'no_such_module'; modules are also looked for"),
        ("study additon", "there is no grid or run 'additon'; did you mean 'addition'?"),
        ("study nothing-like-it", "there is no grid or run 'nothing-like-it'; the grids are addition, "),
        ("study advnace addition", "did you mean `hardtail study advance addition`?"),
        ("study paln", "did you mean `hardtail study plan`?"),
        ("study maze-pumma-s42", "did you mean 'maze-puma-s42'?"),
        ("eval addition-papl-paper", "did you mean zoo:addition-papl-paper?"),
        ("eval addition-pumma", "did you mean zoo:addition-puma?"),
        ("eval addition-papl-paper-s42", "there is no such run or file; give a directory"),
        ("eval nope.safetensors", "nope.safetensors: there is no such file; give"),
        ("train zoo:addition-puma", "`hardtail train RECIPE --model zoo:addition-puma` trains it further"),
        ("claims --markdown --json", "--markdown and --json exclude each other"),
        ("evl zoo:addition-random", "there is no command 'evl'; did you mean 'eval'?"),
        ("decode zoo:addition-random", "`hardtail eval MODEL --traces DIR` decodes"),
        ("eval zoo:addition-random --traces /proc/t", "/proc/t/trace.npz cannot be written"),
        ("diagnose zoo:addition-puma nothing -n 10", "nothing: there is no such run or file"),
        ("train addition-puma-smoke --sizes.heads 3", "width 32 does not divide into 3 heads; give a multiple of 3"),
        ("train nothing", "there is no recipe 'nothing'; `hardtail train` lists the recipes"),
    ],
)
def test_a_name_that_is_none(words: str, sentence: str, hardtail_command: Command) -> None:
    assert sentence in refused(hardtail_command, *words.split())


FAR = f"/home/{'far/' * 30}away"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("eval zoo:a --bogus", "not understood: --bogus; `hardtail eval --help` has more"),
        (f"eval zoo:a {FAR}", f"not understood: {FAR}; `hardtail eval --help` has more"),
        ("eval zoo:a --batch", "--batch needs a value; `hardtail eval --help` has more"),
        (
            "compare zoo:a --polici lsb --bach 3",
            "not understood: --polici, lsb, --bach, 3; did you mean --batch N or --policy, --policies POLICY? "
            "`hardtail compare --help` has more",
        ),
        (
            "solve",
            "missing: TASK (a name from `hardtail tasks`, or package.module:Class; fields after "
            "commas: addition,digits=8), PROMPT (a problem, a file of problems, or - for standard input); "
            "`hardtail solve --help` has more",
        ),
        (
            "train addition-puma --steps x",
            "--steps: 'x' is not a whole number; write one in digits, such as 1000; "
            "`hardtail train addition-puma --help` has more",
        ),
        ("xyz", "there is no command 'xyz'; `hardtail --help` lists them"),
        (
            "eval -n 3 --polici=lsb zoo:a",
            "model needs a value; write it before all options; `hardtail eval --help` has more",
        ),
        ("eval zoo:a -n", "-n/--n needs a value; `hardtail eval --help` has more"),
        (
            "train addition-puma --watch.probe test",
            "--watch.probe needs 2 values; `hardtail train addition-puma --help` has more",
        ),
        (
            "eval zoo:a --policies --strata natural",
            "--policy/--policies: there is no value; give at least one, or leave the option out; "
            "`hardtail eval --help` has more",
        ),
        (
            "sample addition --set",
            "--set: there is no value; give at least one, or leave the option out; `hardtail sample --help` has more",
        ),
        (
            "data --set digits=3 addition --out x.npz",
            "missing: TASK (a name from `hardtail tasks`, or package.module:Class; fields after "
            "commas: addition,digits=8); write it before all options; "
            "`hardtail data --help` has more",
        ),
    ],
)
def test_what_the_parser_refuses_is_one_sentence_as_all_else(
    words: str, sentence: str, encoding: str, hardtail_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    assert hardtail_command(*words.split()) == (2, "", f"hardtail: {sentence}\n")


NOT_ZERO = "-n is 0; it must be at least 1 and at most 100,000,000"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("eval zoo:addition-puma --batch -1", "--batch is -1; it must be at least 1"),
        ("eval zoo:addition-puma --seed -1", "--seed is -1; it must be at least 0 and below 2^63"),
        ("eval zoo:addition-puma --temperature nan", "--temperature is nan; it must be at least 0 and finite"),
        ("eval zoo:addition-puma --schedule dream", "--schedule dream divides a total of steps; give that as --steps"),
        ("diagnose zoo:addition-puma --data-seed -1", "--data-seed is -1; it must be at least 0 and below 2^64"),
        ("view zoo:addition-puma --data-seed -1", "--data-seed is -1; it must be at least 0 and below 2^64"),
        ("compare zoo:addition-puma --batch 0", "--batch is 0; it must be at least 1"),
        ("report zoo:addition-puma --data-seed -1", "--data-seed is -1; it must be at least 0 and below 2^64"),
        ("sample addition --seed -1", "--seed is -1; it must be at least 0 and below 2^64"),
        ("train addition-puma-smoke --steps -4", "--steps is -4; it must be at least 1"),
        ("train addition-puma-smoke --seed -1", "--seed is -1; it must be at least 0 and below 2^64"),
        *((f"{command} -n 0", NOT_ZERO) for command in ("eval zoo:addition-puma", "diagnose zoo:addition-puma")),
        *((f"{command} -n 0", NOT_ZERO) for command in ("compare a b", "report a", "view a", "sample addition")),
        *((f"{command} -n 0", NOT_ZERO) for command in ("data addition --out x.npz", "study advance addition")),
        ("eval zoo:addition-puma --gallery -1", "--gallery is -1; it must be at least 0"),
        ("study plan addition --gpus 0", "--gpus is 0; it must be at least 1"),
        ("study advance addition --minutes 0.3", "--minutes is 0.3; it must be at least 0.5"),
        ("study advance addition --launcher ray --cpus-per-run 0", "--cpus-per-run is 0; it must be at least 1"),
        ("study advance addition --launcher ray --gpus-per-run -1", "--gpus-per-run is -1.0; it must be at least 0"),
        ("solve addition 1+2 --limit 0", "--limit is 0; it must be at least 1 and at most 2^30"),
        ("view zoo:addition-puma --instance -1", "--instance is -1; it must be at least 0"),
    ],
)
def test_a_number_out_of_bounds_is_named_by_its_option(words: str, said: str, hardtail_command: Command) -> None:
    """Before anything is loaded: nothing else is printed."""
    code, out, err = hardtail_command(*words.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"hardtail: {said}")
    assert err.count("\n") == 1


def test_a_renamed_option_is_called_by_its_name() -> None:
    def command(*, long_name: Annotated[int, option("a number", "N", name="short"), Bounds(ge=1)] = 1) -> None: ...

    refuse_outside(command, {"long_name": 1})
    with pytest.raises(HardtailError, match=r"^--short is 0; it must be at least 1$"):
        refuse_outside(command, {"long_name": 0})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("study prepare maze --data x.npz", "--data applies to `study GRID`, `study plan`, `study advance`, not to"),
        ("study pack maze-puma-s42 --patience 5", "--patience applies to `study advance`, not to `study pack`; leave"),
        ("study unpack packed --bf16-moments", "--bf16-moments applies to `study pack`, not to `study unpack`; leave"),
        ("study plan maze --minutes 5", "--minutes applies to `study advance`, not to `study plan`; leave it out"),
        ("study maze -n 5", "-n applies to `study plan`, `study advance`, `study prepare`, not to `study GRID`; leave"),
        ("study --gpus 8", "--gpus applies to `study plan`, not to `study`; leave it out"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(words: str, said: str, hardtail_command: Command) -> None:
    assert refused(hardtail_command, *words.split()).startswith(f"hardtail: {said}")


def test_every_option_of_the_study_is_read_by_something() -> None:
    assert {name for read in READ.values() for name in read} == signature(study).parameters.keys() - {"words"}


@pytest.mark.parametrize("flag", ["--runs", "--results"])
@pytest.mark.parametrize("words", ["study", "study plan addition-small", "study advance addition-small"])
def test_a_file_in_place_of_a_folder_of_runs(words: str, flag: str, hardtail_command: Command, tmp_path: Path) -> None:
    """It is refused once, before anything is read or trained."""
    (tmp_path / "text.txt").touch()
    code, out, err = hardtail_command(*words.split(), flag, str(tmp_path / "text.txt"))
    assert (code, out) == (2, "")
    assert err == f"hardtail: {flag} {tmp_path}/text.txt is a file; give a folder or s3://BUCKET/PREFIX\n"


def test_a_folder_that_is_made_for_a_result_is_named_once(hardtail_command: Command, tmp_path: Path) -> None:
    """A mistyped folder would otherwise go unnoticed."""
    run, new = str(untrained_run(tmp_path / "run")), tmp_path / "new"
    some = ("--strata", "natural", "-n", "1", "--policies", "top1")
    for words in (
        ("data", "addition", "-n", "2", "--out", str(new / "data" / "x.npz")),
        ("eval", run, *some, "--out", str(new / "eval" / "x.jsonl")),
        ("diagnose", run, *some, "--out", str(new / "diagnose" / "x.jsonl")),
    ):
        said = f"{new / words[0]} is a new folder, and will be made\n"
        code, _, err = hardtail_command(*words)
        assert (code, err.count(said)) == (0, 1), err
        _, _, err = hardtail_command(*words)
        assert "a new folder" not in err


@pytest.mark.parametrize("command", ["eval", "diagnose"])
def test_records_are_not_added_to_another_file(command: str, hardtail_command: Command, tmp_path: Path) -> None:
    notes = tmp_path / "notes.json"
    notes.write_text("[1]\n")
    run = str(untrained_run(tmp_path / "run"))
    assert f"--out {notes}: records are added to a file whose name ends in .jsonl" in refused(
        hardtail_command, command, run, "-n", "1", "--out", str(notes)
    )
    assert notes.read_text() == "[1]\n"
