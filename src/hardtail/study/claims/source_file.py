"""A source that is one TOML file: each claim with its sentence, its place, the settings behind it and its checks."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from msgspec import Struct, ValidationError, convert

from hardtail.core.errors import HardtailError
from hardtail.core.files import read_regular
from hardtail.core.parsing import decoded_toml
from hardtail.core.records import HALF_REVEALED, Positive, Share
from hardtail.core.registry import POLICIES, TASKS
from hardtail.study.claims.base import Cell, Check, Claim
from hardtail.study.claims.figures import Accuracy, Metric, Reached
from hardtail.study.claims.plain import Elsewhere, Learns
from hardtail.study.claims.recovery import Recovery
from hardtail.study.claims.rules import NEAR, SLACK, AtLeast, AtMost, Level, Ratio, above, similar
from hardtail.study.claims.source import Source
from hardtail.tasks.named import make_task


class Of(Struct, frozen=True, forbid_unknown_fields=True):
    """A figure: the accuracy of a scheme on a stratum under a policy, or the step that first `reached` an accuracy."""

    task: str
    scheme: str
    policy: str = "top1"
    stratum: str = "natural"
    metric: Metric = "exact_match"
    reached: Share | None = None
    printed: float | None = None
    n: Positive | None = None

    def __post_init__(self) -> None:
        if self.task not in TASKS.names():
            raise ValueError(f"there is no task {self.task!r}; choose from {', '.join(TASKS.names())}")
        task = make_task(self.task)
        task.stratum(self.stratum)
        if self.policy not in (known := [*POLICIES.names(), *task.order_names, HALF_REVEALED]):
            raise ValueError(f"there is no policy {self.policy!r} for {self.task}; choose from {', '.join(known)}")

    @property
    def cell(self) -> Cell:
        if self.reached is not None:
            return Cell(Reached(self.task, self.scheme, self.reached), self.printed)
        return Cell(Accuracy(self.task, self.scheme, self.policy, self.stratum, self.metric), self.printed, self.n)


class Printed(Of, frozen=True):
    """A figure whose number the source prints."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.printed is None:
            raise ValueError("a figure of this rule needs `printed`")


class _Rule(Struct, frozen=True, forbid_unknown_fields=True, tag_field="rule"):
    """A check as a file writes it."""

    @property
    def check(self) -> Check:
        raise NotImplementedError


class LevelRule(_Rule, frozen=True, tag="level"):
    of: Printed
    tolerance: float = NEAR

    @property
    def check(self) -> Check:
        return Level(self.of.cell, self.tolerance)


class _BoundRule(_Rule, frozen=True):
    of: Of
    bound: float
    tolerance: float = SLACK
    kind: ClassVar[type[AtLeast | AtMost]]

    @property
    def check(self) -> Check:
        return self.kind(self.of.cell, self.bound, self.tolerance)


class AtLeastRule(_BoundRule, frozen=True, tag="at least"):
    kind = AtLeast


class AtMostRule(_BoundRule, frozen=True, tag="at most"):
    kind = AtMost


class AboveRule(_Rule, frozen=True, tag="above"):
    of: Of
    than: Of

    @property
    def check(self) -> Check:
        return above(self.of.cell, self.than.cell)


class SimilarRule(_Rule, frozen=True, tag="similar"):
    of: Of
    to: Of
    margin: float = NEAR

    @property
    def check(self) -> Check:
        return similar(self.of.cell, self.to.cell, self.margin)


class TimesRule(_Rule, frozen=True, tag="times"):
    of: Of
    than: Of
    times: float
    failures: bool = False

    @property
    def check(self) -> Check:
        return Ratio((self.of.cell,), (self.than.cell,), self.times, self.failures)


class RecoveryRule(_Rule, frozen=True, tag="recovery"):
    of: Printed
    by: Printed

    @property
    def check(self) -> Check:
        return Recovery(self.of.cell, self.by.cell)


class LearnsRule(_Rule, frozen=True, tag="learns"):
    task: str
    scheme: str

    @property
    def check(self) -> Check:
        return Learns(self.task, self.scheme)


Rule = LevelRule | AtLeastRule | AtMostRule | AboveRule | SimilarRule | TimesRule | RecoveryRule | LearnsRule


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """A claim; `elsewhere` says why nothing here measures it, in place of checks."""

    sentence: str
    where: str
    settings: str = ""
    caveat: str = ""
    reports: str = ""
    checks: tuple[Rule, ...] = ()
    elsewhere: str = ""

    def __post_init__(self) -> None:
        if bool(self.checks) == bool(self.elsewhere):
            raise ValueError("a claim has either `checks` or `elsewhere`")

    def claim(self, name: str, settings: str) -> Claim:
        checks = tuple(rule.check for rule in self.checks) or (Elsewhere(self.elsewhere),)
        own = self.settings or ("" if self.elsewhere else settings)
        words = name, self.sentence, self.where, self.caveat, self.reports, own
        return Claim(*words, checks=checks, weights="the weights that each recipe selects")


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    claims: dict[str, Entry]
    settings: str = ""
    """Of all claims that name no others."""


@dataclass(frozen=True)
class SourceFile(Source):
    """The claims of one file."""

    title: str
    stated: tuple[Claim, ...]

    def claims(self) -> list[Claim]:
        return list(self.stated)


def read_source(path: Path) -> SourceFile:
    """The source in a file; raises HardtailError with the file and the key if it does not fit."""
    try:
        held = convert(decoded_toml(read_regular(path), str(path)), _File)
    except OSError as error:
        raise HardtailError(f"{path} cannot be read as a source of claims: {error.strerror}") from error
    except ValidationError as error:
        raise HardtailError(f"{path}: {error}") from error
    return SourceFile(held.title, tuple(entry.claim(name, held.settings) for name, entry in held.claims.items()))
