"""What a person sees on a screen of 80 columns, kept as text in `tests/screens`.

`HARDTAIL_SCREENS=write pytest tests/test_screens.py` writes them again after a change that is meant.
"""

import os
import re
from pathlib import Path

import pytest

from hardtail.core.trace_files import save_trace
from hardtail.study.claims import claim_named
from tests.conftest import Command
from tests.diagnose_toys import SMALL, small
from tests.planted_results import Planted, as_printed, together
from tests.test_verdict import noisy

FOLDER = Path(__file__).parent / "screens"


def compared(name: str, out: str) -> None:
    """The screen as it is kept, without blanks at the ends of lines."""
    shown = re.sub(r" +$", "", out, flags=re.MULTILINE)
    path = FOLDER / f"{name}.txt"
    if os.environ.get("HARDTAIL_SCREENS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown)
    assert shown == path.read_text()
    assert max(map(len, shown.splitlines())) <= 80


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize(
    "words", ["zoo", "zoo addition-papl-paper", "policies", "policies check lsb", "tasks", "gallery", "train"]
)
def test_a_screen_is_what_it_was(words: str, hardtail_command: Command) -> None:
    code, out, err = hardtail_command(*words.split())
    assert (code, err) == (0, "")
    compared(words.replace(" ", "-"), out)


def test_a_narrow_screen_loses_nothing_of_the_tasks(hardtail_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "56")
    code, out, _ = hardtail_command("tasks")
    assert (code, "…" in out) == (0, False)
    assert {name in out for name in ("addition", "countdown", "884", "corridor>=", "10,000")} == {True}


def test_a_verdict_and_its_tables(hardtail_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    about = {"task": {"name": "addition", "fields": SMALL.config()}, "model": "mine", "policy": "top1"}
    trace = noisy(SMALL, small(20))
    save_trace(Path("mine.npz"), type(trace)(**vars(trace) | {"about": about}))
    code, out, err = hardtail_command("diagnose", "mine.npz")
    assert code == 0, err
    compared("diagnose", out)
    code, out, err = hardtail_command("diagnose", "mine.npz", "--full")
    assert code == 0, err
    compared("diagnose-full", out)


def test_the_first_claims(hardtail_command: Command, tmp_path: Path) -> None:
    made = Planted(tmp_path / "results")
    for figure, value in together(claim_named("addition.puma.lower"), as_printed).items():
        made.plant(figure, value, n=500)
    code, out, err = hardtail_command("claims", "--results", str(made.written().folder))
    assert code == 0, err
    compared("claims-head", "\n".join(out.splitlines()[1:10]) + "\n")


COMMANDS = "eval diagnose compare view report demo gallery policies tasks sample solve check data inspect study zoo"


@pytest.mark.parametrize("command", [*COMMANDS.split(), "claims", "train addition-puma-smoke"])
def test_help_names_no_empty_default_and_no_none(command: str, hardtail_command: Command) -> None:
    code, out, err = hardtail_command(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert "{None}" not in out
    assert "None," not in out
    assert "(default: )" not in out


@pytest.mark.parametrize("command", ["", *COMMANDS.split(), "claims", "import", "push", "lm-eval"])
def test_help_fits_the_screen(command: str, hardtail_command: Command) -> None:
    code, out, err = hardtail_command(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("study advance", "[plan|advance|prepare|pack|unpack] [GRID|RUN ...]"),
        ("eval zoo:addition-puma", "MODEL"),
        ("diagnose", "MODEL ..."),
        ("report", "[MODEL ...]"),
        ("zoo", "[NAME ...]"),
        ("claims", "[ID ...]"),
    ],
)
def test_usage_shows_positional_arguments_and_whether_they_are_needed(
    command: str, usage: str, hardtail_command: Command
) -> None:
    """Also after some of them: what is asked is how the command goes on."""
    code, out, err = hardtail_command(*command.split(), "--help")
    assert (code, err) == (0, "")
    head = " ".join(out.split("\n\n")[0].split()).removesuffix(" [--json]")
    assert head.endswith(f"] {usage}")
    assert "positional arguments" in out


def test_usage_and_lists_keep_their_indent(hardtail_command: Command) -> None:
    _, out, _ = hardtail_command("study", "--help")
    usage, _, items, *_ = out.split("\n\n")
    assert usage.splitlines()[1] == " " * len("usage: hardtail study ") + "[GRID|RUN ...]"
    starts = [line[:2] for line in items.splitlines()[1:]]
    assert set(starts) == {"- ", "  "}
    assert starts.count("- ") == 4


@pytest.mark.parametrize("words", ["eval zoo:addition-puma --bogus", "eval zoo:addition-puma -n x", "eval"])
def test_a_mistake_points_to_the_help_of_the_command(words: str, hardtail_command: Command) -> None:
    code, _, err = hardtail_command(*words.split())
    assert (code, "hardtail eval --help" in err) == (2, True)


@pytest.mark.parametrize("word", ["1e3", "１２", "1_000", "x"])
def test_what_is_no_whole_number_is_told_so_in_words(word: str, hardtail_command: Command) -> None:
    for words in (("eval", "zoo:addition-puma", "-n"), ("train", "addition-puma-smoke", "--steps")):
        code, _, err = hardtail_command(*words, word)
        assert (code, f"'{word}' is not a whole number" in " ".join(err.split())) == (2, True)
        assert "base 10" not in err


def test_a_mistake_in_training_points_to_the_help_of_what_was_typed(
    hardtail_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    for typed in ("tests.wide_toys:recipe", "addition-puma-smoke --scheme papl,alpha=2"):
        code, _, err = hardtail_command("train", *typed.split(), "--stps", "3")
        assert (code, f"`hardtail train {typed} --help` has more" in err) == (2, True)


def test_help_of_a_field_breaks_lines_where_the_screen_ends(hardtail_command: Command) -> None:
    _, out, _ = hardtail_command("train", "addition-puma-smoke", "--help")
    assert "and then one more, one less" in out


@pytest.mark.parametrize("command", ["inspect", "push"])
def test_the_task_of_a_file_is_asked_for_only_if_it_is_not_registered(command: str, hardtail_command: Command) -> None:
    _, out, _ = hardtail_command(command, "--help")
    assert "a function, module or hf: model" not in " ".join(out.replace("│", " ").split())
    assert "if it is not registered" in " ".join(out.replace("│", " ").split())


def test_what_a_command_prints_is_not_wrapped(hardtail_command: Command) -> None:
    code, out, err = hardtail_command("sample", "addition", "--json")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) > 80


def test_the_list_of_commands_has_a_sentence_for_each_and_their_own_help_has_all(hardtail_command: Command) -> None:
    sentence, more = "what is missing, and the next step.", "The first word says what to do"
    for shown, words in ((False, ("--help",)), (False, ()), (True, ("study", "--help")), (False, ("-h",))):
        _, out, _ = hardtail_command(*words)
        text = " ".join(out.replace("│", " ").split())
        assert (sentence in text, more in text) == (True, shown), words


OWN = "eval diagnose compare view report sample solve check data inspect push import claims lm-eval"


@pytest.mark.parametrize("command", OWN.split())
def test_where_own_classes_can_be_named_help_says_where_they_are_looked_for(
    command: str, hardtail_command: Command
) -> None:
    _, out, _ = hardtail_command(command, "--help")
    assert re.search(r"--path DIR:? +a folder with your own package.module:NAME", out)


def test_an_option_has_one_name_and_one_meaning(hardtail_command: Command) -> None:
    """Weights are chosen by --checkpoint and instances by --data-seed, wherever they are chosen."""
    for command in ("eval", "diagnose", "compare", "view", "report"):
        _, out, _ = hardtail_command(command, "--help")
        assert "--kind" not in out
        assert {"--checkpoint", "--data-seed", "--task", "--device"} <= set(re.findall(r"--[a-z-]+", out))
    _, out, _ = hardtail_command("claims", "--help")
    assert "--checkpoint" in out
