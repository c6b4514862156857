"""Figures that need no decode of a run: what random order meets, and recorded facts about data and models."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from hardtail import zoo
from hardtail.measuring.diagnosis.coverage import RARE
from hardtail.study.claims.evidence import UNIT, Gate, LeftOut, Results, Sample, Schemes, gate_of
from hardtail.study.claims.figures import Figure, PerRun, none_counts, scheme_words
from hardtail.study.runs import Run


@dataclass(frozen=True)
class Unseen(PerRun):
    """Of what random order meets, the share that training rarely had.

    Random order hides every number of cells equally often and all cells alike, which is what random masking trains on.
    So its states are counted as those of the run of random masking with the same seed (`coverage.json`), by number of
    hidden cells and logical rank; rarely is less than a tenth as often.
    """

    share = False
    bounds = UNIT

    @property
    def schemes(self) -> Schemes:
        return super().schemes | {(self.task, "random")}

    def runs(self, results: Results) -> list[Run]:
        seeds, even = set(self.values(results)), results.runs(self.task, "random")
        return super().runs(results) + [run for run in even if run.seed in seeds]

    @property
    def label(self) -> str:
        return f"{scheme_words(self.scheme)}, {self.task}: places of random order that training rarely had"

    def _sample(self, results: Results, run: Run) -> Sample | None:
        even = next((of for of in results.runs(self.task, "random") if of.seed == run.seed), None)
        if even is None or even.coverage is None or run.coverage is None:
            return None
        met, trained = (_shares(held.by_count_and_rank[1:]) for held in (even.coverage, run.coverage))
        value = sum(share for at, share in met.items() if trained.get(at, 0.0) < RARE * share)
        return self._made(run.entry, run, "random", "coverage.json", value, None)


def _shares(counted: tuple[tuple[int, ...], ...]) -> dict[tuple[int, int], float]:
    """The share of each place, that is of a number of hidden cells, from 1, and a rank, in all that was counted."""
    total = sum(map(sum, counted)) or 1  # a run that was stopped before its first step has counted nothing
    return {(hidden, rank): count / total for hidden, row in enumerate(counted, 1) for rank, count in enumerate(row)}


@dataclass(frozen=True)
class Known(Figure):
    """A fact about data, or about a model outside a run, from `facts.jsonl` (`tools/facts.py`)."""

    fact: str
    name: str
    share = True

    @property
    def label(self) -> str:
        return self.name

    def samples(self, results: Results) -> list[Sample]:
        held = [of for of in results.facts if of.fact == self.fact]
        return [
            Sample(of.about, of.seed, "–", "–", "–", of.n, of.value, self.share, of.commit, of.device) for of in held
        ]

    def why_missing(self, results: Results) -> str:
        return "no record in facts.jsonl"


class Counted(Known):
    """A fact that is not a share."""

    share = False


@dataclass(frozen=True)
class OfModel(Counted, ABC):
    """A number about a model, which counts only if the model has learned its task."""

    model: str

    def samples(self, results: Results) -> list[Sample]:
        return [sample for sample in super().samples(results) if not self._barred(results, sample.seed)]

    def left_out(self, results: Results) -> list[LeftOut]:
        seeds = sorted(sample.seed for sample in super().samples(results))
        return [LeftOut(self._run(seed), why) for seed in seeds if (why := self._barred(results, seed))]

    def runs(self, results: Results) -> list[Run]:
        return results.named(map(self._run, self.values(results)))

    def why_missing(self, results: Results) -> str:
        left_out = self.left_out(results)
        return none_counts(left_out) if left_out else super().why_missing(results)

    @abstractmethod
    def _run(self, seed: int) -> str:
        """The run that gave the model."""

    @abstractmethod
    def _barred(self, results: Results, seed: int) -> str:
        """Why it does not count; empty if it does."""


class OfShipped(OfModel):
    """A number about a model of the zoo, whose run is recorded."""

    @property
    def listed(self) -> zoo.Model:
        return zoo.find(self.model)

    def _run(self, seed: int) -> str:
        return self.listed.run

    def _barred(self, results: Results, seed: int) -> str:
        run, gate = results.run(self.listed.run), gate_of(self.listed.task)
        return gate.bars(run, self.listed.kind) if run else gate.bars_share(None)


class InTraining(OfModel):
    """A number about small runs while they trained, of those that learned their task in the end."""

    def _run(self, seed: int) -> str:
        return f"{self.model}-s{seed}"

    def _barred(self, results: Results, seed: int) -> str:
        ended = {of.seed: of.value for of in results.facts if of.fact == f"{self.model}.natural"}
        return Gate().bars_share(ended.get(seed))
