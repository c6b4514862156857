"""A source that is one TOML file: each claim with its sentence, its place, the settings behind it and its checks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

from msgspec import Meta, Struct, ValidationError, convert

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.fields import spelled
from hardtail.core.files import read_regular
from hardtail.core.parsing import decoded_toml
from hardtail.core.records import HALF_REVEALED, REVEALED, Positive, Share
from hardtail.core.registry import POLICIES, TASKS
from hardtail.study.claims.base import SELECTED, Cell, Check, Claim
from hardtail.study.claims.figures import Metric, Reached, ShareRight, measured_as
from hardtail.study.claims.plain import Elsewhere, Learns
from hardtail.study.claims.recovery import Recovery
from hardtail.study.claims.rules import NEAR, SLACK, AtLeast, AtMost, Level, Ratio, above, similar
from hardtail.study.claims.source import Source
from hardtail.tasks.base import Task
from hardtail.tasks.named import make_task

LARGEST = 1e12
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
"""A number that is not negative, and finite: a share, or a training step."""


class Of(Struct, frozen=True, forbid_unknown_fields=True):
    """A figure: the accuracy of a scheme on a stratum under a policy, or the step that first `reached` an accuracy."""

    task: str
    scheme: str
    policy: str = "top1"
    stratum: str = "natural"
    metric: Metric = "exact_match"
    reached: Share | None = None
    printed: Amount | None = None
    n: Positive | None = None

    def __post_init__(self) -> None:
        task = _task(self.task)
        task.stratum(self.stratum)
        self._refuse_policy(task)
        fields = measured_as(self.policy).__struct_fields__
        if self.metric not in (known := [name for name in get_args(Metric) if name in fields]):
            raise ValueError(f"{self.policy!r} has no {self.metric!r}; `metric` is one of {', '.join(known)}")
        if self.reached is not None and (self.policy, self.stratum, self.metric) != ("top1", "natural", "exact_match"):
            raise ValueError("`reached` is of natural problems under top1; leave out `policy`, `stratum` and `metric`")
        self.refuse_percent("printed", self.printed)

    def _refuse_policy(self, task: Task) -> None:
        """Refuse a policy that `hardtail eval` could not have recorded; nothing that a file names is imported."""
        if self.policy == HALF_REVEALED:
            return
        known, name = [*POLICIES.names(), *task.order_names], spelled(self.policy.removesuffix(REVEALED))
        if ":" in name or name.partition(",")[0] not in known:
            accepted = ", ".join([*known, HALF_REVEALED])
            raise ValueError(f"there is no policy {self.policy!r} for {self.task}; choose from {accepted}")
        if "," in name:
            from hardtail.policies.named import policy_named  # needs torch

            policy_named(name, task.order_names)

    def refuse_percent(self, field: str, number: float | None) -> None:
        """Refuse what a field says about the figure if no accuracy can be that."""
        if self.reached is None and number is not None and number > 1:
            raise ValueError(f"`{field}` is {number:g}, and an accuracy is a share, from 0 to 1")

    @property
    def cell(self) -> Cell:
        if self.reached is not None:
            return Cell(Reached(self.task, self.scheme, self.reached), self.printed)
        name, stratum = self.policy.removesuffix(REVEALED), _as_recorded(_task(self.task), self.stratum)
        policy = spelled(name) + self.policy[len(name) :]
        return Cell(ShareRight(self.task, self.scheme, policy, stratum, self.metric), self.printed, self.n)


def _task(name: str) -> Task:
    if name not in TASKS.names():
        raise ValueError(f"there is no task {name!r}; choose from {', '.join(TASKS.names())}")
    return make_task(name)


def _as_recorded(task: Task, stratum: str) -> str:
    """A stratum in the task's own spelling, in which the order of conditions may be another."""
    wanted = task.stratum(stratum)
    own = map(task.stratum, task.strata())
    return str(next((one for one in own if set(one.conditions) == set(wanted.conditions)), wanted))


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


def _refuse_unsized(of: Of, field: str, given: float | None) -> None:
    """Refuse to tell training steps apart by what is near for shares."""
    if of.reached is not None and given is None:
        raise ValueError(f"a training step (`reached`) needs a `{field}`, in steps")


class LevelRule(_Rule, frozen=True, tag="level"):
    of: Printed
    tolerance: Amount | None = None

    def __post_init__(self) -> None:
        _refuse_unsized(self.of, "tolerance", self.tolerance)

    @property
    def check(self) -> Check:
        return Level(self.of.cell, self.tolerance)


class _BoundRule(_Rule, frozen=True):
    of: Of
    bound: Amount
    tolerance: Amount = SLACK
    kind: ClassVar[type[AtLeast | AtMost]]

    def __post_init__(self) -> None:
        self.of.refuse_percent("bound", self.bound)

    @property
    def check(self) -> Check:
        return self.kind(self.of.cell, self.bound, self.tolerance)


class AtLeastRule(_BoundRule, frozen=True, tag="at least"):
    kind = AtLeast


class AtMostRule(_BoundRule, frozen=True, tag="at most"):
    kind = AtMost


def _refuse_mixed(one: Of, other: Of) -> None:
    """Refuse a training step next to a share."""
    if (one.reached is None) != (other.reached is None):
        raise ValueError("one figure is a training step (`reached`) and the other is not; they cannot be compared")


class AboveRule(_Rule, frozen=True, tag="above"):
    of: Of
    than: Of

    def __post_init__(self) -> None:
        _refuse_mixed(self.of, self.than)

    @property
    def check(self) -> Check:
        return above(self.of.cell, self.than.cell)


class SimilarRule(_Rule, frozen=True, tag="similar"):
    of: Of
    to: Of
    margin: Amount | None = None

    def __post_init__(self) -> None:
        _refuse_mixed(self.of, self.to)
        _refuse_unsized(self.of, "margin", self.margin)

    @property
    def check(self) -> Check:
        return similar(self.of.cell, self.to.cell, NEAR if self.margin is None else self.margin)


class TimesRule(_Rule, frozen=True, tag="times"):
    of: Of
    than: Of
    times: Annotated[float, Meta(gt=1, le=LARGEST)]
    failures: bool = False

    def __post_init__(self) -> None:
        _refuse_mixed(self.of, self.than)
        if self.failures and (self.of.reached, self.than.reached) != (None, None):
            raise ValueError("`failures` are wrong answers, which no figure with `reached` has; leave out one of them")

    @property
    def check(self) -> Check:
        return Ratio((self.of.cell,), (self.than.cell,), self.times, self.failures)


class RecoveryRule(_Rule, frozen=True, tag="recovery"):
    of: Printed
    by: Printed

    def __post_init__(self) -> None:
        if (self.of.reached, self.by.reached) != (None, None):
            raise ValueError("a training step (`reached`) cannot be recovered; give figures of accuracy")

    @property
    def check(self) -> Check:
        return Recovery(self.of.cell, self.by.cell)


class LearnsRule(_Rule, frozen=True, tag="learns"):
    task: str
    scheme: str

    def __post_init__(self) -> None:
        _task(self.task)

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
        return Claim(*words, checks=checks, weights=SELECTED)


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    claims: dict[str, Any]
    """By name, what `Entry` is made of: msgspec would not say in which of them something does not fit."""
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
    """The source in a file; raises HardtailError with the file, the claim and the key if it does not fit."""
    try:
        held = convert(decoded_toml(read_regular(path), str(path)), _File)
    except OSError as error:
        raise HardtailError(f"{path} cannot be read as a source of claims: {error.strerror}") from error
    except ValidationError as error:
        raise HardtailError(f"{path}: {error}") from error
    entries = {name: _entry(path, name, given) for name, given in held.claims.items()}
    return SourceFile(held.title, tuple(entry.claim(name, held.settings) for name, entry in entries.items()))


def _entry(path: Path, name: str, given: Any) -> Entry:
    try:
        return convert(given, Entry)
    except ValidationError as error:
        raise HardtailError(f"{path}: claim {quoted(name)}: {error}") from error
