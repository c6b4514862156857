"""The rules that need no figure of a run: whether seeds learn, what can be computed, what nothing here measures."""

from dataclasses import dataclass

from hardtail.study.claims.base import Check, Finding, Verdict
from hardtail.study.claims.evidence import UNLEARNED, Checkpoint, LeftOut, Results
from hardtail.study.claims.figures import NO_RECORD, none_counts, scheme_words
from hardtail.study.claims.rules import EPSILON
from hardtail.study.runs import Run

USUAL: Checkpoint = "best_probe"


@dataclass(frozen=True)
class Learns(Check):
    """Every seed of a scheme learns the task; this is the rule that runs which have not learned count for."""

    task: str
    scheme: str
    cells = ()

    @property
    def printed(self) -> str:
        return "every seed"

    @property
    def about(self) -> str:
        return f"{scheme_words(self.scheme)}, {self.task}: seeds that learn the task"

    def _chosen(self, results: Results) -> tuple[Results, bool]:
        ways = results.alike(self.task, [self.scheme])
        place = next((at for at, held in enumerate(ways) if self._measured(held)), 0)
        return (ways[place] if ways else results), place > 0

    def _measured(self, results: Results) -> int:
        """How many seeds have shown whether they learn."""
        left_out = results.left_out(self.task, self.scheme, USUAL)
        return len(results.learned(self.task, self.scheme, USUAL)) + sum(run.why == UNLEARNED for run in left_out)

    def _found(self, results: Results) -> Finding:
        learned = len(results.learned(self.task, self.scheme, USUAL))
        left_out = results.left_out(self.task, self.scheme, USUAL)
        measured = self._measured(results)
        if not measured:
            return Finding(
                Verdict.UNMEASURED, remark=f"{self.about}: {none_counts(left_out) if left_out else NO_RECORD}"
            )
        share = learned / measured
        verdict = Verdict.HOLDS if share == 1 else Verdict.WEAKER if share > 0.5 else Verdict.NOT
        return Finding(verdict, f"{learned} of {measured}", measured, mean=share)

    def _runs(self, results: Results) -> list[Run]:
        return results.runs(self.task, self.scheme)

    def _left_out(self, results: Results) -> list[LeftOut]:
        """Only runs without a record that says whether they learned; it counts the others."""
        return [run for run in results.left_out(self.task, self.scheme, USUAL) if run.why != UNLEARNED]


@dataclass(frozen=True)
class Computed(Check):
    """A number that follows from definitions or recipes and needs no run."""

    what: str
    ours: float
    low: float
    high: float
    said: str
    """What the paper says."""
    cells = ()

    @property
    def printed(self) -> str:
        return self.said

    @property
    def about(self) -> str:
        return self.what

    def _found(self, results: Results) -> Finding:
        within = self.low - EPSILON <= self.ours <= self.high + EPSILON
        return Finding(Verdict.HOLDS if within else Verdict.NOT, shown(self.ours), remark="computed", mean=self.ours)


def shown(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


@dataclass(frozen=True)
class Elsewhere(Check):
    """Something that no task here can measure."""

    why: str
    cells = ()

    @property
    def printed(self) -> str:
        return "–"

    @property
    def about(self) -> str:
        return "nothing here"

    def _found(self, results: Results) -> Finding:
        return Finding(Verdict.UNMEASURED, remark=self.why)
