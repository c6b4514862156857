"""Problems of our tasks as documents of the harness, and what an answer to one is worth.

The problems of a stratum are those that `hardtail eval` measures on, so that figures can be compared.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, structs

from hardtail.core.errors import HardtailError
from hardtail.core.manifest import Count
from hardtail.core.types import Instances
from hardtail.measuring.choices import measured_instances
from hardtail.tasks import datasets as data
from hardtail.tasks.base import Part, Task
from hardtail.tasks.named import task_named

if TYPE_CHECKING:
    import datasets

TEST, SHOTS = "test", "shots"
"""The splits: what is measured, and examples to show before it."""
MOST_SHOTS = 8
USUAL_N, MOST = 100, 100_000
"""How many problems a stratum has unless more are asked for, and at most."""


class Wanted(Struct, frozen=True):
    """Which problems a task of the harness has. Entries that others put into the metadata are left alone."""

    problems: str
    """The task, such as "addition" or "addition,digits=8"."""
    stratum: str
    n: Annotated[int, Meta(ge=1, le=MOST)] = USUAL_N
    seed: Count = 0

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> "Wanted":
        try:
            return convert(dict(metadata), cls)
        except (ValidationError, ValueError) as error:  # such as half of a character
            raise HardtailError(
                f'--metadata: {error}; give n from 1 to {MOST:,} and a seed from 0, as in \'{{"n": 20, "seed": 1}}\''
            ) from error


def documents(**metadata: Any) -> "dict[str, datasets.Dataset]":
    """The splits of a task of the harness; `--metadata '{"n": 20, "seed": 1}'` changes how many and which."""
    import datasets

    asked = Wanted.read(metadata)
    task, instances = drawn(asked.problems, asked.stratum, asked.n, asked.seed)
    shots = data.draw(task, data.TRAIN, Part("natural", MOST_SHOTS), asked.seed)
    about = structs.asdict(asked)
    return {
        name: datasets.Dataset.from_list(
            [
                {**about, "row": row, "prompt": prompt, "answer": task.answer_text(held, row)}
                for row, prompt in enumerate(task.render(held))
            ]
        )
        for name, held in ((TEST, instances), (SHOTS, shots))
    }


def judge(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Whether an answer is the gold one, and whether it solves the problem; text that is not an answer is neither."""
    task, instances = drawn(doc["problems"], doc["stratum"], doc["n"], doc["seed"])
    row = int(doc["row"])
    try:
        answer_A = task.read_answer(instances, row, results[0].strip())
    except HardtailError:
        return {"exact_match": 0.0, "valid": 0.0}
    wrong_A = (answer_A != instances.answer(row)) & instances.scored_NA[row]
    return {"exact_match": float(not wrong_A.any()), "valid": float(task.fault(instances, row, answer_A) is None)}


@lru_cache(maxsize=64)
def drawn(problems: str, stratum: str, n: int, seed: int) -> tuple[Task, Instances]:
    """The task and the problems that documents are made of."""
    task = task_named(problems)
    return task, measured_instances(task, str(task.stratum(stratum)), n, seed)
