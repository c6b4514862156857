"""The ledger in a terminal: the counts first, then a line for each claim."""

import re
from collections import Counter
from collections.abc import Sequence
from textwrap import wrap

from hardtail.core.tables import SCREEN
from hardtail.study.claims.base import Judged, Verdict

SHORTEST = 20
"""The fewest characters of a claim's sentence that are worth showing."""
ONE_SEED, SHORTENED = "¹", "²"
NOTES = {ONE_SEED: "by one seed alone", SHORTENED: "by runs of a quarter of the paper's steps"}
INDENT = "    "
MORE = "`hardtail claims ID` shows the figures behind a verdict"
_INTERVAL = re.compile(r" \[[^]]*\]")


def ledger_lines(judged: Sequence[Judged], width: int = SCREEN, *, whole: bool = False) -> list[str]:
    """Verdict, id, and the paper's number and ours if they fit, or as much of the sentence as does.

    Verdicts, ids and numbers are never cut. With `whole` sentence and numbers follow on lines of their own.
    """
    counted = Counter(item.verdict for item in judged)
    counts = ", ".join(f"{verdict.value} {counted[verdict]}" for verdict in Verdict)
    verdicts = max((len(_verdict(item)) for item in judged), default=0)
    ids = max((len(item.claim.id) for item in judged), default=0)
    room = max(width - verdicts - ids - 4, SHORTEST)
    lines: list[str] = []
    for item in judged:
        told = "" if whole else _told(item, room)
        lines.append(f"{_verdict(item):<{verdicts}}  {item.claim.id:<{ids}}  {told}".rstrip())
        for words in (item.claim.sentence, _numbers(item)) if whole else ():
            lines += wrap(words, width, initial_indent=INDENT, subsequent_indent=INDENT)
    notes = "; ".join(
        f"{mark} {words}" for mark, words in NOTES.items() if any(mark in _marks(item) for item in judged)
    )
    below = "; ".join(filter(None, (notes, MORE)))
    claims = "1 claim" if len(judged) == 1 else f"{len(judged)} claims"
    return [f"{claims}: {counts}", *([below] if len(below) <= width else filter(None, (notes, MORE))), "", *lines]


def _verdict(item: Judged) -> str:
    return item.verdict.value + _marks(item)


def _marks(item: Judged) -> str:
    return ONE_SEED * item.one_seed + SHORTENED * item.shortened


def _numbers(item: Judged) -> str:
    return f"{item.claim.paper} (claimed) · {_INTERVAL.sub('', item.ours)} (ours)" if item.ours else ""


def _told(item: Judged, room: int) -> str:
    numbers = _numbers(item)
    if not numbers or len(numbers) > room:
        return _cut(item.claim.sentence, room)
    left = room - len(numbers) - 2
    return f"{numbers}  {_cut(item.claim.sentence, left)}" if left >= SHORTEST else numbers


def _cut(sentence: str, room: int) -> str:
    if len(sentence) <= room:
        return sentence
    return sentence[: room - 1].rsplit(" ", 1)[0] + "…"
