"""Problems from a file, measured on in place of drawn ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardtail.core import hub
from hardtail.core.describe import refuse_other_task
from hardtail.core.errors import HardtailError
from hardtail.core.files import file_hash, load_instances
from hardtail.core.records import DataFile
from hardtail.core.types import Instances
from hardtail.tasks import datasets as data
from hardtail.tasks.base import Task
from hardtail.tasks.named import said_task, task_to_json
from hardtail.tasks.stored import refuse_misshapen, refuse_unsolved


def problems_beside(data_file: Path | None) -> Path | None:
    """`NAME-test.npz` next to the file `NAME` that a run is trained on, if there is one."""
    if data_file is None or not data_file.name or str(data_file).startswith(hub.HF):
        return None
    beside = data_file.with_name(f"{data_file.stem}-test.npz")
    return beside if beside.exists() else None


@dataclass(frozen=True)
class GivenProblems:
    """The problems of one file, and what every record about them says of it."""

    task: Task
    instances: Instances
    file: DataFile

    @classmethod
    def read(cls, task: Task, path: Path, whose: str = "model") -> "GivenProblems":
        """A data set of `hardtail data`, in a file or on the Hub, or any file of problems that the task reads.

        `whose` says in errors whose task it must be of: the model's or the recipe's.
        """
        path = hub.pinned_data(path)
        if path.suffix in (".npz", ".parquet") or str(path).startswith(hub.HF):
            instances, manifest = load_instances(path)
            refuse_other_task(said_task(manifest.about), task_to_json(task), str(path), whose)
            if manifest.split == data.TRAIN:
                raise HardtailError(f"{path} is training data; measure on another split (`hardtail data --split test`)")
            refuse_misshapen(task, instances, str(path))
            digest = manifest.sha256
        else:
            instances, digest = data.load(task, str(path)).instances, file_hash(path)
        return cls(task, instances, DataFile(file=hub.called(path), sha256=digest, count=len(instances)))

    def spread(self, stratum: str, n: int) -> Instances:
        """At most `n` problems of a stratum, from all parts of the file, which may be in the order of difficulty."""
        inside_K = self._some(stratum)
        return self._solved(inside_K[np.linspace(0, len(inside_K), min(n, len(inside_K)), endpoint=False, dtype=int)])

    def strata(self, names: Sequence[str]) -> list[str]:
        """Those of the named strata that the file has problems of."""
        return [name for name in names if self.count(name)]

    def distinct(self, names: Sequence[str], n: int | None) -> list[str]:
        """The same, but of several with the same first `n` problems only one: `natural`, or else the last."""
        held = self.strata(names)
        kept = {self._inside(name)[:n].tobytes(): name for name in sorted(held, key="natural".__eq__)}
        return [name for name in held if name in kept.values()]

    def count(self, stratum: str) -> int:
        """How many problems of a stratum the file has."""
        return len(self._inside(stratum))

    def refuse_unmeasurable(self) -> None:
        """Raise HardtailError if the file says nothing of strata, or has problems without a solution."""
        self.strata(self.task.strata())
        refuse_unsolved(self.task, self.instances, self.file.file)

    def together(self, strata: Sequence[str], n: int | None) -> tuple[Instances, dict[str, NDArray[np.bool_]]]:
        """The first `n` problems of each stratum, or all, each once in the order of the file, and for each stratum
        which of them are in it; `natural` is the whole file."""
        inside = {name: self._some(name)[:n] for name in strata}
        every_K = np.unique(np.concatenate(list(inside.values())))
        return self._solved(every_K), {name: np.isin(every_K, rows_K) for name, rows_K in inside.items()}

    def _some(self, stratum: str) -> NDArray[np.intp]:
        if not len(inside_K := self._inside(stratum)):
            raise HardtailError(f"{self.file.file} has no problem of the stratum {stratum}; leave it out")
        return inside_K

    def _solved(self, rows_K: NDArray[np.intp]) -> Instances:
        chosen = self.instances.take(rows_K)
        refuse_unsolved(self.task, chosen, self.file.file)
        return chosen

    def _inside(self, stratum: str) -> NDArray[np.intp]:
        wanted, strata = self.task.stratum(stratum), self.instances.strata
        if not wanted.conditions:
            return np.arange(len(self.instances))
        if not strata:
            raise HardtailError(f"{self.file.file} was built with `--bare` and has no strata; build it without")
        return np.flatnonzero(wanted.holds(strata))
