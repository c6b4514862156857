"""The data that packages pass to each other: frozen dataclasses of arrays.

Shapes: N instances, L sequence, A answer cells, E parents a cell can have, T events of a decode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError, on_files

if TYPE_CHECKING:
    import pandas

Array = NDArray[Any]
Tokens = NDArray[np.integer[Any]]
"""Token ids: bytes where they suffice, four-byte numbers for a larger vocabulary (`token_dtype`)."""
MOST_TOKENS = 1 << 20
"""The most tokens of a vocabulary."""
MOST_CELLS = 1 << 15
"""The most answer cells of a trace: its places, and its steps, are kept in two bytes."""
MOST_STEPS = MOST_CELLS - 1
ONE_A_STEP = "1 a step"
"""The usual rule of how many cells are committed."""


def token_dtype(size: int) -> type[np.integer[Any]]:
    """The type of arrays that hold the tokens of a vocabulary of this size."""
    return np.uint8 if size <= 1 << 8 else np.int32


@dataclass(frozen=True)
class Instances:
    """`N` problems of one task, gold answers and annotations included, ready for a GPU.

    Answer cell `a` of instance `n` is the token at `prompt_len_N[n] + a`; what follows the answer is padding.
    `tokens_NL`    prompt, gold answer, padding
    `maskable_NA`  the answer cells that are ever hidden
    `scored_NA`    the answer cells that exact match compares
    `orders`       logical-flow ranks by name: lower first, equal is a tie, -1 is never hidden
    `parents_NAE`  the answer cells whose values a cell logically waits for; -1 pads; None where not annotated
    `strata`       one value per instance and axis of difficulty
    `extras`       the task's own arrays that its diagnosis needs
    """

    tokens_NL: Tokens
    prompt_len_N: NDArray[np.int32]
    maskable_NA: NDArray[np.bool_]
    scored_NA: NDArray[np.bool_]
    orders: Mapping[str, Array] = field(default_factory=dict)
    parents_NAE: Array | None = None
    strata: Mapping[str, Array] = field(default_factory=dict)
    extras: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens_NL)

    @property
    def answer_len(self) -> int:
        return self.maskable_NA.shape[1]

    @property
    def answer_at_NA(self) -> NDArray[np.int64]:
        """Where each answer cell sits in the sequence."""
        return self.prompt_len_N[:, None].astype(np.int64) + np.arange(self.answer_len)

    @property
    def answer_NA(self) -> Tokens:
        """The gold answer tokens."""
        return np.take_along_axis(self.tokens_NL, self.answer_at_NA, axis=1)

    def answer(self, i: int) -> Tokens:
        """The gold answer tokens of instance `i`."""
        return self.tokens_NL[i, self.prompt_len_N[i] :][: self.answer_len]

    def prompt(self, i: int) -> Tokens:
        """The prompt tokens of instance `i`, without padding."""
        return self.tokens_NL[i, : self.prompt_len_N[i]]

    def take(self, index: slice | Array) -> "Instances":
        """The instances at `index` (a slice, indices or a boolean mask)."""
        return Instances.from_arrays({name: array[index] for name, array in self.arrays().items()})

    def bare(self) -> "Instances":
        """Tokens and masks only, a fraction of the size: enough to decode by confidence, not for a run's coverage."""
        return Instances(self.tokens_NL, self.prompt_len_N, self.maskable_NA, self.scored_NA)

    def arrays(self) -> dict[str, Array]:
        """Every array under a flat name, in a fixed order; `from_arrays` is the inverse."""
        flat: dict[str, Array] = {name: getattr(self, name) for name in _PLAIN}
        if self.parents_NAE is not None:
            flat["parents_NAE"] = self.parents_NAE
        for group in _GROUPS:
            members: Mapping[str, Array] = getattr(self, group)
            flat.update({f"{group}/{name}": members[name] for name in sorted(members)})
        return flat

    @classmethod
    def from_arrays(cls, flat: Mapping[str, Array]) -> "Instances":
        if missing := [name for name in _PLAIN if name not in flat]:
            raise HardtailError(f"not a set of instances: the array {missing[0]!r} is missing")
        groups: dict[str, dict[str, Array]] = {group: {} for group in _GROUPS}
        for name, array in flat.items():
            group, slash, member = name.partition("/")
            if slash:
                groups[group][member] = array
        plain, parents_NAE = {name: flat[name] for name in _PLAIN}, flat.get("parents_NAE")
        orders, strata, extras = (groups[name] for name in _GROUPS)
        return cls(**plain, orders=orders, parents_NAE=parents_NAE, strata=strata, extras=extras)

    @classmethod
    def concat(cls, parts: Sequence["Instances"]) -> "Instances":
        """The parts one after another; they must come from one task configuration."""
        return cls.from_arrays(concatenated([part.arrays() for part in parts]))


def concatenated(flats: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Arrays of the same names one after another."""
    return {name: np.concatenate([flat[name] for flat in flats]) for name in flats[0]}


_PLAIN = ("tokens_NL", "prompt_len_N", "maskable_NA", "scored_NA")
_GROUPS = ("orders", "strata", "extras")


def refuse_long(instances: Instances) -> None:
    """Raise HardtailError for answers that a trace cannot hold."""
    if instances.answer_len > MOST_CELLS:
        raise HardtailError(f"the answers have {instances.answer_len:,} cells; a trace can hold {MOST_CELLS:,}")


_KINDS = {str: str, type(None): int, bool: bool, int: int, float: int | float}
"""What the fields below accept, by the kind of what they are if nothing is said."""


@dataclass(frozen=True)
class TraceSource:
    """Who decoded a trace, and what and how, as far as its `about` says; an empty word or None is unknown, and what is
    not said of how it was decoded was as usual."""

    model: str = ""
    note: str = ""
    """What a user adds to the model's name."""
    policy: str = ""
    stratum: str = ""
    recipe: str = ""
    seed: int | None = None
    """Of the training."""
    checkpoint: str = ""
    step: int | None = None
    reading: str = ""
    device: str = ""
    commit: str = ""
    commit_rule: str = ONE_A_STEP
    temperature: float = 0.0
    restrict: bool = False
    decode_seed: int = 0
    decode_precision: str = "fp32"

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> "TraceSource":
        """What is not of its kind is unknown, except that anything can be read as a text."""
        known: dict[str, Any] = {}
        for item in fields(cls):
            value = about.get(item.name)
            if isinstance(item.default, str) and value is not None:
                value = str(value)
            if value not in (None, "") and isinstance(value, _KINDS[type(item.default)]):
                known[item.name] = value
        return cls(**known)

    @property
    def weights(self) -> tuple[str, str, int | None, int | None]:
        """What tells models of one name apart, and their name."""
        return self.model, self.checkpoint, self.step, self.seed

    @property
    def words(self) -> list[str]:
        """What a person calls the trace: model, note, policy and stratum, as far as they are known."""
        return [word for word in (self.model, self.note, self.policy, self.stratum) if word]

    @property
    def how(self) -> str:
        """How it was decoded, other than one cell a step, most probable tokens, in fp32; empty if in no way."""
        usual = TraceSource()
        said = {
            "commit_rule": self.commit_rule,
            "temperature": f"temperature {self.temperature:g}",
            "restrict": "restricted",
            "decode_seed": f"decode seed {self.decode_seed}",
            "decode_precision": self.decode_precision,
        }
        return ", ".join(words for name, words in said.items() if getattr(self, name) != getattr(usual, name))


@dataclass(frozen=True)
class Trace:
    """How `N` instances were decoded: one event for every token written, in the order of writing.

    `answer_NA`     the final answer
    `cell_NT`       the answer cell that event t wrote; -1 after an instance's last event
    `step_NT`       the forward pass it came from, counted from 0
    `token_NT`      what was written; `mask_id` where the cell was hidden again
    `prob_NT`       the token's probability, over all tokens that could have been written
    `gold_prob_NT`  the gold token's probability
    `gold_rank_NT`  how many tokens were more probable than the gold one
    `runner_up_NT`  the best-scored hidden cell that this pass did not write; -1 where none was left
    `margin_NT`     by how much the written cell's score exceeded the runner-up's; NaN where there was none
    `passes_N`      the forward passes that each instance took; None in traces from before they were counted
    `notes`         further numbers about each instance, by name: what its policy reports, what a check of it found
    `about`         where it comes from, as JSON: task, policy, model …
    """

    instances: Instances
    mask_id: int
    answer_NA: Tokens
    cell_NT: NDArray[np.int16]
    step_NT: NDArray[np.int16]
    token_NT: Tokens
    prob_NT: NDArray[np.float32]
    gold_prob_NT: NDArray[np.float32]
    gold_rank_NT: NDArray[np.int32]
    runner_up_NT: NDArray[np.int16]
    margin_NT: NDArray[np.float32]
    about: Mapping[str, Any] = field(default_factory=dict)
    passes_N: NDArray[np.int32] | None = None
    notes: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.instances)

    @property
    def happened_NT(self) -> NDArray[np.bool_]:
        """Which events there are."""
        return self.cell_NT >= 0

    @property
    def commit_NT(self) -> NDArray[np.bool_]:
        """Which events wrote an answer token, not the mask."""
        return self.happened_NT & (self.token_NT != self.mask_id)

    @property
    def steps_N(self) -> NDArray[np.int64]:
        """The steps of each instance, up to the last one that wrote something."""
        return np.max(self.step_NT, axis=1, where=self.happened_NT, initial=-1).astype(np.int64) + 1

    @property
    def gold_NT(self) -> Tokens:
        """The gold token of the cell that each event wrote; cell 0's gold token where there is no event."""
        return np.take_along_axis(self.instances.answer_NA, np.maximum(self.cell_NT, 0).astype(np.int64), axis=1)

    @property
    def wrong_NT(self) -> NDArray[np.bool_]:
        """Which commits were wrong when they were made."""
        return self.commit_NT & (self.token_NT != self.gold_NT)

    @property
    def exact_N(self) -> NDArray[np.bool_]:
        """Exact match: every scored cell has its gold token at the end."""
        return ((self.answer_NA == self.instances.answer_NA) | ~self.instances.scored_NA).all(axis=1)

    def take(self, index: slice | Array) -> "Trace":
        """The traces of the instances at `index`."""
        passes_N = None if self.passes_N is None else self.passes_N[index]
        notes = {name: array[index] for name, array in self.notes.items()}
        events = {name: getattr(self, name)[index] for name in _TRACE}
        return replace(self, instances=self.instances.take(index), passes_N=passes_N, notes=notes, **events)

    @property
    def source(self) -> "TraceSource":
        """Who decoded it, and what."""
        return TraceSource.of(self.about)

    def __repr__(self) -> str:
        return f"<Trace: {', '.join([*self.source.words, f'{int(self.exact_N.sum())} of {len(self)} right'])}>"

    @on_files()
    def save(self, path: str | Path) -> None:
        """Write the trace as an .npz and its manifest as a .json next to it; `hardtail.load_trace` reads them."""
        from hardtail.core.trace_files import save_trace

        save_trace(Path(path), self)

    def to_frame(self) -> "pandas.DataFrame":
        """One row for each event; needs pandas."""
        from hardtail.core.frames import pandas_or_error

        row_K, event_K = np.nonzero(self.happened_NT)
        columns = {name.removesuffix("_NT"): getattr(self, name)[row_K, event_K] for name in (*_EVENTS, *_JUDGED)}
        return pandas_or_error().DataFrame({"instance": row_K, **columns})

    @classmethod
    def concat(cls, parts: Sequence["Trace"]) -> "Trace":
        """The parts one after another; they must come from one decode."""
        longest = max(part.cell_NT.shape[1] for part in parts)
        flats = [{name: _lengthened(getattr(part, name), longest, name) for name in _TRACE} for part in parts]
        instances = Instances.concat([part.instances for part in parts])
        counted = [part.passes_N for part in parts if part.passes_N is not None]
        passes_N = np.concatenate(counted) if len(counted) == len(parts) else None
        notes = concatenated([part.notes for part in parts])
        return cls(
            instances, parts[0].mask_id, about=parts[0].about, passes_N=passes_N, notes=notes, **concatenated(flats)
        )

    def arrays(self) -> dict[str, Array]:
        """Every array under a flat name; `from_arrays` is the inverse."""
        held = {f"instances/{name}": array for name, array in self.instances.arrays().items()}
        held |= {f"notes/{name}": array for name, array in self.notes.items()}
        counted = {} if self.passes_N is None else {"passes_N": self.passes_N}
        return {name: getattr(self, name) for name in _TRACE} | counted | held

    @classmethod
    def from_arrays(cls, flat: Mapping[str, Array], mask_id: int, about: Mapping[str, Any]) -> "Trace":
        if missing := [name for name in _TRACE if name not in flat]:
            raise HardtailError(f"not a trace: the array {missing[0]!r} is missing")
        events = {name: flat[name] for name in _TRACE}
        instances, notes = Instances.from_arrays(_within(flat, "instances/")), _within(flat, "notes/")
        return cls(instances, mask_id, about=about, passes_N=flat.get("passes_N"), notes=notes, **events)


def _within(flat: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): array for name, array in flat.items() if name.startswith(prefix)}


def _lengthened(array: Array, events: int, name: str) -> Array:
    """An array of events with this many columns; the new ones hold "no event"."""
    columns = (0, events - array.shape[1]) if name.endswith("_NT") else (0, 0)
    return np.pad(array, ((0, 0), columns), constant_values=NO_EVENT.get(name, 0))


NO_EVENT: Mapping[str, float] = {"cell_NT": -1, "runner_up_NT": -1, "margin_NT": np.nan}
"""What an array of events holds where there is no event, unless it is 0."""
_JUDGED = ("gold_NT", "wrong_NT")
_TRACE = tuple(item.name for item in fields(Trace) if item.name.endswith(("_NA", "_NT")))
_EVENTS = tuple(name for name in _TRACE if name.endswith("_NT"))
