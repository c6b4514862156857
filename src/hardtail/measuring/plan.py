"""What an evaluation decodes, worked out before it begins."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hardtail.decoding.options import Decoding
from hardtail.measuring.calibration import calibrate, ladders
from hardtail.measuring.choices import chosen_policies, chosen_strata
from hardtail.measuring.cost import decode_seconds
from hardtail.measuring.evaluate import USUALLY, Evaluating, Found, evaluate_all
from hardtail.measuring.given import GivenProblems
from hardtail.measuring.problems import chosen_problems
from hardtail.measuring.subject import Subject
from hardtail.measuring.trust import QUESTIONS
from hardtail.policies.base import Commit, Policy
from hardtail.policies.ladder import Ladder


@dataclass(frozen=True)
class Plan:
    """Policies and strata of an evaluation, drawn or `given` problems, and the ladders whose limits are set first."""

    subject: Subject
    policies: dict[str, Policy]
    strata: list[str]
    n: int | None
    """Problems of each stratum; None for the usual number, or for all that are given."""
    data_seed: int
    given: GivenProblems | None = None
    calibrating: int = 0
    """Natural problems that set the limit of each ladder."""
    ladders: dict[str, Ladder] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        subject: Subject,
        policies: Sequence[str] = (),
        strata: Sequence[str] = (),
        n: int | None = None,
        given: GivenProblems | None = None,
        calibrating: int | None = None,
        data_seed: int | None = None,
    ) -> "Plan":
        """The named policies and strata, or the usual ones; of a file, the strata that differ in its problems.

        By default problems are drawn with the model's seed.
        """
        chosen, wanted = chosen_policies(subject.task, policies), chosen_strata(subject.task, strata)
        seed = subject.seed if data_seed is None else data_seed
        if not strata:
            wanted = chosen_problems(subject.task, n, seed, given).distinct(wanted)
        return cls(subject, chosen, wanted, n, seed, given, calibrating or 0, ladders(chosen) if calibrating else {})

    @cached_property
    def _counts(self) -> tuple[int, int]:
        return chosen_problems(self.subject.task, self.n, self.data_seed, self.given).counts(self.strata)

    @property
    def instances(self) -> int:
        """How many problems every policy decodes; each given one once, whatever strata it is in."""
        return self._counts[0]

    @property
    def half_revealed(self) -> int:
        """How many answers are also decoded from their half, by stratum."""
        return self._counts[1] if self.subject.task.reveals else 0

    @property
    def decodes(self) -> list[tuple[Policy, int]]:
        """How many problems are measured with which policy."""
        first = next(iter(self.policies.values()))
        return [*((policy, self.instances) for policy in self.policies.values()), (first, self.half_revealed)]

    @property
    def total(self) -> int:
        """All decodes, those that set limits included."""
        return sum(count for _, count in self.decodes) + self.calibrating * len(self.ladders)

    def seconds(self, commit: Commit, *, trust: bool) -> float | None:
        """About how long it takes; None if that is not known."""
        further = sum(question.passes for question in QUESTIONS.values()) if trust else 0
        seconds = decode_seconds(self.subject, self.decodes, commit, further)
        for ladder in self.ladders.values():
            more = decode_seconds(self.subject, [(ladder.rungs[-1], self.calibrating)], commit, ladder.looks)
            seconds = None if seconds is None or more is None else seconds + more
        return seconds

    def measure(
        self,
        decoding: Decoding,
        how: Evaluating = USUALLY,
        *,
        traces: Path | None = None,
        say: Callable[[str], None] = lambda words: None,
    ) -> Iterator[Found]:
        """Set the limits of the ladders, and `say` them; then measure all, with the options of `evaluate_all`."""
        policies, calibrated = self._with_limits(decoding, how, say)
        yield from evaluate_all(
            self.subject,
            policies,
            self.strata,
            self.n,
            decoding,
            how,
            data_seed=self.data_seed,
            given=self.given,
            traces=traces,
            calibrated=calibrated,
        )

    def _with_limits(
        self, decoding: Decoding, how: Evaluating, say: Callable[[str], None]
    ) -> tuple[dict[str, Policy], dict[str, int]]:
        """The policies with the limits that natural problems set, and by how many problems each was set."""
        policies, calibrated = {}, {}
        for name, policy in self.policies.items():
            if name in self.ladders:
                name, policy, words = calibrate(
                    self.subject,
                    name,
                    self.ladders[name],
                    self.calibrating,
                    decoding,
                    data_seed=self.data_seed,
                    passes=how.passes,
                    progress=how.progress,
                )
                say(words)
                calibrated[name] = self.calibrating
            policies[name] = policy
        return policies, calibrated
