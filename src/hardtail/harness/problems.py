"""Problems of our tasks as documents of the harness, and what an answer to one is worth.

The problems of a stratum are those that `hardtail eval` measures on, so that figures can be compared.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hardtail.core.errors import HardtailError
from hardtail.core.types import Instances
from hardtail.measuring.evaluate import measured_instances
from hardtail.tasks import datasets as data
from hardtail.tasks.base import Part, Task
from hardtail.tasks.named import task_named

if TYPE_CHECKING:
    import datasets

TEST, SHOTS = "test", "shots"
"""The splits: what is measured, and examples to show before it."""
MOST_SHOTS = 8
USUAL_N = 100


def documents(
    *, problems: str, stratum: str, n: int = USUAL_N, seed: int = 0, **others: Any
) -> "dict[str, datasets.Dataset]":
    """The splits of a task of the harness; `--metadata '{"n": 20, "seed": 1}'` changes how many and which.

    `problems` is the task, such as "addition" or "addition,digits=8". Others' entries in the metadata are left alone.
    """
    import datasets

    task, instances = drawn(problems, stratum, n, seed)
    shots = data.draw(task, data.TRAIN, Part("natural", MOST_SHOTS), seed)
    about = {"problems": problems, "stratum": stratum, "n": n, "seed": seed}
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
    """Whether an answer is the gold one, and whether it solves the problem; what is no answer at all does neither."""
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
