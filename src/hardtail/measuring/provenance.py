"""What records and traces say about their measurement: the model, how it was decoded, and on what."""

from typing import Any

from msgspec import structs, to_builtins

from hardtail.core.records import Head
from hardtail.decoding.options import Decoding
from hardtail.measuring.passes import HERE, Passes
from hardtail.measuring.subject import Subject
from hardtail.tasks.named import task_to_json


def head_of(
    subject: Subject, policy: str, decoding: Decoding, passes: Passes = HERE, calibrated: int | None = None
) -> Head:
    """What every record of this measurement says about it; the batch and the workers affect no result."""
    return Head(
        task=subject.task.name,
        policy=policy,
        model=subject.name,
        **vars(subject.origin),
        commit_rule=str(decoding.commit),
        restrict=decoding.allowed is not None,
        temperature=decoding.temperature,
        decode_seed=decoding.seed,
        calibrated=calibrated,
        **passes.origin(decoding.device),
    )


def about_of(subject: Subject, head: Head, stratum: str) -> dict[str, Any]:
    """What a trace says about itself."""
    known = {key: value for key, value in structs.asdict(head).items() if value is not None}
    return to_builtins(known) | {"task": task_to_json(subject.task), "stratum": stratum}
