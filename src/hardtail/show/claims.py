"""The ledger in a terminal: the counts first, then a line for each claim."""

from collections import Counter
from collections.abc import Sequence

from hardtail.core.tables import SCREEN
from hardtail.study.claims.base import Judged, Verdict

SHORTEST = 20
"""The fewest characters of a claim's sentence that are worth showing."""


def ledger_lines(judged: Sequence[Judged], width: int = SCREEN) -> list[str]:
    """Verdict, id and as much of the sentence as fits; verdicts and ids are never cut."""
    counted = Counter(item.verdict for item in judged)
    counts = ", ".join(f"{verdict.value} {counted[verdict]}" for verdict in Verdict)
    verdicts = max((len(item.says) for item in judged), default=0)
    ids = max((len(item.claim.id) for item in judged), default=0)
    room = max(width - verdicts - ids - 4, SHORTEST)
    lines = [f"{item.says:<{verdicts}}  {item.claim.id:<{ids}}  {_cut(item.claim.sentence, room)}" for item in judged]
    return [f"{len(judged)} claims: {counts}", "`hardtail claims ID` shows the figures behind a verdict", "", *lines]


def _cut(sentence: str, room: int) -> str:
    if len(sentence) <= room:
        return sentence
    return sentence[: room - 1].rsplit(" ", 1)[0] + "…"
