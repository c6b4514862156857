"""Records of what was measured: frozen types, checked once when a file is read.

A line or file that does not fit its type raises HardtailError with the file, the line and the field; later code does
not check again. `schema` is the format that a record was written in: it is absent in older files (schema 1), and a
number above `SCHEMA` is refused. Unknown keys are ignored.
"""

import reprlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import msgspec
import numpy as np
from msgspec import Meta

from hardtail.core.errors import HardtailError
from hardtail.core.files import append_bytes, atomic, read_regular
from hardtail.core.manifest import Count as Count
from hardtail.core.manifest import Seed
from hardtail.core.parsing import converted, damaged, decoded
from hardtail.core.pretrained import Pretrained
from hardtail.core.types import ONE_A_STEP

SCHEMA = 2
LONGEST_NAME = 200
"""Bytes that the name of a run may have: file systems take 255, and parts of its files have longer names."""
T = TypeVar("T")
Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[int, Meta(ge=1, le=1 << 53)]
Seconds = Annotated[float, Meta(ge=0)]


class DataFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of instances that a run was trained or measured on."""

    file: str
    sha256: str
    count: Count | None = None


class Head(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The fields that every measurement has. None is unknown, or absent in old lines."""

    task: str | None = None
    policy: str
    model: str | None = None
    recipe: str | None = None
    seed: Seed | None = None
    """The seed of the training."""
    checkpoint: str | None = None
    """Which weights: `last` or `best_probe`."""
    step: Count | None = None
    """The training step of the weights."""
    decode_precision: str = "fp32"
    reading: str | None = None
    """The task's configuration, by the name of its preset."""
    data_seed: Seed | None = None
    """The seed of the instances; None is the seed of the training."""
    data: DataFile | None = None
    """The file that the instances are from; None if they were drawn."""
    commit_rule: str = ONE_A_STEP
    restrict: bool = False
    temperature: float = 0.0
    decode_seed: Seed = 0
    calibrated: Positive | None = None
    """How many natural problems the limit in the policy's name was set by (of a pair, in either's); None if it was not
    (`eval --calibrate`)."""
    commit: str | None = None
    device: str | None = None
    pretrained: Pretrained | None = None
    """The model of another project that was measured, or that the training began with."""

    @property
    def plainly_decoded(self) -> bool:
        """Whether decoding committed one cell per step, without sampling or restriction, on the instances and random
        orders of the run's own seed; in any precision."""
        return self.data is None and self.data_seed in (None, self.seed) and self.by_plain_rule

    @property
    def plainly_decoded_from(self) -> str:
        """The name of the file whose problems were decoded the same way; empty for drawn ones and other ways."""
        return self.data.file if self.data is not None and self.by_plain_rule else ""

    @property
    def by_plain_rule(self) -> bool:
        """Whether decoding committed one cell per step, without sampling or restriction."""
        rule = self.commit_rule, self.restrict, self.temperature, self.decode_seed
        return rule == (ONE_A_STEP, False, 0.0, 0)


class _Measured(Head, frozen=True, kw_only=True):
    stratum: str
    n: Positive
    """Instances."""


class Accuracy(_Measured, frozen=True, kw_only=True, tag="accuracy"):
    """One policy on one stratum."""

    exact_match: Share
    low: Share | None = None
    high: Share | None = None
    cell_accuracy: Share | None = None
    valid: Share | None = None
    """Share of answers that solve the problem, gold or not."""
    steps: Count | None = None
    passes: Annotated[float, Meta(ge=0)] | None = None
    """Forward passes that an instance took, on average."""
    wall: Seconds | None = None


class Probe(_Measured, frozen=True, kw_only=True, tag="probe"):
    """One pass with every cell hidden."""

    probe_nll: float | None = None
    """None if it is infinite: a right token has probability 0."""


REVEALED = ", half revealed"
"""The end of a policy's name where half of the answer was shown to it."""
HALF_REVEALED = f"one pass{REVEALED}"
"""The policy of a partial reveal, as its record names it."""


class Reveal(_Measured, frozen=True, kw_only=True, tag="reveal"):
    """One pass over half-revealed answers."""

    token_accuracy: Share
    exact_match: Share | None = None
    """Share of answers whose hidden cells are all right."""
    tokens: Count | None = None
    low: Share | None = None
    high: Share | None = None


class Paired(_Measured, frozen=True, kw_only=True, tag="paired"):
    """Two policies on the same instances."""

    against: str
    only_first: Count
    only_second: Count
    p: Share


class Trust(_Measured, frozen=True, kw_only=True, tag="trust"):
    """How well a score tells wrong answers from right ones, for one policy on one stratum."""

    score: str
    passes: Count
    """Forward passes that the score costs."""
    wrong: Count
    auroc: Share | None = None
    """The chance that a wrong answer has a higher score than a right one; None if all are right or all wrong."""
    low: Share | None = None
    high: Share | None = None
    high_score: float | None = None
    """The 99 % quantile of the score over all answers, right or wrong."""
    accuracy_at: dict[str, Share] = {}
    """Accuracy of the most trusted answers, by the share of answers that they are."""


Measurement = Accuracy | Probe | Reveal | Paired | Trust
"""A line of `evaluations.jsonl`."""


class LogLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a run's `log.jsonl`: what was measured after a step, or where a session began."""

    step: Count
    loss: float | None = None
    norm: float | None = None
    probe_nll: float | None = None
    probe_guessed: Count | None = None
    natural: Share | None = None
    hard: Share | None = None
    hard_logical: Share | None = None
    how: str | None = None
    commit: str | None = None
    device: str | None = None
    decode_precision: str | None = None
    """In which precision this session decodes, if it is not fp32."""
    data: DataFile | None = None
    watched: DataFile | None = None
    """The file whose problems the run measures itself on, if they are not drawn."""
    rounded: Count | None = None
    """How often the optimiser's moments were rounded to bf16 before this session, if they were."""
    wall: Seconds | None = None
    tokens: Count | None = None


FINISHED, LOG_FILE = "finished.json", "log.jsonl"


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """`finished.json`: a run has ended."""

    step: Positive
    wall: Seconds
    commit: str
    device: str
    how: str | None = None
    data: DataFile | None = None
    watched: DataFile | None = None
    """The file whose problems it measured itself on, and so chose its weights by, if they were not drawn."""
    patience: Positive | None = None
    """The patience that ran out before the last step, if one did."""


def names_a_folder(name: str) -> bool:
    """Whether a name from a file is that of a folder next to it, and can be written and shown as it is."""
    short = len(name.encode()) <= LONGEST_NAME
    return Path(name).name == name and name not in ("", "..") and name.isprintable() and short


class RunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `index.jsonl`, or the same for a run directory; an unfinished run has no commit, device and wall."""

    name: str
    arm: str
    task: str
    seed: Seed
    steps: Positive
    commit: str | None = None
    device: str | None = None
    wall: Seconds | None = None
    how: str | None = None
    patience: Positive | None = None
    caveat: str | None = None
    """What a reader of its figures must know, in a line."""

    def __post_init__(self) -> None:
        if self.caveat is not None and not (self.caveat.strip() and self.caveat.isprintable()):
            raise ValueError(f"the caveat {self.caveat!r} of {self.name!r} is not a line of text")
        if not names_a_folder(self.name):
            raise ValueError(f"{self.name!r} is not the name of a folder next to the index")


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """`coverage.json`: the mask states of training, by hidden count, and their hidden cells by count and rank.

    The row of count 0 has the cells that were trained on although they show a token, the model's own (scheme `own`).
    """

    by_count: tuple[Count, ...]
    by_count_and_rank: tuple[tuple[Count, ...], ...]

    def __post_init__(self) -> None:
        if len(self.by_count) != len(self.by_count_and_rank) or len(set(map(len, self.by_count_and_rank))) != 1:
            raise ValueError("by_count and by_count_and_rank differ in their rows, or the rows in their ranks")


# -- reading ----------------------------------------------------------------------------------------------------------


def _as_it_is(held: dict[str, Any], schema: int) -> dict[str, Any]:
    return held


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Upgrade = Callable[[dict[str, Any], int], dict[str, Any]]
"""From a record in an older schema to the one of today."""


def read_jsonl(path: Path, kind: type[T], upgrade: Upgrade = _as_it_is) -> list[T]:
    """The records of a `.jsonl`; none if there is no such file."""
    return parsed_lines(read_regular(path) if path.exists() else b"", kind, str(path), upgrade)


def parsed_lines(raw: bytes, kind: type[T], where: str, upgrade: Upgrade = _as_it_is) -> list[T]:
    """The records of the content of a `.jsonl`; errors start with `where` it is from."""
    lines = enumerate(raw.removeprefix(BYTE_ORDER_MARK).split(b"\n"), start=1)
    return [parse(line, kind, f"{where}, line {number}", upgrade) for number, line in lines if line.strip()]


def read_measurements(path: Path) -> list[Measurement]:
    """The lines of an `evaluations.jsonl`."""
    return read_jsonl(path, cast("type[Measurement]", Measurement))


def read_json(path: Path, kind: type[T]) -> T | None:
    """The record in a file of its own; None if there is no such file."""
    if not path.exists():
        return None
    return parse(read_regular(path).removeprefix(BYTE_ORDER_MARK), kind, str(path))


def parse(raw: bytes, kind: type[T], where: str, upgrade: Upgrade = _as_it_is) -> T:
    """The record in some JSON; errors start with `where` it is from."""
    held = decoded(raw, where)
    if not isinstance(held, dict):
        raise HardtailError(f"{where}: this is not a JSON object")
    schema = held.get("schema", 1)
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise HardtailError(
            f"{where}: schema is {reprlib.repr(schema)}; this version reads 1 to {SCHEMA}; use a newer one"
        )
    try:
        return converted(upgrade(held, schema), kind, where)
    except msgspec.ValidationError as error:  # from the upgrade
        raise damaged(error, where) from error


# -- writing ----------------------------------------------------------------------------------------------------------


def as_json(record: msgspec.Struct) -> dict[str, Any]:
    """A record as JSON, without unknown fields; a number that is not finite is None."""
    held = jsonable(record)
    kind = {"kind": held.pop("kind")} if "kind" in held else {}
    return {**kind, "schema": SCHEMA, **{key: value for key, value in held.items() if value is not None}}


def jsonable(value: Any) -> Any:
    """Anything recorded, as JSON: plain numbers, lists, and None for a number that is not finite."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_plain))


def append_jsonl(path: Path, records: Iterable[msgspec.Struct]) -> None:
    """Add records to a `.jsonl`, one per line: all of them or, if that fails, none."""
    append_bytes(path, lines_of(records))


def lines_of(records: Iterable[msgspec.Struct]) -> bytes:
    return b"".join(msgspec.json.encode(as_json(record)) + b"\n" for record in records)


def write_record(path: Path, record: msgspec.Struct) -> None:
    """A record as a whole file, atomically."""
    with atomic(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(as_json(record)), indent=1) + b"\n")


def json_list(records: Iterable[msgspec.Struct]) -> str:
    """Records as one JSON list, for programs."""
    return msgspec.json.format(msgspec.json.encode([as_json(record) for record in records]), indent=1).decode()


def _plain(value: Any) -> Any:
    """Numpy's numbers as Python's."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be recorded")
