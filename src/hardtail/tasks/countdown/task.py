"""Countdown: combine four numbers to a target; a chain must be planned before its first number can be written.

Layout: `86,28,13,31,96|86+28=114,31-13=18,114-18=96$abc…`, the answer in 40 cells with rainbow padding, then padding.

Shapes: N instances, K = 4 numbers, S = 3 steps, P prompt, L sequence, A answer cells, T targets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.fields import Bounds, Probability
from hardtail.core.files import MOST_TEXT, read_lines
from hardtail.core.seeds import Stream
from hardtail.core.types import Array, Instances, Tokens
from hardtail.core.vocabulary import Vocabulary
from hardtail.tasks.base import Part, Task
from hardtail.tasks.countdown.solver import KINDS, OPERATIONS, draw, solve, write_chains
from hardtail.tasks.countdown.text import NUMBERS, read_chain, read_puzzle, read_row
from hardtail.tasks.parts import Look, Roles, Words
from hardtail.tasks.rainbow import EOS, PAD, RAINBOW, before_end, lay_out, meaning, pad_codes, padded
from hardtail.tasks.strata import Stratum

if TYPE_CHECKING:
    from rich.text import Text

    from hardtail.tasks.countdown.profile import Profile

TARGETS = range(10, 101)
HELD_OUT = (14, 39, 41, 57, 62, 81, 87, 89, 96)
BINS = ("m>=11", "m=4-10", "m=1-3")
SHARES = {"raw": (0.358, 0.171, 0.471), "distinct": (0.347, 0.064, 0.589)}
"""Natural shares of `BINS` among targets that are not held out, from 400,000 puzzles (standard error below 0.001)."""
_CELLS, _LENGTH, _PROMPT_CELLS = 40, 60, 16
_CHARACTERS = f"0123456789{OPERATIONS}=,"
_VOCABULARIES = {
    "|": Vocabulary(f"{_CHARACTERS}|{EOS}{RAINBOW}", pad=PAD),
    "=": Vocabulary(f"{_CHARACTERS}{EOS}{RAINBOW}", pad=PAD),
}


@dataclass(frozen=True)
class Countdown(Task):
    """Four numbers, three steps, one target, stratified by the number of solutions; gold is the first one found."""

    name: ClassVar[str] = "countdown"
    axes: ClassVar[tuple[str, ...]] = ("m", "m_raw", "m_distinct", "heldout", "target")
    order_names: ClassVar[tuple[str, ...]] = ("step_sequential",)
    words: ClassVar[Words] = Words(
        "puzzles",
        "character",
        {"step_sequential": "equation by equation"},
        "The last number is the target. Reach it from the numbers before it with +, -, * and /, using each once. Write "
        "the steps, separated by commas, such as 58/2=29,67-23=44,29+44=73.",
        fails="misses the gold chain on",
    )
    reveals: ClassVar[bool] = True
    answer_characters = _CHARACTERS + EOS + RAINBOW
    seq_len, answer_len = _LENGTH, _CELLS
    profile_renamed: ClassVar[Mapping[str, str]] = {"first_in_position": "lowest_index"}
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "release": {},
        "paper": {"separator": "=", "multiplicity": "distinct", "train_raw": 850_000},
    }

    separator: Literal["|", "="] = "|"
    """What separates prompt and answer; `=` needs no token of its own."""
    multiplicity: Literal["raw", "distinct"] = "raw"
    """What the axis `m` counts. `raw`: every path of the search that hits; `distinct`: different sets of equations."""
    keep_low: Probability = 0.10
    """Share of the training puzzles with m <= 3 that sub-sampling keeps."""
    train_raw: Annotated[int, Bounds(ge=10)] = 500_000
    """Training puzzles before sub-sampling. The paper gives about 400,000 after it: 850,000 before, if `distinct`."""
    held_out: tuple[int, ...] = HELD_OUT
    """Targets that occur in `test` only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "held_out", tuple(self.held_out))  # a list, where it was read from JSON
        if strangers := [target for target in self.held_out if target not in TARGETS]:
            raise HardtailError(f"countdown: held_out has {strangers[0]}; targets are {TARGETS[0]} to {TARGETS[-1]}")

    @property
    def vocabulary(self) -> Vocabulary:
        return _VOCABULARIES[self.separator]

    def strata(self) -> list[str]:
        if not self.held_out:
            return ["natural", *BINS]
        return ["natural", "heldout=1", *(f"heldout=1,{name}" for name in BINS)]

    def gallery(self) -> tuple[str, str]:
        return BINS[0], BINS[-1]

    def problems_of(self, stratum: str) -> str:
        solutions = dict(zip(BINS, ("eleven or more", "four to ten", "one to three"), strict=True))
        found = solutions.get(stratum.removeprefix("heldout=1,"))
        return f"puzzles with {found} solutions" if found else ""

    def splits(self) -> Mapping[str, Sequence[Part]]:
        bins = zip(BINS, SHARES[self.multiplicity], (1, 1, self.keep_low), strict=True)
        counts = {name: round(self.train_raw * share * keep) for name, share, keep in bins}
        return {
            "train": [Part(f"heldout=0,{name}", n) for name, n in counts.items() if n],
            "test": [Part("heldout=1", 1000)],
        }

    # -- generating and laying out ------------------------------------------------------------------------------

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        target_T = np.array(TARGETS)
        fits_T = stratum.on("target").holds(target_T) & stratum.on("heldout").holds(self._is_held_out(target_T))
        if not fits_T.any():
            raise HardtailError(
                f"countdown: no target fits {stratum}; targets are {TARGETS[0]} to {TARGETS[-1]}, "
                f"heldout=1 are {', '.join(map(str, self.held_out)) or 'none'}, heldout=0 the others"
            )
        return self._instances(*draw(key_N, target_T[fits_T], NUMBERS))

    def _is_held_out(self, target_N: Array) -> NDArray[np.int8]:
        return np.isin(target_N, self.held_out).astype(np.int8)

    def _instances(
        self, number_NK: Array, target_N: Array, gold_NS4: Array, m_N: Array, distinct_N: Array
    ) -> Instances:
        n = len(number_NK)
        puzzles = np.column_stack([number_NK, target_N]).tolist()
        prompts = [",".join(map(str, row)) + self.separator for row in puzzles]
        prompt_len_N = np.array([len(prompt) for prompt in prompts], dtype=np.int32)
        prompt_NP = np.array(prompts, dtype=f"S{_PROMPT_CELLS}").view(np.uint8).reshape(n, _PROMPT_CELLS)
        code_NA, length_N, kind_NA, step_NA, parents_NAE = write_chains(number_NK, gold_NS4, _CELLS)
        everywhere_NA = np.ones((n, _CELLS), dtype=np.bool_)
        return Instances(
            tokens_NL=lay_out(self.vocabulary, _LENGTH, prompt_NP, prompt_len_N, pad_codes(code_NA, length_N)),
            prompt_len_N=prompt_len_N,
            maskable_NA=everywhere_NA,
            scored_NA=everywhere_NA,
            orders={"step_sequential": np.tile(np.arange(_CELLS, dtype=np.int8), (n, 1))},
            parents_NAE=parents_NAE,
            strata={
                "m": (m_N if self.multiplicity == "raw" else distinct_N).astype(np.int32),
                "m_raw": m_N.astype(np.int32),
                "m_distinct": distinct_N.astype(np.int32),
                "heldout": self._is_held_out(target_N),
                "target": target_N.astype(np.int16),
            },
            extras={"kind_NA": kind_NA, "step_NA": step_NA},
        )

    # -- reading ------------------------------------------------------------------------------------------------

    def parse(self, prompts: Sequence[str]) -> Instances:
        number_NK, target_N = _split([read_puzzle(prompt) for prompt in prompts])
        gold_NS4, m_N, distinct_N = solve(number_NK, target_N)
        if not m_N.all():
            first = int(np.argmin(m_N))
            raise HardtailError(
                f"countdown: {quoted(prompts[first])} has no solution: no three steps with +, -, * and / that use "
                f"each of the four numbers once end in {target_N[first]}"
            )
        return self._instances(number_NK, target_N, gold_NS4, m_N, distinct_N)

    def prompts(self, lines: Sequence[str]) -> list[str]:
        """One puzzle per line, as it is or as a row of a CD4 file."""
        return [read_row(line, number)[0] for number, line in enumerate(lines, start=1)]

    def load(self, path: Path, limit: int = MOST_TEXT) -> Instances:
        """Puzzles from a file: CD4 rows `{"input": "86,28,13,31,96", "output": "86+28=114,…"}`, or one prompt per line.

        A row's `output` becomes the gold answer; without one, gold is the first chain the search finds.
        """
        rows = [read_row(line, number) for number, line in enumerate(read_lines(path, limit), start=1)]
        instances = self.parse_numbered([prompt for prompt, _ in rows], range(1, len(rows) + 1))
        differing = {i: chain for i, (_, chain) in enumerate(rows) if chain not in ("", self.answer_text(instances, i))}
        return self._with_chains(instances, differing) if differing else instances

    def _with_chains(self, instances: Instances, chains: Mapping[int, str]) -> Instances:
        """The same instances with other gold answers at the given places."""
        rows, steps = [], []
        for i, chain in chains.items():
            numbers, target = self._numbers(instances, i)
            fault: str | None = f"it has {len(chain)} characters, more than the answer's {_CELLS} cells"
            if len(chain) <= _CELLS:
                chain_steps, fault = read_chain(chain, numbers, target)
            if fault:
                raise HardtailError(f"problem {i + 1}: countdown: {quoted(chain)} is not a valid chain: {fault}")
            rows.append([*numbers, target])
            steps.append(chain_steps)
        index_D = np.array(list(chains), dtype=np.int64)
        m_D, distinct_D = (instances.strata[axis][index_D].astype(np.int64) for axis in ("m_raw", "m_distinct"))
        changed = self._instances(*_split(rows), np.array(steps, dtype=np.int64), m_D, distinct_D)
        merged = instances.arrays()
        for name, array in changed.arrays().items():
            merged[name][index_D] = array
        return Instances.from_arrays(merged)

    def curate(self, instances: Instances, split: str, rng: Stream) -> Instances:
        """`train` keeps puzzles with m <= 3 with probability `keep_low` and all others, but no held-out target."""
        if split != "train":
            return super().curate(instances, split, rng)
        unit_N = (rng.keys(len(instances)) >> np.uint64(11)) * 2.0**-53
        kept_N = (instances.strata["m"] > 3) | (unit_N < self.keep_low)
        return instances.take(kept_N & (instances.strata["heldout"] == 0))

    def answer_text(self, instances: Instances, i: int, answer_A: Array | None = None) -> str:
        return meaning(super().answer_text(instances, i, answer_A))

    def read_answer(self, instances: Instances, i: int, text: str) -> Tokens:
        chain = meaning("".join(text.split()))
        if len(chain) > _CELLS:
            raise HardtailError(f"countdown: the chain has {len(chain)} characters; the answer has room for {_CELLS}")
        if stranger := next((character for character in chain if character not in _CHARACTERS), None):
            raise HardtailError(
                f"countdown: {stranger!r} in {quoted(chain)} does not belong in a chain; the operations are "
                "+ - * /, as in '86+28=114,31-13=18,114-18=96'"
            )
        return self.vocabulary.encode(padded(chain, _CELLS))

    # -- judging ------------------------------------------------------------------------------------------------

    def meaningful(self, instances: Instances) -> NDArray[np.bool_]:
        return before_end(self.vocabulary, instances.answer_NA)

    def check(self, instances: Instances, answer_NA: Array) -> NDArray[np.bool_]:
        """Which answers are *valid* chains, gold or not: each number used once, arithmetic right, target reached."""
        valid_N = np.asarray((answer_NA == instances.answer_NA).all(axis=1))
        for i in np.flatnonzero(~valid_N):
            valid_N[i] = self.fault(instances, int(i), answer_NA[i]) is None
        return valid_N

    def fault(self, instances: Instances, i: int, answer_A: Array) -> str | None:
        return read_chain(self.answer_text(instances, i, answer_A), *self._numbers(instances, i))[1]

    def _numbers(self, instances: Instances, i: int) -> tuple[list[int], int]:
        *numbers, target = map(int, self.vocabulary.decode(instances.prompt(i)[:-1]).split(","))
        return numbers, target

    # -- for people ---------------------------------------------------------------------------------------------

    def drawing(self, one: Instances, look: Look) -> "Text":
        """The numbers and the target, then one equation per line."""
        from rich.text import Text

        *numbers, target = self.render(one)[0].split(",")
        text = Text(f"{' '.join(numbers)}  →  {target}\n  ")
        ended = False
        for cell, gold in enumerate(self.vocabulary.decode(one.answer(0))):
            sign, style = look(cell)
            if not sign:
                continue
            mark = sign if sign in self.vocabulary.characters else gold  # a hidden cell breaks the line as gold does
            if mark == EOS and not ended:
                ended = True
                text.append("\n  end  ", "dim")
            text.append(sign, style or "bold")
            if mark == "," and not ended:
                text.append("\n  ")
        return text

    def roles(self, instances: Instances) -> Roles:
        return Roles.of_extra(instances, "kind_NA", KINDS)

    def extra_limits(self) -> Mapping[str, int]:
        return {"kind_NA": len(KINDS), "step_NA": NUMBERS}

    @classmethod
    def profile_type(cls) -> "type[Profile]":
        from hardtail.tasks.countdown.profile import Profile

        return Profile


def _split(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`number_NK` and `target_N` of puzzles."""
    puzzle_N5 = np.array(rows, dtype=np.int64).reshape(-1, NUMBERS + 1)
    return puzzle_N5[:, :NUMBERS].copy(), puzzle_N5[:, NUMBERS].copy()
