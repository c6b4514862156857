"""The files of a run, whether it is recorded under `results/` or in its own run directory.

Which records count: one cell per step, no sampling, every token allowed, which is how the paper decodes, in any
precision (`results/agreement.jsonl` says how far the answers agree). Of several records of the same thing in one run,
the latest weights count, then the most instances, then fp32, then the last record. Problems are those that the task
draws; those of a run that was trained on the file `NAME` are the ones of `NAME-test.npz`, if it was measured on them.

Which diagnosis counts: one on drawn problems that covers every stratum that a run of the study is diagnosed on
(`diagnosed_strata`), preferably no others. What only some of them have, such as coverage, is read from those. Diagnoses
of single strata are not combined, because they hold medians, which cannot be pooled.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.recipes import RECIPE, RecipeFields, read_recipe, recipe_of
from hardtail.core.records import (
    FINISHED,
    Accuracy,
    Coverage,
    Finished,
    Head,
    LogLine,
    Measurement,
    RunEntry,
    names_a_folder,
    read_json,
    read_jsonl,
    read_measurements,
)
from hardtail.measuring.diagnosis.record import Diagnosis, read_diagnoses
from hardtail.study.names import ON, PUBLISHED, in_a_name
from hardtail.tasks.named import kind_named, task_of

SETTINGS = {"papl5": "papl", "oracle": "puma"}
"""First words of arms that stand for settings of a scheme."""
R = TypeVar("R", bound=Head)
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Run:
    """The folder of a run and the entry that identifies it; its files are read when they are first needed."""

    entry: RunEntry
    folder: Path

    @classmethod
    def of_folder(cls, folder: Path) -> "Run":
        """A run directory that `hardtail train` wrote, finished or not."""
        fields = recipe_of(folder).fields
        if fields.seed is None or fields.steps is None:
            raise HardtailError(f"{folder / RECIPE}: fields.seed or fields.steps is missing; the record is damaged")
        ended, name = read_json(folder / FINISHED, Finished), folder.resolve().name
        if not names_a_folder(name):
            raise HardtailError(f"{quoted(name)} cannot name a run: tables and pages cannot show it; rename its folder")
        task, steps = (
            task_of({"task": fields.task}, str(folder)).name,
            ended.step if ended and ended.patience else fields.steps,
        )
        facts = {key: getattr(ended, key) for key in ("commit", "device", "wall", "how", "patience") if ended}
        return cls(
            RunEntry(name=name, arm=fields.name or name, task=task, seed=fields.seed, steps=steps, **facts), folder
        )

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def task(self) -> str:
        return self.entry.task

    @property
    def seed(self) -> int:
        return self.entry.seed

    @property
    def arm(self) -> str:
        """The arm without the task's name."""
        return self.entry.arm.removeprefix(f"{self.task}-")

    @cached_property
    def recipe(self) -> RecipeFields | None:
        found = read_recipe(self.folder)
        return found.fields if found else None

    @property
    def scheme(self) -> str:
        """The training scheme, by the first word of the arm, unless the recipe has another one."""
        first = self.arm.partition("-")[0]
        used = self.recipe.scheme_name if self.recipe else ""
        return first if SETTINGS.get(first, first) == used or not used else used

    @property
    def hard(self) -> str | None:
        """The hard tail of its task as it was configured; None if the task is not registered."""
        if (kind := kind_named(self.task)) is None:
            return None
        try:
            own = task_of({"task": self.recipe.task}, str(self.folder)) if self.recipe else kind.preset()
        except HardtailError:  # of a class that is not registered, with the name of one that is
            return None
        return own.showcase().hard

    @property
    def test_file(self) -> str:
        """The file that a run on the file `NAME` is measured on, `NAME-test`, as names of arms have it; empty for other
        runs."""
        trained_on = self.entry.arm.partition(ON)[2]
        return f"{trained_on}-test" if trained_on else ""

    @cached_property
    def log(self) -> list[LogLine]:
        """What the run measured during training."""
        return read_jsonl(self.folder / "log.jsonl", LogLine)

    @property
    def watched(self) -> str:
        """The file whose problems it measured itself on during training; empty if they were drawn."""
        return next((line.watched.file for line in self.log if line.watched), "")

    @cached_property
    def evaluations(self) -> list[Measurement]:
        return read_measurements(self.folder / "evaluations.jsonl")

    @cached_property
    def diagnoses(self) -> list[Diagnosis]:
        return read_diagnoses(self.folder / "diagnoses.jsonl")

    @cached_property
    def coverage(self) -> Coverage | None:
        """The mask states it was trained on."""
        return read_json(self.folder / "coverage.json", Coverage)

    @cached_property
    def measured(self) -> dict[tuple[type[Measurement], str, str, str | None], Measurement]:
        """The measurements that count, by kind, policy, stratum and kind of weights."""
        held = [record for record in self.on_its_problems if record.data or record.plainly_decoded]
        return largest(held, lambda of: (type(of), of.policy, of.stratum, of.checkpoint), lambda of: (of.n,))

    @cached_property
    def on_its_problems(self) -> list[Measurement]:
        """Plain decodes of the problems that it is measured on: those of its test file, or drawn ones of any seed."""
        held = [record for record in self.evaluations if self._is_of_test_file(record)]
        if held or self.entry.arm.endswith(PUBLISHED):
            return held
        return [record for record in self.evaluations if record.data is None and record.by_plain_rule]

    def _is_of_test_file(self, record: Measurement) -> bool:
        """Whether it is a plain decode of the test file; not of `natural`, which is all of a file, in whatever
        proportions, and not what the task draws."""
        stem = in_a_name(Path(record.plainly_decoded_from).stem)
        return bool(self.test_file) and stem == self.test_file and record.stratum != "natural"

    def read(self) -> None:
        """Read all of its records now, so that damaged ones are refused before other work is done."""
        _ = self.recipe, self.log, self.evaluations, self.diagnoses, self.coverage

    @property
    def accuracies(self) -> list[Accuracy]:
        return [record for record in self.measured.values() if isinstance(record, Accuracy)]

    @cached_property
    def explained(self) -> dict[tuple[str, str | None], Diagnosis]:
        """The diagnoses that count, by policy and kind of weights."""
        return self.explaining("result")

    def explaining(self, part: str) -> dict[tuple[str, str | None], Diagnosis]:
        """Those that count for a part such as `coverage`: of the same weights, one that has it before one that does
        not, then one of no other strata."""
        plain = [record for record in self.diagnoses if record.plainly_decoded]
        covering = [record for record in plain if self.covers(record)]
        wanted = set(diagnosed_strata(self.task))

        def size(of: Diagnosis) -> tuple[int, ...]:
            return getattr(of, part) is not None, set(of.strata) == wanted, of.result.instances

        found: dict[tuple[str, str | None], Diagnosis] = {}
        for held in (plain, covering):
            found |= largest(held, lambda of: (of.policy, of.checkpoint), size)
        return found

    def covers(self, diagnosis: Diagnosis) -> bool:
        """Whether a diagnosis has all strata that claims are about."""
        return set(diagnosis.strata) >= set(diagnosed_strata(self.task))


def largest(records: Iterable[R], key: Callable[[R], K], size: Callable[[R], tuple[int, ...]]) -> dict[K, R]:
    """One record for each key: the largest of the latest weights; of equals, one in fp32, and then the last."""
    held = list(records)
    rising = sorted(held, key=lambda of: (of.step or 0, size(of), of.decode_precision == "fp32"))
    best = {key(record): record for record in rising}
    return {at: best[at] for at in map(key, held)}


@cache
def diagnosed_strata(task: str) -> tuple[str, ...]:
    """The strata that a run of the study is diagnosed on; none if the task is not registered."""
    kind = kind_named(task)
    if kind is None:
        return ()
    usual = kind.preset()
    own = [part.stratum for part in usual.splits().get("diagnosis", ())]
    return tuple(own or (str(usual.stratum(name)) for name in usual.strata()))
