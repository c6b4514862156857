"""Sudoku as text: boards from characters, lists and tables from files, *sudoku-extreme* from the Hugging Face Hub.

Shapes: N puzzles, C = 81 cells.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardtail.core import hub
from hardtail.core.errors import HardtailError
from hardtail.tasks.sudoku.solver.board import Board, digit_masks, once_and_twice

HUB = "hub:"
SUDOKU_EXTREME = "sapientinc/sudoku-extreme"
HIGHEST_RATING = 999_999
"""The highest rating that a file may give; *sudoku-extreme* goes up to 465."""
_NOT_A_CELL = 255
_DIGIT_OF_CODE = np.full(256, _NOT_A_CELL, dtype=np.uint8)
_DIGIT_OF_CODE[[ord(character) for character in "0123456789"]] = np.arange(10)
_DIGIT_OF_CODE[ord(".")] = 0
_BOX_DRAWING = str.maketrans("", "", "|-+│─┼")


@dataclass(frozen=True)
class Puzzles:
    """Puzzles as text, with solutions and ratings where they are given ('' and -1 where not)."""

    question: Sequence[str]
    answer: Sequence[str]
    rating_N: NDArray[np.int32]
    numbered: bool
    """Whether messages say which puzzle is at fault: of a file, the first is problem 1."""

    @classmethod
    def alone(cls, question: Sequence[str], *, numbered: bool = False) -> "Puzzles":
        """Puzzles without answers and ratings."""
        return cls(question, [""] * len(question), np.full(len(question), -1, dtype=np.int32), numbered)

    def place(self, i: int) -> str:
        """The beginning of a message about puzzle `i`."""
        return f"problem {i + 1}: " if self.numbered else ""


def cell_place(cell: int) -> str:
    return f"row {cell // 9 + 1}, column {cell % 9 + 1}"


def unit_name(unit: int) -> str:
    return f"{('row', 'column', 'box')[unit // 9]} {unit % 9 + 1}"


def _cells(text: str) -> str:
    """The cells of a drawn board, without spaces, line breaks and the lines between boxes."""
    return "".join(text.split()).translate(_BOX_DRAWING)


def read_boards(texts: Sequence[str], place: Callable[[int], str] = lambda i: "", what: str = "puzzle") -> Board:
    """Boards of 81 cells, blanks as `.` or `0`, drawn in any way; raises HardtailError at the first fault."""
    flat = [_cells(text).removesuffix("=") for text in texts]
    for i, text in enumerate(flat):
        if len(text) != 81:
            raise HardtailError(
                f"{place(i)}sudoku: the {what} has length {len(text)}; give 81, row by row, with . or 0 for blanks"
            )
    codes = np.frombuffer("".join(flat).encode("latin-1", errors="replace"), dtype=np.uint8)
    board_NC = _DIGIT_OF_CODE[codes].reshape(len(flat), 81)
    if (board_NC == _NOT_A_CELL).any():
        i, cell = divmod(int(np.argmax(board_NC == _NOT_A_CELL)), 81)
        raise HardtailError(
            f"{place(i)}sudoku: {flat[i][cell]!r} at {cell_place(cell)} is not a cell; write 1 to 9, . or 0 for blanks"
        )
    return board_NC


def read_givens(puzzles: Puzzles) -> Board:
    """The boards of puzzles in which no digit occurs twice in a unit and something is left to solve."""
    board_NC = read_boards(puzzles.question, puzzles.place)
    twice_NU = once_and_twice(digit_masks(board_NC))[1]
    wrong_N = twice_NU.any(axis=1) | (board_NC > 0).all(axis=1)
    if wrong_N.any():
        i = int(np.argmax(wrong_N))
        if not twice_NU[i].any():
            raise HardtailError(f"{puzzles.place(i)}sudoku: the puzzle has no blank cell; leave some as . or 0")
        unit = int(np.argmax(twice_NU[i] > 0))
        digit = int(twice_NU[i, unit] & -twice_NU[i, unit]).bit_length()
        raise HardtailError(
            f"{puzzles.place(i)}sudoku: the {digit} occurs twice in {unit_name(unit)}; a digit may occur once"
        )
    return board_NC


def check_solutions(puzzles: Puzzles, count_N: NDArray[np.integer], solution_NC: Board) -> None:
    """Each puzzle has one solution (`count_N` is capped at 2), and the file's answer, if any, is that solution."""
    if (count_N != 1).any():
        i = int(np.argmax(count_N != 1))
        found = "several solutions" if count_N[i] else "no solution"
        raise HardtailError(f"{puzzles.place(i)}sudoku: the puzzle has {found}; it must have exactly one")
    held = [i for i, answer in enumerate(puzzles.answer) if answer]
    given_HC = read_boards([puzzles.answer[i] for i in held], lambda h: puzzles.place(held[h]), what="answer")
    wrong_HC = given_HC != solution_NC[held]
    if wrong_HC.any():
        h, cell = divmod(int(np.argmax(wrong_HC)), 81)
        raise HardtailError(
            f"{puzzles.place(held[h])}sudoku: the answer has {given_HC[h, cell]} at {cell_place(cell)}; "
            f"the puzzle's only solution has {solution_NC[held[h], cell]}"
        )


# -- files ------------------------------------------------------------------------------------------------------


def read_puzzles(lines: Sequence[str]) -> Puzzles:
    """A table with the columns `question[,answer][,rating]`, or a plain list; comments (`#`) may come first."""
    comments = next((place for place, line in enumerate(lines) if not line.lstrip().startswith("#")), len(lines))
    lines = lines[comments:]
    rows = _rows(lines, comments)
    header = [name.strip().lower() for name in next(rows, [])]
    if "question" not in header:
        if len(header) > 1:
            raise HardtailError(
                f"sudoku: the first line, {lines[0][:60]!r}, has no column 'question'; give a table with the columns "
                "question[,answer][,rating], or a plain list of puzzles of 81 characters"
            )
        return Puzzles.alone(_read_list(lines), numbered=True)
    at = {name: header.index(name) for name in ("question", "answer", "rating") if name in header}
    question, answer, rating = [], [], []
    for number, row in enumerate(rows, start=1):
        if len(row) <= max(at.values()):
            raise HardtailError(
                f"problem {number}: sudoku: the row has {len(row)} columns; its header has {len(header)}"
            )
        question.append(row[at["question"]])
        answer.append(row[at["answer"]].strip() if "answer" in at else "")
        rating.append(_rating(row[at["rating"]].strip(), number) if "rating" in at else -1)
    return Puzzles(question, answer, np.array(rating, dtype=np.int32), numbered=True)


def _read_list(lines: Sequence[str]) -> Sequence[str]:
    """One puzzle per line, or drawn as nine lines of nine cells each, with or without lines between boxes."""
    rows = [row for line in lines if (row := _cells(line))]
    if rows and len(rows) % 9 == 0 and all(len(row) == 9 for row in rows):
        return ["\n".join(rows[at : at + 9]) for at in range(0, len(rows), 9)]
    return lines


def _rows(lines: Sequence[str], comments: int) -> Iterator[list[str]]:
    reader = csv.reader(lines)
    try:
        yield from reader
    except csv.Error as error:
        raise HardtailError(f"line {comments + reader.line_num}: sudoku: the row cannot be read: {error}") from None


def _rating(text: str, number: int) -> int:
    if not text:
        return -1
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(HIGHEST_RATING)):
        raise HardtailError(
            f"problem {number}: sudoku: the rating {text[:40]!r} is not a count of guesses; give 0 to {HIGHEST_RATING}"
        )
    return int(text)


# -- hub --------------------------------------------------------------------------------------------------------


def fetch(source: str) -> Path:
    """The file that `source` names; `hub:OWNER/NAME[@REVISION][:SPLIT]` is downloaded once from the Hugging Face Hub.

    `hub:` and `hub:sudoku-extreme` mean `hub:sapientinc/sudoku-extreme`.
    """
    if not source.startswith(HUB):
        return Path(source)
    name, _, split = source.removeprefix(HUB).partition(":")
    address = hub.Address.parse(SUDOKU_EXTREME if name in ("", "sudoku-extreme") else name)
    path = hub.fetch(address, [file := f"{split or 'train'}.csv"], "dataset").folder / file
    if not path.is_file():
        raise HardtailError(
            f"sudoku: the data set {address.name!r} has no {file}; give another split, as {HUB}NAME:SPLIT"
        )
    return path
