"""What a diagnosis says in five lines that a person can repeat; the tables have the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill

from msgspec.structs import asdict

from hardtail.core.errors import HardtailError
from hardtail.core.tables import SCREEN, percent, probability
from hardtail.core.types import TraceSource
from hardtail.measuring.diagnosis.checks import Checks
from hardtail.measuring.diagnosis.readiness import Right
from hardtail.measuring.diagnosis.record import Diagnosis
from hardtail.tasks.parts import Telling, Words

FEW_STRATA = 3
"""The most strata that a verdict names one by one."""
_ORDERS = {"top1": "surest cell first"}


@dataclass(frozen=True)
class DiagnosisVerdict:
    """A title and at most five sentences about one model."""

    title: str
    lines: tuple[str, ...]

    def text(self, width: int = SCREEN) -> str:
        joined = (line.replace(" %", "\N{NO-BREAK SPACE}%") for line in self.lines)
        wrapped = [fill(line, width, initial_indent="  ", subsequent_indent="    ") for line in joined]
        return "\n".join([self.title, *wrapped]).replace("\N{NO-BREAK SPACE}", " ")


def verdict(diagnoses: Sequence[Diagnosis], words: Words | None = None) -> DiagnosisVerdict:
    """What the diagnoses of one model say: the first in detail, the others, on the same instances, by their results."""
    if not diagnoses:
        raise HardtailError("there is no diagnosis to put into words; give at least one")
    first, words = diagnoses[0], words or Words()
    title = ", ".join(filter(None, (first.model, first.task)))
    return DiagnosisVerdict(title, tuple(filter(None, _sentences(first, diagnoses[1:], words))))


def _sentences(first: Diagnosis, others: Sequence[Diagnosis], words: Words) -> Iterator[str | None]:
    yield f"{_ordered(first, words)} it {_result(first, words)}."
    yield _first_wrong(first, words)
    yield _early(first, words) if first.checks is None else _looked_again(first.checks, words)
    yield _split(first, words)
    if others:
        told = [f"{_ordered(other, words)} it {_result(other, words)}" for other in others]
        yield f"{'; '.join([told[0], *(f'{text[:1].lower()}{text[1:]}' for text in told[1:])])}."


def _ordered(diagnosis: Diagnosis, words: Words) -> str:
    """The decoding order at the beginning of a sentence, and how it was decoded, if not as usual."""
    policy, how = diagnosis.policy, TraceSource.of(asdict(diagnosis)).how
    said, named = words.orders.get(policy) or _ORDERS.get(policy), ", ".join(filter(None, (policy, how)))
    if said is None:
        return f"With {named}" if named else "Here"
    return f"{said[:1].upper()}{said[1:]} ({named})"


def _result(diagnosis: Diagnosis, words: Words) -> str:
    """`fails on 42 % of 150 sums with chain>=28 and on none of 100 natural ones`."""
    result = diagnosis.result
    strata = diagnosis.first_wrong.by_stratum if diagnosis.first_wrong else {}
    named = [(name, strata[name]) for name in diagnosis.strata if name in strata]
    if not named:
        failures = result.instances - (result.exact or 0)
        return f"{words.fails} {_failing(failures, result.instances)} {words.problems}"
    if not any(held.failures for _, held in named):
        return f"makes no error on {result.instances:,} {words.problems}{_which(*dict(named))}"
    if len(named) > FEW_STRATA:
        hardest_first = reversed(named)  # of several that fail equally often the hardest is named
        whole, (name, worst) = strata["all"], max(hardest_first, key=lambda item: item[1].failures / max(item[1].n, 1))
        told, most = f"{_failing(whole.failures, whole.n)} {words.problems}", _failing(worst.failures, worst.n)
        return f"{words.fails} {told}, most of all on {most}{_which(name) or ' natural ones'}"
    each = [f"{_failing(held.failures, held.n)} {words.problems}{_which(name)}" for name, held in named]
    return f"{words.fails} {' and on '.join(each)}"


def _failing(failures: int, n: int) -> str:
    return f"none of {n:,}" if not failures else f"{percent(failures / n)} of {n:,}"


def _which(*strata: str) -> str:
    """` with chain>=28`, `, natural or with chain>=28`; nothing if all are natural, or of too many strata."""
    hard = [name for name in strata if name != "natural"]
    if not hard or len(strata) > FEW_STRATA:
        return ""
    return f"{', natural or' if len(hard) < len(strata) else ''} with {' or '.join(hard)}"


def _first_wrong(diagnosis: Diagnosis, words: Words) -> str | None:
    """What the task says about its wrong commits, or else what can be said about those of any task."""
    profile = diagnosis.profile
    if isinstance(profile, Telling) and (told := profile.in_words()):
        return told
    held = diagnosis.first_wrong.by_stratum["all"] if diagnosis.first_wrong else None
    if held is None or held.step is None:
        return None
    sure = "" if held.prob is None else f", with a mean probability {probability(held.prob, 'of ')}"
    return (
        f"The first wrong {words.cell} comes at step {held.step + 1:.0f} (median){sure}; "
        f"in {percent(held.unready)} of the failures it waits for something that is still hidden."
    )


def _early(diagnosis: Diagnosis, words: Words) -> str | None:
    held = diagnosis.readiness
    if not held.dependent:
        return None
    if not held.premature:
        return f"No {words.cell} was written before the ones that it waits for."
    part = percent(held.premature / held.dependent)
    return f"{part} of the {words.cell}s that wait for another were written before it."


def _looked_again(held: Checks, words: Words) -> str:
    """Of a decode that hides cells again, in place of how early they were written: a cell may be written too early if
    it is looked at later."""
    changed, right = held.wrong_repaired + held.wrong_changed, held.right_kept + held.right_spoiled
    return (
        f"Of the {words.cell}s looked at again, {changed:,} wrong ones were changed and {held.wrong_kept:,} stayed "
        f"wrong; {held.right_spoiled:,} of {right:,} right ones were spoiled."
    )


def _split(diagnosis: Diagnosis, words: Words) -> str | None:
    """The mechanism in three numbers."""
    held = diagnosis.readiness
    if held.ready is None:  # recorded before the split
        return None
    groups = {
        f"after right {words.cell}s": held.ready.prerequisites_right,
        "after a wrong one": held.ready.prerequisite_wrong,
        "written too early": held.accuracy["unready"],
    }
    told = [f"{_right(of)} {name}" for name, of in groups.items() if of.commits]
    return f"Right: {', '.join(told)}." if told else None


def _right(of: Right) -> str:
    return f"{of.right:,} of {of.commits:,}"
