"""Decodes that another tool recorded, as traces: a JSON file with problems and the canvas after every step.

`problems`   as the task reads them
`canvases`   for every step in turn, the answer to every problem: text, or the tool's token ids
`mask`       how a hidden cell is written there: text, or an id
`tokens`     with ids: the id of each of the task's characters or words; any other id is a wrong token
`answer_at`  with ids of whole sequences: where the answer begins, for all problems or for each
`model`, `policy`  what tables call them

Shapes: N instances, A answer cells.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.files import MOST_TEXT, read_regular
from hardtail.core.parsing import converted, decoded
from hardtail.core.types import Tokens, Trace
from hardtail.core.vocabulary import Vocabulary
from hardtail.tasks.base import Task
from hardtail.tasks.named import task_to_json
from hardtail.traces.canvases import trace_of_canvases


class Recorded(Struct, frozen=True, kw_only=True):
    """What the file holds."""

    problems: list[str]
    canvases: list[list[str | list[int]]]
    mask: str | int
    tokens: dict[str, int] = {}
    answer_at: int | list[int] = 0
    model: str = ""
    policy: str = ""


def read_canvases(path: Path, task: Task) -> Trace:
    """The trace of a decode that another tool recorded."""
    where = str(path)
    try:
        held = converted(decoded(read_regular(path, MOST_TEXT), where), Recorded, where)
    except FileNotFoundError:
        raise HardtailError(f"{path} is not a file; give the canvases of another tool (docs/models.md)") from None
    about = {"task": task_to_json(task), "model": held.model or path.stem, "policy": held.policy or "recorded"}
    try:
        reader = _Reader(held, task)
        canvases = [reader.canvas(step, rows) for step, rows in enumerate(held.canvases)]
        return trace_of_canvases(task.parse(held.problems), canvases, task.vocabulary.mask_id, about)
    except HardtailError as error:
        raise HardtailError(f"{path}: {error}") from error


class _Reader:
    """Turns the canvases of one file into our tokens."""

    def __init__(self, held: Recorded, task: Task) -> None:
        self.held, self.task, n = held, task, len(held.problems)
        if not n:
            raise HardtailError("there are no problems; give those that were decoded, as the task writes them")
        self.start_N = [held.answer_at] * n if isinstance(held.answer_at, int) else held.answer_at
        if len(self.start_N) != n or min(self.start_N, default=0) < 0:
            raise HardtailError(f"answer_at must be one place from 0 on, or one for each of the {n} problems")
        self.of_id = _ours(held, task.vocabulary)

    def canvas(self, step: int, rows: Sequence[str | list[int]]) -> Tokens:
        """The answers after one step, [N, A]."""
        if len(rows) != len(self.held.problems):
            raise HardtailError(
                f"canvas {step} has {len(rows)} rows for {len(self.held.problems)} problems; give canvases by step, "
                "and in each the answers to all problems"
            )
        return np.array([self._row(step, place, row) for place, row in enumerate(rows)]).reshape(len(rows), -1)

    def _row(self, step: int, place: int, row: str | list[int]) -> Tokens:
        cells = self.task.answer_len
        token_A = self._of_text(row) if isinstance(row, str) else self._of_ids(row, self.start_N[place])
        if len(token_A) != cells:
            raise HardtailError(
                f"problem {place + 1} has {len(token_A)} cells in canvas {step}; its answer has {cells}"
                + ("" if isinstance(row, str) else f" and begins at {self.start_N[place]} (`answer_at`)")
            )
        return token_A

    def _of_text(self, row: str) -> Tokens:
        vocabulary, mask = self.task.vocabulary, self.held.mask
        if not isinstance(mask, str) or not mask:
            raise HardtailError("the canvases are text, so `mask` must be the text of a hidden cell")
        shown = f"{vocabulary.separator}{vocabulary.mask}{vocabulary.separator}"
        return vocabulary.encode(row.replace(mask, shown))

    def _of_ids(self, row: list[int], start: int) -> Tokens:
        vocabulary = self.task.vocabulary
        if not self.of_id:
            raise HardtailError("the canvases are ids, so `mask` must be the id of a hidden cell")
        answer = row[start : start + self.task.answer_len]
        return np.array([self.of_id.get(token, vocabulary.pad_id) for token in answer], dtype=vocabulary.dtype)


def _ours(held: Recorded, vocabulary: Vocabulary) -> dict[int, int]:
    """Our token of each id; empty if the file has text. Ids that are not in it are wrong, as padding always is."""
    if not isinstance(held.mask, int):
        return {}
    found = {held.mask: vocabulary.mask_id}
    for sign, token in held.tokens.items():
        if sign not in vocabulary.signs:
            raise HardtailError(f"`tokens` names {quoted(sign)}, which the task does not have")
        if token in found:
            raise HardtailError(f"`tokens` has the id {token} twice, or it is the mask's; every token needs its own")
        found[token] = vocabulary.id(sign)
    if missing := [sign for sign in vocabulary.characters if sign not in held.tokens]:
        raise HardtailError(f"`tokens` has no id for {quoted(missing[0])}; give one for each of the task's tokens")
    return found
