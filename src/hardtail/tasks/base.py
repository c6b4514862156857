"""What a task is: the contract that every registered task keeps (`hardtail.testing` checks it).

A task is a frozen dataclass; its fields are its configuration and its presets are named sets of fields. It must define
the abstract methods. Everything else has a default that works for any task.

Shapes: N instances, L sequence, A answer cells, E parents.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.fields import check_fields
from hardtail.core.files import MOST_TEXT, read_lines
from hardtail.core.seeds import Stream, words
from hardtail.core.types import Array, Instances, Tokens, Trace
from hardtail.core.vocabulary import Vocabulary
from hardtail.tasks.parts import WRONG, Look, Pen, Profile, Roles, Scene, Showcase, Words
from hardtail.tasks.strata import Stratum
from hardtail.traces.commits import refuse_misfit

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.text import Text

CUSTOM = "custom"
"""What a configuration is called that is no preset."""


class Part(NamedTuple):
    """`n` instances of one stratum; a split is a list of parts."""

    stratum: str
    n: int


@dataclass(frozen=True)
class Task(ABC):
    """A reasoning task whose answers, difficulty and logical order are computed, not assumed."""

    name: ClassVar[str]
    axes: ClassVar[tuple[str, ...]]
    """The axes of `Instances.strata`, the main one first."""
    order_names: ClassVar[tuple[str, ...]]
    """The keys of `Instances.orders`, the study's main order first."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}}
    """Named sets of fields; the first is meant where none is named."""
    words: ClassVar[Words] = Words()
    labels: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The labels of the axes that are not numbers."""
    reveals: ClassVar[bool] = False
    """Whether the study also measures the task with half of the answer shown."""
    max_attempts: ClassVar[int] = 20_000
    """How often an instance is proposed before its stratum counts as out of reach."""
    edition: ClassVar[int] = 1
    """Goes up when the same stream begins to give other instances, so that instances kept from before are not read."""
    patience: ClassVar[float] = 20.0
    """Seconds without a hit after which a stratum also counts as out of reach."""
    min_attempts: ClassVar[int] = 50
    """Attempts that must have been made before `patience` applies: a busy machine makes few."""
    scene_extras: ClassVar[tuple[str, ...]] = ()
    """The keys of `Instances.extras` that the page's scene reads."""
    profile_renamed: ClassVar[Mapping[str, str]] = {}
    """Keys of recorded profiles, at any depth, that have other names today."""
    short_headings: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Shorter column headings of the profile's tables, by a part of their titles, so that they fit a screen."""

    # -- configuration ------------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        check_fields(self, self.name)

    @classmethod
    def preset(cls, preset: str | None = None, **overrides: object) -> Self:
        """The task in a named reading, its first one by default, with some fields changed."""
        preset = preset or next(iter(cls.presets))
        if preset not in cls.presets:
            raise HardtailError(f"{cls.name}: there is no preset {preset!r}; give one of {', '.join(cls.presets)}")
        known = [item.name for item in fields(cls)]
        if stranger := next((name for name in overrides if name not in known), None):
            raise HardtailError(f"{cls.name}: there is no field {stranger!r}; the fields are {', '.join(known)}")
        return cls(**{**cls.presets[preset], **overrides})

    def preset_name(self) -> str:
        """The name of the preset with this configuration, or `CUSTOM`."""
        return next((name for name in self.presets if self.preset(name) == self), CUSTOM)

    def config(self) -> dict[str, Any]:
        return asdict(self)

    def fitted(self, prompt: str) -> "Task":
        """This task in the size of `prompt`, for tasks that come in sizes."""
        return self

    # -- shapes -------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary: ...

    @property
    @abstractmethod
    def seq_len(self) -> int:
        """L: prompt, answer and padding."""

    @property
    @abstractmethod
    def answer_len(self) -> int:
        """A: answer cells, hidden or not."""

    @property
    def most_hidden(self) -> int:
        """The most cells of an answer that are hidden, which is how many steps a decode takes at one cell a step."""
        return self.answer_len

    @property
    def answer_characters(self) -> Sequence[str]:
        """The characters or words that hidden cells can hold; others occur in prompts only."""
        return self.vocabulary.characters

    @property
    def answer_tokens(self) -> list[int]:
        return [self.vocabulary.id(character) for character in self.answer_characters]

    @abstractmethod
    def strata(self) -> list[str]:
        """The study's strata, easiest first; `sample` also accepts any other condition on the task's axes."""

    def gallery(self) -> tuple[str, str]:
        """An easy stratum and a hard one, to show side by side."""
        return self.strata()[0], self.strata()[-1]

    def showcase(self) -> Showcase:
        """What a first look shows: an ordinary and a hard stratum, and the logical order."""
        return Showcase(*self.gallery(), next(iter(self.order_names), ""))

    def problems_of(self, stratum: str) -> str:
        """What the instances of a stratum are called, as in "mazes with a corridor of 60 or more cells".

        Empty if there are no better words than the condition itself.
        """
        start, words = self.words.stratum
        number = stratum.removeprefix(start)
        return words.format(number) if number != stratum and number.isdecimal() else ""

    @abstractmethod
    def splits(self) -> Mapping[str, Sequence[Part]]:
        """The study's data sets: `train`, `test` and others that it measures on."""

    # -- instances ----------------------------------------------------------------------------------------------

    @abstractmethod
    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        """One instance per key, as a function of that key alone.

        It should lie in `stratum` but need not: `sample` proposes again with fresh keys until it does.
        """

    @overload
    def sample(self, n: int, rng: Stream, stratum: str = "natural") -> Instances: ...

    @overload
    def sample(self, n: int, stratum: str, /, *, seed: int = 0) -> Instances: ...

    @overload
    def sample(self, n: int, *, stratum: str = "natural", seed: int = 0) -> Instances: ...

    def sample(self, n: int, rng: Stream | str | None = None, stratum: str = "natural", *, seed: int = 0) -> Instances:
        """`n` annotated instances of a stratum, from the next `n` keys of `rng`.

        Without a stream, `sample(n, stratum, seed=0)` draws those that `hardtail sample` shows.
        """
        if n < 0:
            raise HardtailError(f"{self.name}: {n} instances cannot be drawn; give 0 or more")
        wanted = self.stratum(rng if isinstance(rng, str) else stratum)
        if not isinstance(rng, Stream):
            rng = Stream(f"{self.name}/sample/{wanted}", seed)
        key_N = rng.keys(n)
        instances = self.propose(key_N, wanted)
        missing = np.flatnonzero(~wanted.holds(instances.strata))
        merged = instances.arrays()
        last_hit, attempts = time.monotonic(), 1
        while missing.size:
            impatient = attempts >= self.min_attempts and time.monotonic() - last_hit >= self.patience
            if attempts >= self.max_attempts or impatient:
                raise HardtailError(
                    f"{self.name}: no instance with {wanted} was found in {attempts:,} attempts; "
                    f"the study's strata are {', '.join(self.strata())}"
                )
            attempts += 1
            key_N[missing] = words(key_N[missing], 1)[:, 0]
            retry = self.propose(key_N[missing], wanted)
            hit = wanted.holds(retry.strata)
            for name, array in retry.arrays().items():
                merged[name] = merged[name].astype(np.result_type(merged[name], array), copy=False)  # a longer label
                merged[name][missing[hit]] = array[hit]
            missing = missing[~hit]
            if hit.any():
                last_hit = time.monotonic()
        return Instances.from_arrays(merged)

    def stratum(self, text: str) -> Stratum:
        return Stratum.parse(text, {axis: self.labels.get(axis, ()) for axis in self.axes}, self.name)

    @abstractmethod
    def parse(self, prompts: Sequence[str]) -> Instances:
        """The given problems, solved and annotated; raises `HardtailError` for a text that is not a problem."""

    def parse_numbered(self, prompts: Sequence[str], numbers: Sequence[int]) -> Instances:
        """What `parse` returns; its error begins with the number of the problem that is at fault, if that has one."""
        try:
            return self.parse(prompts)
        except HardtailError:
            for number, prompt in zip(numbers, prompts, strict=False):
                try:
                    self.parse([prompt])
                except HardtailError as error:
                    raise HardtailError(f"problem {number}: {error}") from None
            raise

    def render(self, instances: Instances) -> list[str]:
        """Each problem as `parse` reads it."""
        return [self.vocabulary.decode(instances.prompt(i)).rstrip("= |") for i in range(len(instances))]

    def answer_text(self, instances: Instances, i: int, answer_A: Array | None = None) -> str:
        """An answer (the gold one by default) as a person writes it, without padding."""
        return self.vocabulary.decode(instances.answer(i) if answer_A is None else answer_A)

    def read_answer(self, instances: Instances, i: int, text: str) -> Tokens:
        """An answer to instance `i` that a person wrote, as tokens; the inverse of `answer_text`."""
        vocabulary = self.vocabulary
        text = vocabulary.separator.join(text.split())
        if (given := len(vocabulary.split(text))) != self.answer_len:
            what = "words" if vocabulary.separator else "characters"
            raise HardtailError(f"{self.name}: the answer has {given} {what}; give {self.answer_len}")
        return vocabulary.encode(text)

    def kin(self, instances: Instances) -> list[bytes]:
        """What each problem shares with its close relatives; those with the same value are all trained or all measured
        on. By default a problem has no relatives but itself. Relatives must not be in strata that only one side has.
        """
        return [instances.prompt(i).tobytes() for i in range(len(instances))]

    # -- judgement ----------------------------------------------------------------------------------------------

    def check(self, instances: Instances, answer_NA: Array) -> NDArray[np.bool_]:
        """Which answers solve their problem; where only one does, this is exact match on the scored cells."""
        return ((answer_NA == instances.answer_NA) | ~instances.scored_NA).all(axis=1)

    def fault(self, instances: Instances, i: int, answer_A: Array) -> str | None:
        """A sentence about what is wrong with an answer; None exactly where `check` accepts it."""
        wrong_A = (answer_A != instances.answer(i)) & instances.scored_NA[i]
        if not wrong_A.any():
            return None
        cell = int(np.argmax(wrong_A))
        given, gold = self.signs_at(cell, answer_A, instances.answer(i))
        return f"cell {cell + 1} is {given!r}; it must be {gold!r}"

    def signs_at(self, cell: int, *answers: Array) -> tuple[str, ...]:
        """What each of the answers has in a cell."""
        return tuple(self.vocabulary.decode(answer_A[cell : cell + 1]) for answer_A in answers)

    def meaningful(self, instances: Instances) -> NDArray[np.bool_]:
        """Which answer cells are not padding."""
        return np.ones(instances.maskable_NA.shape, dtype=np.bool_)

    def ready(self, instances: Instances, revealed_NA: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which cells have all their prerequisites revealed; cells that are never hidden count as revealed."""
        if instances.parents_NAE is None:
            raise HardtailError(f"{self.name}: these instances have no parents; build them without `--bare`")
        known_NA = revealed_NA | ~instances.maskable_NA
        known_NA = np.pad(known_NA, ((0, 0), (0, 1)), constant_values=True)  # index -1 is "no parent"
        n, a, e = instances.parents_NAE.shape
        parent_known = np.take_along_axis(known_NA, instances.parents_NAE.reshape(n, a * e).astype(np.int64), axis=1)
        return np.asarray(parent_known.reshape(n, a, e).all(axis=2))

    def extra_limits(self) -> Mapping[str, int]:
        """The extras that hold indices or counts: each value is -1 or more and below this limit."""
        return {}

    # -- files that others made ---------------------------------------------------------------------------------

    def prompts(self, lines: Sequence[str]) -> list[str]:
        """The problems in the lines of a text: one per line, unless the task has formats of its own."""
        return list(lines)

    def fetch(self, source: str) -> Path:
        """The file that `source` names; some tasks download it first."""
        return Path(source)

    def load(self, path: Path, limit: int = MOST_TEXT) -> Instances:
        """Problems from a file that others made; some tasks also read answers or ratings from it.

        Its text may take `limit` bytes of memory.
        """
        prompts = self.prompts(read_lines(path, limit))
        return self.parse_numbered(prompts, range(1, len(prompts) + 1))

    def curate(self, instances: Instances, split: str, rng: Stream) -> Instances:
        """The problems of a loaded file that the study uses for a split: up to `n` of every part, drawn at random."""
        chosen = []
        for part in self.splits()[split]:
            inside = np.flatnonzero(self.stratum(part.stratum).holds(instances.strata))
            chosen.append(shuffled(inside, rng.child(part.stratum))[: part.n])
        return instances.take(np.concatenate(chosen))

    # -- for people ---------------------------------------------------------------------------------------------

    def cell_name(self, cell: int) -> str:
        return f"c{cell + 1}"

    def drawing(self, one: Instances, look: Look) -> "Text":
        """A single instance as a person would draw it on a terminal, with each answer cell as `look` returns it."""
        from rich.text import Text

        text = Text(f"{self.render(one)[0]}  →  ")
        for cell in range(self.answer_len):
            text.append(self.vocabulary.separator if cell else "").append(*look(cell))
        return text

    def picture(self, instances: Instances, i: int, answer_A: Array | None = None) -> "Text":
        """The drawing of a problem and an answer (gold by default); wrong cells are red unless the answer is valid."""
        one = instances.take(slice(i, i + 1))
        gold_A = one.answer(0)
        shown_A = gold_A if answer_A is None else answer_A
        valid = bool(self.check(one, shown_A[None])[0])
        written = len(self.vocabulary.split(self.answer_text(one, 0, shown_A)))
        written_A = self.meaningful(one)[0] | (np.arange(self.answer_len) < written)
        signs = self.vocabulary.signs_of(shown_A)

        def look(cell: int) -> tuple[str, str]:
            right = valid or shown_A[cell] == gold_A[cell]
            return (signs[cell], "" if right else WRONG) if written_A[cell] else ("", "")

        return self.drawing(one, look)

    def roles(self, instances: Instances) -> Roles:
        return Roles.none(instances)

    @classmethod
    def scene(cls) -> Scene | None:
        """The task's drawing on the page: `scene.js` and `scene.css` next to its module, if they exist."""
        return Scene.beside(cls)

    def figures(self, trace: Trace, pen: Pen) -> "Mapping[str, Figure]":
        """Figures of a trace that has failures, by name; matplotlib is already set up."""
        return {}

    # -- diagnosis ----------------------------------------------------------------------------------------------

    @classmethod
    def profile_type(cls) -> type[Profile] | None:
        """A frozen dataclass that describes the wrong commits of a trace in terms of this task. Its classmethod
        `of(task, trace)` makes it; its fields are plain values, mappings and such dataclasses. A method
        `in_words()` may return the sentence that a verdict says about it."""
        return None

    def profile(self, trace: Trace) -> Profile | None:
        """The profile of a trace; None for a task without one."""
        refuse_misfit(self, trace)
        kind = self.profile_type()
        return None if kind is None else kind.of(self, trace)


def shuffled(index_K: NDArray[np.intp], rng: Stream) -> NDArray[np.intp]:
    return index_K[np.argsort(rng.keys(index_K.size), kind="stable")]


def index_dtype(cells: int) -> type[np.signedinteger[Any]]:
    """The smallest signed type that holds an answer cell's index or rank, and -1."""
    return np.int8 if cells <= 127 else np.int16
