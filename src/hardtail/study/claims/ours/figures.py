"""Figures of one recorded run, measured on several sets of instances, which are still one training seed."""

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from hardtail.core import records
from hardtail.study.claims.evidence import Checkpoint, Estimate, LeftOut, Results, Sample, gate_of
from hardtail.study.claims.figures import NOTHING_FAILED, Figure, none_counts
from hardtail.study.runs import Run

Number = Literal["exact_match", "passes", "auroc"]
Measured = records.Accuracy | records.Trust
ANY_LIMIT = ",limit=*"
"""The end of a name that means a ladder with whatever limit natural problems gave it (`eval --calibrate`)."""
SOME_LIMIT = re.compile(r",limit=[^,]*$")
DATA_SEEDS = (0, 1, 2)
"""The sets of instances that count; no run was trained with these seeds. Probes on addition drew from the first."""
REGISTERED = 2000
"""The instances of each of these sets that were registered."""


@dataclass(frozen=True)
class Decoded(Figure):
    """A number of one policy on one stratum: a share of right answers, or forward passes."""

    run: str
    policy: str
    """One that ends in `ANY_LIMIT` is a ladder with the limit that was set for it."""
    stratum: str
    metric: Number = "exact_match"
    score: str = ""
    """Only of `auroc`: the score that it is about."""
    usual: Checkpoint = field(default="best_probe", kw_only=True)
    """The weights that are shipped, which it is about unless `Results` names others."""

    @property
    def share(self) -> bool:
        return self.metric != "passes"

    @property
    def label(self) -> str:
        what = {"exact_match": "", "passes": ", passes", "auroc": f", AUROC of {self.score}"}[self.metric]
        return f"{self.run}, {self.policy}, {self.stratum}{what}"

    def samples(self, results: Results) -> list[Sample]:
        found = []
        for seed, record in self._records(results).items():
            value = getattr(record, self.metric)
            if value is not None:
                made_by = record.commit or "–", record.device or "–"
                weights, n = record.checkpoint or "–", self._cases(record)
                found.append(Sample(self.run, seed, weights, self.policy, self.stratum, n, value, self.share, *made_by))
        return found

    def training_seeds(self, results: Results) -> int:
        return 1 if self.values(results) else 0

    def estimate(self, results: Results) -> Estimate | None:
        ours = super().estimate(results)
        return ours and replace(ours, seeds=self.training_seeds(results))

    def limits(self, results: Results) -> str:
        held = [record.n for record in self._records(results).values()]
        if not held or (len(held) == len(DATA_SEEDS) and min(held) >= REGISTERED):
            return ""
        sizes = " + ".join(f"{n:,}" for n in held)
        return f"less than registered: {sizes} instances of {len(DATA_SEEDS)} × {REGISTERED:,}"

    def why_missing(self, results: Results) -> str:
        if left_out := self.left_out(results):
            return none_counts(left_out)
        return NOTHING_FAILED if self._records(results) else super().why_missing(results)

    def left_out(self, results: Results) -> list[LeftOut]:
        run = results.run(self.run)
        return [LeftOut(run.name, why)] if run and (why := self._barred(results, run)) else []

    def _barred(self, results: Results, run: Run) -> str:
        return gate_of(run.task).bars(run, self._weights(results))

    def _weights(self, results: Results) -> Checkpoint:
        """Which reading is judged makes no difference: a run is named, not a scheme."""
        return results.checkpoint or self.usual

    def _cases(self, record: Measured) -> int:
        """How many cases decide the interval: for an area, those of the rarer kind."""
        return min(record.wrong, record.n - record.wrong) if isinstance(record, records.Trust) else record.n

    def _records(self, results: Results) -> dict[int, Measured]:
        """By seed of the instances, the record with the most of them; of equals, the last.

        All are of one policy: of ladders with several limits, of the one that was measured on the most sets, or last.
        """
        run = results.run(self.run)
        best: dict[str, dict[int, Measured]] = {}
        for record in run.evaluations if run and not self._barred(results, run) else ():
            if isinstance(record, records.Accuracy | records.Trust) and self._is_of(record, results):
                assert record.data_seed is not None
                of_policy = best.setdefault(record.policy, {})
                held = of_policy.get(record.data_seed)
                if held is None or record.n >= held.n:
                    of_policy[record.data_seed] = record
        return max(reversed(best.values()), key=len, default={})

    def _is_of(self, record: Measured, results: Results) -> bool:
        """Whether a record is a plain decode of this stratum by this policy, with these weights, and on a set that
        counts; a limit must have been set by natural problems, not by hand."""
        if not record.by_plain_rule or record.data is not None or record.data_seed not in DATA_SEEDS:
            return False
        policy = record.policy
        if self.policy.endswith(ANY_LIMIT):
            policy = SOME_LIMIT.sub(ANY_LIMIT, policy) if record.calibrated else ""
        score = record.score if isinstance(record, records.Trust) else ""
        held = policy, record.stratum, score, record.checkpoint
        return held == (self.policy, self.stratum, self.score, self._weights(results))
