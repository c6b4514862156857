"""The ledger in a terminal: the counts first, then a line for each claim."""

import re
from collections import Counter
from collections.abc import Sequence
from textwrap import wrap

from hardtail.core.tables import SCREEN
from hardtail.study.claims.base import Judged, Verdict

ONE_SEED, SHORTENED, CAVEAT = "¹", "²", "³"
NOTES = {
    ONE_SEED: "by one seed alone",
    SHORTENED: "by a quarter of the paper's steps",
    CAVEAT: "with a caveat",
}
INDENT = "    "
MORE = "numbers: claimed · ours; `hardtail claims ID` shows what a verdict rests on"
_INTERVAL = re.compile(r" \[[^]]*\]")


def ledger_lines(judged: Sequence[Judged], width: int = SCREEN, *, whole: bool = False) -> list[str]:
    """Verdict, id, and the paper's numbers and ours if they fit; below them the sentence, unless it only says which
    cells of a table the numbers are; and what a claim lacks that is open or holds weaker. With `whole` every sentence
    and all numbers. Nothing is cut."""
    verdicts = max((len(_verdict(item)) for item in judged), default=0)
    ids = max((len(item.claim.id) for item in judged), default=0)
    room = width - verdicts - ids - 4
    lines: list[str] = []
    for item in judged:
        numbers = _numbers(item)
        fit = len(numbers) <= room
        lines.append(f"{_verdict(item):<{verdicts}}  {item.claim.id:<{ids}}  {numbers if fit else ''}".rstrip())
        if whole or not (numbers and fit and item.claim.tabled):
            lines += _wrapped(item.claim.sentence, width, INDENT)
        if whole and not fit:
            lines += _wrapped(numbers, width, INDENT)
        if item.why:
            lines += _wrapped(f"({item.why})", width, INDENT)
    notes = "; ".join(
        f"{mark} {words}" for mark, words in NOTES.items() if any(mark in _marks(item) for item in judged)
    )
    return [*_wrapped(_counts(judged), width), *_wrapped(notes, width), *_wrapped(MORE, width), "", *lines]


def _counts(judged: Sequence[Judged]) -> str:
    """`3 claims: holds 2 (1¹), not measured 1`: how many have each verdict, and how many of these by one seed."""
    counted = Counter(item.verdict for item in judged)
    single = Counter(item.verdict for item in judged if item.one_seed)
    by_one = {verdict: f" ({count}{ONE_SEED})" for verdict, count in single.items()}
    given = (verdict for verdict in Verdict if counted[verdict])
    counts = ", ".join(f"{verdict.value} {counted[verdict]}{by_one.get(verdict, '')}" for verdict in given)
    return f"{'1 claim' if len(judged) == 1 else f'{len(judged)} claims'}: {counts}"


def _wrapped(words: str, width: int, indent: str = "") -> list[str]:
    return wrap(words, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _verdict(item: Judged) -> str:
    return item.verdict.value + _marks(item)


def _marks(item: Judged) -> str:
    return ONE_SEED * item.one_seed + SHORTENED * item.shortened + CAVEAT * bool(item.caveats)


def _numbers(item: Judged) -> str:
    """The paper's and ours, `–` for what there is none of; empty if there is neither."""
    numbers = item.claim.paper, _INTERVAL.sub("", item.ours or "–")
    return "" if set(numbers) == {"–"} else " · ".join(numbers)
