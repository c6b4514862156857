"""Sudoku as text: boards from characters, lists and tables from files, *sudoku-extreme* from the Hugging Face hub.

Shapes: N puzzles, C = 81 cells.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.tasks.sudoku.solver.board import UNITS, Board

HUB = "hub:"
HUB_OWNER, HUB_SET = "sapientinc", "sudoku-extreme"
HIGHEST_RATING = 999_999
"""What a file's rating may be; *sudoku-extreme* goes up to 465."""
_BAD = 255
_DIGIT_OF_CODE = np.full(256, _BAD, dtype=np.uint8)
_DIGIT_OF_CODE[[ord(character) for character in "0123456789"]] = np.arange(10)
_DIGIT_OF_CODE[ord(".")] = 0
_LINES = str.maketrans("", "", "|-+│─┼")  # what boxes are drawn with

Place = Callable[[int], str]
"""What a message about puzzle `i` begins with, e.g. `entry 7: `."""


def nowhere(i: int) -> str:
    """The place of a single puzzle: nothing to say."""
    return ""


@dataclass(frozen=True)
class Puzzles:
    """What a file holds: puzzles, and solutions and ratings where it has them ('' and -1 where not)."""

    question: list[str]
    answer: list[str]
    rating_N: NDArray[np.int32]
    first_line: int = 1

    @classmethod
    def alone(cls, question: Sequence[str]) -> "Puzzles":
        """Puzzles without answers and ratings."""
        return cls(list(question), [""] * len(question), np.full(len(question), -1, dtype=np.int32))

    def place(self, i: int) -> str:
        return f"entry {i + self.first_line}: "


def place_of(cell: int) -> str:
    return f"row {cell // 9 + 1}, column {cell % 9 + 1}"


def unit_name(unit: int) -> str:
    return f"{('row', 'column', 'box')[unit // 9]} {unit % 9 + 1}"


def _cells(text: str) -> str:
    """The cells of a drawn board: spaces, line breaks and the lines between boxes left out."""
    return "".join(text.split()).translate(_LINES)


def read_boards(texts: Sequence[str], place: Place = nowhere, what: str = "puzzle") -> Board:
    """81 cells each, blanks as `.` or `0`, drawn in any way; the first fault is an error."""
    flat = [_cells(text).removesuffix("=") for text in texts]
    for i, text in enumerate(flat):
        if len(text) != 81:
            raise HardtailError(
                f"{place(i)}sudoku: the {what} has {len(text)} characters; it takes 81, row by row, "
                "with . or 0 for blanks"
            )
    codes = np.frombuffer("".join(flat).encode("latin-1", errors="replace"), dtype=np.uint8)
    board_NC = _DIGIT_OF_CODE[codes].reshape(len(flat), 81)
    if (board_NC == _BAD).any():
        i, cell = divmod(int(np.argmax(board_NC == _BAD)), 81)
        raise HardtailError(
            f"{place(i)}sudoku: {flat[i][cell]!r} at {place_of(cell)} is not a cell; write 1 to 9, . or 0 for blanks"
        )
    return board_NC


def check_givens(board_NC: Board, place: Place = nowhere) -> None:
    """No digit occurs twice in a unit, and something is left to solve."""
    bit_NC = np.where(board_NC > 0, 1 << board_NC.astype(np.int16), 0)
    once_NU = np.zeros((len(board_NC), 27), dtype=bit_NC.dtype)
    twice_NU = np.zeros_like(once_NU)
    for cell_U in UNITS.T:
        bit_NU = bit_NC[:, cell_U]
        twice_NU |= once_NU & bit_NU
        once_NU |= bit_NU
    wrong_N = twice_NU.any(axis=1) | (board_NC > 0).all(axis=1)
    if not wrong_N.any():
        return
    i = int(np.argmax(wrong_N))
    if not twice_NU[i].any():
        raise HardtailError(f"{place(i)}sudoku: the puzzle has no blank cell; leave some as . or 0")
    unit = int(np.argmax(twice_NU[i] > 0))
    digit = int(twice_NU[i, unit] & -twice_NU[i, unit]).bit_length() - 1
    raise HardtailError(f"{place(i)}sudoku: the {digit} occurs twice in {unit_name(unit)}; no digit may")


def check_solutions(count_N: NDArray[np.integer], place: Place = nowhere) -> None:
    """Every puzzle has one solution (`count_N` is capped at 2)."""
    if (count_N != 1).any():
        i = int(np.argmax(count_N != 1))
        found = "several solutions" if count_N[i] else "no solution"
        raise HardtailError(f"{place(i)}sudoku: the puzzle has {found}; it must have exactly one")


def check_answers(puzzles: Puzzles, solution_NC: Board) -> None:
    """The solutions that the file gives are the puzzles' own."""
    held = [i for i, answer in enumerate(puzzles.answer) if answer]
    given_HC = read_boards([puzzles.answer[i] for i in held], lambda h: puzzles.place(held[h]), what="answer")
    wrong_HC = given_HC != solution_NC[held]
    if wrong_HC.any():
        h, cell = divmod(int(np.argmax(wrong_HC)), 81)
        raise HardtailError(
            f"{puzzles.place(held[h])}sudoku: the answer has {given_HC[h, cell]} at {place_of(cell)}; "
            f"the puzzle's only solution has {solution_NC[held[h], cell]}"
        )


# -- files ------------------------------------------------------------------------------------------------------


def is_table(lines: Sequence[str]) -> bool:
    """Whether the first line is a header with the column `question`."""
    return bool(lines) and "question" in _fields(lines[0])


def read_list(lines: Sequence[str]) -> list[str]:
    """One puzzle a line, or drawn as nine lines of nine cells each, with or without lines between boxes."""
    rows = [row for line in lines if (row := _cells(line))]
    if rows and len(rows) % 9 == 0 and all(len(row) == 9 for row in rows):
        return ["\n".join(rows[at : at + 9]) for at in range(0, len(rows), 9)]
    return list(lines)


def read_puzzles(lines: Sequence[str]) -> Puzzles:
    """A table with the columns `question[,answer][,rating]`, or a plain list."""
    if not is_table(lines):
        if lines and "," in lines[0]:
            raise HardtailError(
                f"sudoku: the first line, {lines[0][:60]!r}, names no column 'question'; give a table with the columns "
                "question[,answer][,rating], or a plain list of puzzles of 81 characters"
            )
        return Puzzles.alone(read_list(lines))
    header = _fields(lines[0])
    at = {name: header.index(name) for name in ("question", "answer", "rating") if name in header}
    last = max(at.values())
    question, answer, rating = [], [], []
    for number, row in enumerate(_rows(lines[1:], first=2), start=2):
        if len(row) <= last:
            raise HardtailError(f"entry {number}: sudoku: the row has {len(row)} columns; its header has {len(header)}")
        question.append(row[at["question"]])
        answer.append(row[at["answer"]].strip() if "answer" in at else "")
        rating.append(_rating(row[at["rating"]], number) if "rating" in at else -1)
    return Puzzles(question, answer, np.array(rating, dtype=np.int32), first_line=2)


def _rows(lines: Sequence[str], first: int) -> Iterator[list[str]]:
    """The fields of every row of a table whose first line here has the number `first`."""
    reader = csv.reader(lines)
    try:
        yield from reader
    except csv.Error as error:
        raise HardtailError(f"entry {first - 1 + reader.line_num}: sudoku: the row cannot be read: {error}") from None


def _fields(line: str) -> list[str]:
    return [name.strip().lower() for row in _rows([line], first=1) for name in row]


def _rating(text: str, number: int) -> int:
    text = text.strip()
    if not text:
        return -1
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(HIGHEST_RATING)):
        raise HardtailError(
            f"entry {number}: sudoku: the rating {text[:40]!r} is not a count of guesses; it is 0 to {HIGHEST_RATING}"
        )
    return int(text)


# -- hub --------------------------------------------------------------------------------------------------------


def fetch(source: str) -> Path:
    """The file that `source` names; `hub:OWNER/NAME[:SPLIT]` is downloaded (once) from the Hugging Face hub.

    `hub:` and `hub:sudoku-extreme` mean `hub:sapientinc/sudoku-extreme`.
    """
    if not source.startswith(HUB):
        return Path(source)
    name, _, split = source.removeprefix(HUB).partition(":")
    return fetch_hub(f"{HUB_OWNER}/{HUB_SET}" if name in ("", HUB_SET) else name, split or "train")


def fetch_hub(name: str, split: str) -> Path:
    """`SPLIT.csv` of a data set on the hub, in the hub's own cache."""
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError:
        raise HardtailError(
            f"sudoku: {name} is on the Hugging Face hub, which needs an extra: pip install 'hardtail[hub]'"
        ) from None
    try:
        return Path(hf_hub_download(name, f"{split}.csv", repo_type="dataset"))
    except (LocalEntryNotFoundError, ConnectionError):
        raise HardtailError(
            f"sudoku: the Hugging Face hub cannot be reached for {name}; connect to the network, or give a file "
            f"({split}.csv of that data set) instead"
        ) from None
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise HardtailError(f"sudoku: the hub gives no {split}.csv of the data set {name!r}: {reason}") from None
