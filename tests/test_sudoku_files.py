"""Files of Sudokus, drawn, in lists and in tables, and the hub: what is read, and what is refused."""

import contextlib
import gzip
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from huggingface_hub.errors import HTTPError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardtail.core import hub
from hardtail.core.errors import HardtailError
from hardtail.tasks import datasets as data
from hardtail.tasks.sudoku.files import fetch, read_puzzles
from tests.test_sudoku_task import ANSWER, INKALA, INKALA_ANSWER, PUZZLE, TASK, changed


def drawn(text: str) -> str:
    """A puzzle as people draw it in plain text."""
    rows = [" | ".join(" ".join(text[at + box : at + box + 3]) for box in (0, 3, 6)) for at in range(0, 81, 9)]
    between = "------+-------+------"
    return "\n".join([*rows[:3], between, *rows[3:6], between, *rows[6:]])


def test_tables_and_lists_are_read(tmp_path: Path) -> None:
    table = f"rating,source,answer,question\n30,a,{ANSWER},{PUZZLE}\n,b,,{INKALA.replace('.', '0')}\n"
    plain = f"{PUZZLE}\n\n{INKALA}\n"
    (tmp_path / "t.csv").write_text(table)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(table.encode()))
    (tmp_path / "p.txt").write_text(plain)
    (tmp_path / "p.sdm.gz").write_bytes(gzip.compress(plain.encode()))
    (tmp_path / "grid.txt").write_text(
        "\n".join(text[at : at + 9] for text in (PUZZLE, INKALA) for at in range(0, 81, 9))
    )
    (tmp_path / "noted.txt").write_text(f"# a published list\n#\n{plain}")
    (tmp_path / "t.noted.csv").write_text(f"# a published table\n{table}")
    (tmp_path / "drawn.txt").write_text(f"{drawn(PUZZLE)}\n\n{drawn(INKALA)}\n")
    parsed = TASK.parse([PUZZLE, INKALA])
    assert (TASK.parse([drawn(PUZZLE), drawn(INKALA)]).tokens_NL == parsed.tokens_NL).all()
    for name in ("t.csv", "t.csv.gz", "p.txt", "p.sdm.gz", "grid.txt", "drawn.txt", "noted.txt", "t.noted.csv"):
        loaded = TASK.load(tmp_path / name)
        assert (loaded.tokens_NL == parsed.tokens_NL).all()
        if name.startswith("t."):  # the file's rating decides; where it has none, ours
            assert loaded.strata["rating"].tolist() == [30, parsed.strata["rating"][1]]
            assert loaded.strata["tier"][0] == "hard"
        else:
            assert loaded.strata["tier"][0] == "easy"
    lines = table.splitlines()
    assert TASK.prompts(lines) == [PUZZLE, INKALA.replace(".", "0")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            f"question,answer\n{PUZZLE},{ANSWER}\n{PUZZLE},{changed(ANSWER, 2, '1')}\n",
            "problem 2: .* 1 at row 1, column 3; .* 4",
        ),
        (f"question,answer\n{PUZZLE},{ANSWER[:-2]}\n", "problem 1: sudoku: the answer has length 79"),
        (f"question,rating\n{PUZZLE},hard\n", "problem 1: .*'hard' is not a count"),
        (f"question,rating\n{PUZZLE},{'9' * 20}\n", "problem 1: .*'99999999999999999999' is not a count"),
        (f"question,rating\n{PUZZLE},{'9' * 6000}\n", "problem 1: .* is not a count"),
        (f"question,answer\n{PUZZLE},{ANSWER}\n{'1' * 140_000},\n", "line 3 has more than 100,000 characters"),
        (f"{'1' * 140_000}\n", "line 1 has more than 100,000 characters"),
        (f"question,answer,rating\n{PUZZLE},{ANSWER}\n", "problem 1: .* 2 columns; its header has 3"),
        (f"puzzle,solution\n{PUZZLE},{ANSWER}\n", "no column 'question'"),
        (f"question\n{PUZZLE}\n{PUZZLE[1:]}\n", "problem 2: sudoku: the puzzle has length 80"),
        (f"{PUZZLE}\n{changed(PUZZLE, 2, '7')}\n", "problem 2: sudoku: the 7 occurs twice in row 1"),
        (f"# noted\n{drawn(PUZZLE)}\n{drawn(changed(PUZZLE, 2, '7'))}\n", "problem 2: sudoku: the 7 occurs twice"),
        (f'# noted\nquestion\n{PUZZLE}\n"{"1" * 90_000}\n{"1" * 90_000}', "line 5: sudoku: the row cannot be read"),
        (f"{PUZZLE}\n{changed(INKALA, 0, '.')}\n", "problem 2: sudoku: the puzzle has several"),
    ],
)
def test_broken_files_name_the_problem(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "broken.csv").write_text(text)
    with pytest.raises(HardtailError, match=sentence):
        TASK.load(tmp_path / "broken.csv")


TEXTS = st.one_of(st.text(max_size=90), st.text('0123456789.,|-+ "\r', max_size=90), st.just(PUZZLE), st.just(ANSWER))


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.sampled_from(["", "question\n", "question,answer\n", "question,answer,rating\n", "rating,question\n"]),
    rows=st.lists(st.lists(TEXTS, min_size=1, max_size=3).map(",".join), max_size=3),
)
def test_no_file_breaks_the_loader(tmp_path: Path, header: str, rows: list[str]) -> None:
    text = header + "\n".join(rows)
    (tmp_path / "any.csv").write_bytes(text.encode(errors="surrogatepass"))
    with contextlib.suppress(HardtailError):
        TASK.parse(TASK.prompts(text.splitlines()))
    with contextlib.suppress(HardtailError):
        instances = TASK.load(tmp_path / "any.csv")
        assert TASK.check(instances, instances.answer_NA).all()


def test_files_that_are_not_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_text("question\n")
    for name in ("x.csv.gz", "absent.csv"):
        with pytest.raises(HardtailError, match=name):
            TASK.load(tmp_path / name)


def test_without_the_extra_the_hub_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(HardtailError, match=r"pip install 'hardtail\[hub\]'"):
        TASK.fetch("hub:sapientinc/sudoku-extreme:test")


def test_a_download_that_breaks_off_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*given: object, **more: object) -> NoReturn:
        raise HTTPError("the read timed out")

    monkeypatch.setattr("huggingface_hub.HfApi.snapshot_download", slow)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", slow)
    with pytest.raises(HardtailError, match="me/mine: the read timed out"):
        fetch("hub:me/mine")


def test_the_hub_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []
    for split in ("train", "test"):
        (tmp_path / f"{split}.csv").write_text(
            f"source,question,answer,rating\na,{PUZZLE},{ANSWER},0\nb,{INKALA},{INKALA_ANSWER},7\n"
        )

    def downloaded(address: hub.Address, files: list[str], kind: str) -> hub.Snapshot:
        asked.append((address.name, *files, kind))
        return hub.Snapshot(tmp_path, address)

    monkeypatch.setattr(hub, "fetch", downloaded)
    built = data.load(TASK, "hub:sapientinc/sudoku-extreme:test")
    assert built.instances.strata["rating"].tolist() == [0, 7]
    assert built.manifest.file == "test.csv"
    assert TASK.fetch("hub:") == TASK.fetch("hub:sudoku-extreme") == tmp_path / "train.csv"
    assert TASK.fetch("hub:me/mine:test") == tmp_path / "test.csv"
    assert [held[:2] for held in asked] == [
        *(("sapientinc/sudoku-extreme", f"{split}.csv") for split in ("test", "train", "train")),
        ("me/mine", "test.csv"),
    ]
    assert {kind for *_, kind in asked} == {"dataset"}
    with pytest.raises(HardtailError, match=r"the data set 'me/mine' has no easy\.csv; give another split"):
        fetch("hub:me/mine:easy")


def test_comments_may_come_before_a_table() -> None:
    held = read_puzzles(["# from somewhere", "  # by somebody", "question,answer", f"{PUZZLE},{ANSWER}"])
    assert (list(held.question), list(held.answer)) == ([PUZZLE], [ANSWER])
