"""The folder that an evaluation writes its traces to: what each is called, and whose traces stay as they are."""

from collections.abc import Iterable
from itertools import product
from pathlib import Path

from hardtail.core.errors import HardtailError
from hardtail.core.trace_files import traced_model
from hardtail.measuring.subject import Subject

HALF = "half-revealed"
"""What marks the trace of a decode that was shown half of each answer."""


def trace_path(folder: Path, stratum: str, policy: str, *marks: str) -> Path:
    """Where the trace of a policy on a stratum is written."""
    return folder / ".".join([_file_name(stratum), _file_name(policy), *marks, "npz"])


def refuse_other_traces(folder: Path, subject: Subject, strata: Iterable[str], policies: Iterable[str]) -> None:
    """Raise HardtailError if a trace of another model is where one of these would be written."""
    marks: list[tuple[str, ...]] = [(), (HALF,)] if subject.task.reveals else [()]
    for stratum, policy, marked in product(strata, policies, marks):
        model = traced_model(path := trace_path(folder, stratum, policy, *marked))
        if model not in ("", subject.name):
            raise HardtailError(
                f"{path} is a trace of {model}, which one of {subject.name} would replace; give another folder"
            )


def _file_name(text: str) -> str:
    """A stratum or policy as part of a file's name."""
    for sign, word in ((">=", "-ge-"), ("<=", "-le-"), (">", "-gt-"), ("<", "-lt-"), ("=", "-"), (",", "_")):
        text = text.replace(sign, word)
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in text)
