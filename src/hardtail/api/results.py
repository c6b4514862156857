"""What the calls return: objects that print as tables and sentences, and give their records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardtail.core.errors import HardtailError
from hardtail.core.records import Accuracy, Measurement, as_json
from hardtail.core.tables import Table
from hardtail.measuring.diagnosis import Diagnosis, DiagnosisVerdict, tables, verdict
from hardtail.measuring.subject import Subject
from hardtail.show.scoreboard import eval_tables
from hardtail.show.table_files import latex
from hardtail.tasks.parts import Words

if TYPE_CHECKING:
    import pandas


def frame_of(rows: Sequence[Mapping[str, object]]) -> "pandas.DataFrame":
    """Rows as a data frame; pandas is optional."""
    from hardtail.core.frames import pandas_or_error

    return pandas_or_error().DataFrame(rows)


@dataclass(frozen=True)
class Evaluation:
    """A model's accuracy by decoding order and stratum."""

    subject: Subject
    records: tuple[Measurement, ...]

    @property
    def accuracies(self) -> tuple[Accuracy, ...]:
        return tuple(record for record in self.records if isinstance(record, Accuracy))

    def accuracy(self, policy: str, stratum: str) -> float:
        """Exact match under one order on one stratum."""
        asked, measured = (policy, str(self.subject.task.stratum(stratum))), self.accuracies
        for held in measured:
            if (held.policy, held.stratum) == asked:
                return held.exact_match
        known = ", ".join(f"{held.policy} on {held.stratum}" for held in measured)
        raise HardtailError(f"{policy} on {stratum} was not measured; there is {known}")

    def tables(self) -> list[Table]:
        return eval_tables(self.subject, self.records)

    def to_frame(self) -> "pandas.DataFrame":
        """One row for each order and stratum."""
        return frame_of([as_json(record) for record in self.accuracies])

    def latex(self) -> str:
        """The accuracies as LaTeX; needs booktabs, and longtable if there are many strata."""
        return latex(self.tables()[0])

    def __repr__(self) -> str:
        return "\n\n".join(table.plain() for table in self.tables())

    def _repr_markdown_(self) -> str:
        return "\n".join(table.markdown() for table in self.tables())


@dataclass(frozen=True)
class Explanation:
    """What one or more decodes of a model show; it prints as a verdict of five lines."""

    diagnoses: tuple[Diagnosis, ...]
    words: Words

    @property
    def details(self) -> Diagnosis:
        """Everything that was measured of the first decode."""
        return self.diagnoses[0]

    @property
    def verdict(self) -> DiagnosisVerdict:
        return verdict(self.diagnoses, self.words)

    def tables(self) -> list[Table]:
        """All figures of all decodes as tables."""
        return [table for diagnosis in self.diagnoses for table in tables(diagnosis)]

    def __repr__(self) -> str:
        return self.verdict.text()
