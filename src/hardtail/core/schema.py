"""What the arrays of instances and traces in a file must be: types and lengths, then values. Checked once, on reading.

A name's suffix says its shape: `parents_NAE` is [N, A, E]. Shapes: N instances, L sequence, A answer cells, E parents a
cell can have, T events of a decode.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hardtail.core.archives import Header
from hardtail.core.errors import HardtailError, quoted
from hardtail.core.types import MOST_STEPS, MOST_TOKENS, Array, Instances, Tokens, Trace

FLAGS, WHOLE, NUMBER, ANY = "b", "i", "f", "biufU"
"""Kinds of arrays, as numpy's letters."""
LONGEST = 1 << 20
"""The most cells of a sequence, and the most events of a decode."""


class _Kind(NamedTuple):
    letters: str
    names: tuple[str, ...] = ()
    """The only types of these kinds that are accepted, if they are not all."""


_TOKENS = _Kind("ui", ("uint8", "int32"))
_INSTANCES = {
    "tokens_NL": _TOKENS,
    "prompt_len_N": _Kind(WHOLE),
    "maskable_NA": _Kind(FLAGS),
    "scored_NA": _Kind(FLAGS),
    "parents_NAE": _Kind(WHOLE),
}
_Groups = Mapping[str, tuple[str, _Kind]]
_GROUPS: _Groups = {"orders": ("NA", _Kind(WHOLE)), "strata": ("N", _Kind(ANY)), "extras": ("", _Kind(ANY))}
_TRACE_GROUPS: _Groups = {"notes": ("N", _Kind(FLAGS + WHOLE + NUMBER))}
_TRACE = {
    "answer_NA": _TOKENS,
    "cell_NT": _Kind(WHOLE),
    "step_NT": _Kind(WHOLE),
    "token_NT": _TOKENS,
    "prob_NT": _Kind(NUMBER),
    "gold_prob_NT": _Kind(NUMBER),
    "gold_rank_NT": _Kind(WHOLE),
    "runner_up_NT": _Kind(WHOLE),
    "margin_NT": _Kind(NUMBER),
    "passes_N": _Kind(WHOLE),
}
OPTIONAL = ("parents_NAE", "passes_N")
INSIDE = "instances/"
"""What the names of a trace's instances begin with."""


def check_instance_headers(headers: Mapping[str, Header]) -> int:
    """Refuse arrays that are not those of instances; return how many instances they are."""
    what = "a set of instances"
    _refuse_missing(headers, _INSTANCES, what)
    (n, length), (_, cells) = (_table(headers, name) for name in ("tokens_NL", "maskable_NA"))
    _check(headers, _INSTANCES, _GROUPS, {"N": n, "L": length, "A": cells}, what)
    if cells > length:
        raise HardtailError(f"its sequences have no room for {cells} answer cells")
    return n


def check_trace_headers(headers: Mapping[str, Header]) -> int:
    """Refuse arrays that are not those of a trace; return how many instances it has."""
    what = "a trace"
    own = {name: header for name, header in headers.items() if not name.startswith(INSIDE)}
    _refuse_missing(own, _TRACE, what)
    inside = {name.removeprefix(INSIDE): header for name, header in headers.items() if name.startswith(INSIDE)}
    n = check_instance_headers(inside)
    events, cells = _table(own, "cell_NT")[1], inside["maskable_NA"].shape[1]
    _check(own, _TRACE, _TRACE_GROUPS, {"N": n, "A": cells, "T": events}, what)
    return n


def _check(
    headers: Mapping[str, Header], kinds: Mapping[str, _Kind], groups: _Groups, sizes: dict[str, int], what: str
) -> None:
    """Compare every header with its kind; `sizes` has the length of every dimension that is known."""
    for name, header in headers.items():
        group, slash, member = name.partition("/")
        if slash and group not in groups:
            raise HardtailError(f"the array {quoted(name)} does not belong to {what}")
        letters, kind = groups[group] if slash else ("", kinds.get(name, _Kind(ANY)))
        letters = letters or _letters(member or name)
        fits = len(header.shape) == len(letters) and all(
            length == sizes.get(letter, length) for letter, length in zip(letters, header.shape, strict=True)
        )
        typed = header.dtype.kind in kind.letters and (not kind.names or header.dtype.name in kind.names)
        if not (fits and typed):
            raise HardtailError(f"the array {quoted(name)} ({header}) does not fit {what} of {sizes['N']:,} instances")


def _letters(name: str) -> str:
    """The dimensions in a name; `node_depth_NA` is by instance and cell, and so on."""
    letters = name.rpartition("_")[2]
    return letters if letters.isalpha() and letters.isupper() and letters[0] == "N" else "N"


def _table(headers: Mapping[str, Header], name: str) -> tuple[int, int]:
    """The two lengths of an array that gives them to others."""
    shape = headers[name].shape
    if len(shape) != 2 or shape[1] > LONGEST:
        raise HardtailError(
            f"the array {name!r} ({headers[name]}) must have two dimensions, the second at most {LONGEST:,}"
        )
    return shape[0], shape[1]


def _refuse_missing(headers: Mapping[str, Header], needed: Mapping[str, _Kind], what: str) -> None:
    if missing := [name for name in needed if name not in headers and name not in OPTIONAL]:
        raise HardtailError(f"not {what}: the array {missing[0]!r} is missing")


def check_instances(instances: Instances) -> None:
    """Refuse values that point outside the arrays: later code trusts every index."""
    cells, room = instances.answer_len, instances.tokens_NL.shape[1] - instances.answer_len
    _refuse_strangers(instances.tokens_NL)
    if not _within(instances.prompt_len_N, 0, room):
        raise HardtailError(f"its sequences have no room for {cells} answer cells")
    if instances.parents_NAE is not None and not _within(instances.parents_NAE, -1, cells - 1):
        raise HardtailError("its cells wait for cells outside the answer")
    for name, rank_NA in instances.orders.items():
        if not _within(rank_NA, -1, cells):
            raise HardtailError(f"its order {quoted(name)} has ranks that {cells} cells cannot have")
    for name, value_N in instances.strata.items():
        if value_N.dtype.kind == "f" and not np.isfinite(value_N).all():
            raise HardtailError(f"its stratum {quoted(name)} has values that are not finite")


def check_trace(trace: Trace) -> None:
    """The same for a trace and its instances."""
    check_instances(trace.instances)
    for token in (trace.answer_NA, trace.token_NT):
        _refuse_strangers(token)
    last = trace.instances.answer_len - 1
    if not (_within(trace.cell_NT, -1, last) and _within(trace.runner_up_NT, -1, last)):
        raise HardtailError("it has events outside the answer")
    if not (_within(trace.step_NT, 0, MOST_STEPS - 1) and _within(trace.gold_rank_NT, -1, LONGEST)):
        raise HardtailError("it has steps or ranks that a decode cannot have")
    if trace.passes_N is not None and not _within(trace.passes_N, 0, np.iinfo(np.int32).max):
        raise HardtailError("it has numbers of passes that a decode cannot have")
    for name in ("prob_NT", "gold_prob_NT"):
        value_NT = getattr(trace, name)
        if not _within(value_NT[~np.isnan(value_NT)], 0, 1.001):  # NaN is unknown; rounding may exceed 1
            raise HardtailError(f"its array {name!r} has values that are not probabilities")


def _refuse_strangers(token: Tokens) -> None:
    if token.dtype != np.uint8 and not _within(token, 0, MOST_TOKENS - 1):
        raise HardtailError(f"it has tokens outside 0 to {MOST_TOKENS - 1:,}")


def _within(value: Array, low: float, high: float) -> bool:
    """Whether all values are in a closed range; NaN is not."""
    return bool(((value >= low) & (value <= high)).all())
