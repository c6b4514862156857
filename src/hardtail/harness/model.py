"""A model type of the harness: anything that `ht.load` takes, decoded in a chosen order.

A model of ours reads a problem and nothing else. It takes the problem from the document, where the document is one of
ours, and else reads the whole prompt as one; examples and instructions do not reach it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from hardtail.core.errors import HardtailError
from hardtail.core.types import Trace
from hardtail.decoding.options import Decoding
from hardtail.measuring.evaluate import traced
from hardtail.measuring.models import subject_of
from hardtail.policies.base import Commit
from hardtail.policies.named import policy_named
from hardtail.tasks.named import task_named

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

import_module("lm_eval.models")  # the harness lists its own models only while its registry is empty
NAME = "hardtail"
_NO_LIKELIHOOD = (
    "a masked diffusion model has no likelihood of a text from left to right; choose tasks whose answers are generated"
)


@register_model(NAME)
class HardtailLM(LM):  # type: ignore[misc]
    """`--model hardtail --model_args model=zoo:addition-random,policy=top1`."""

    def __init__(
        self,
        model: object,
        task: str | None = None,
        policy: str = "top1",
        each: int = 1,
        device: str | None = None,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
    ) -> None:
        super().__init__()
        if str(device).startswith("cuda") and not torch.cuda.is_available():
            device = None  # the harness asks for a GPU unless it is told otherwise
        self.subject = subject_of(model, None if task is None else task_named(task), device=device)
        self.name, self.policy = policy, policy_named(policy, self.subject.task.order_names)
        wanted = int(text) if (text := str(batch_size)).isdecimal() else 0  # not for "auto"
        batch = wanted if wanted > 1 else None  # the harness asks for 1 unless it is told otherwise
        if not str(each).isdecimal():
            raise HardtailError(f"each={each}: give a whole number of cells for a step")
        self.decoding = Decoding(Commit(int(each)), batch, self.subject.device)

    def generate_until(self, requests: "list[Instance]", disable_tqdm: bool = False) -> list[str]:
        task = self.subject.task
        instances = task.parse([_problem(request) for request in requests])
        trace = Trace.concat(list(traced(self.subject, self.name, self.policy, instances, "", self.decoding)))
        return [task.answer_text(instances, i, trace.answer_NA[i]) for i in range(len(instances))]

    def loglikelihood(self, requests: "list[Instance]", disable_tqdm: bool = False) -> NoReturn:
        raise HardtailError(f"{self.subject.name}: {_NO_LIKELIHOOD}")

    def loglikelihood_rolling(self, requests: "list[Instance]", disable_tqdm: bool = False) -> NoReturn:
        raise HardtailError(f"{self.subject.name}: {_NO_LIKELIHOOD}")


def _problem(request: "Instance") -> str:
    doc: Any = request.doc
    if isinstance(doc, dict) and {"problems", "stratum", "prompt"} <= set(doc):
        return str(doc["prompt"])
    return str(request.args[0]).strip()
