"""Long addition: the carry must be known before the digit above a chain of nines can be.

Layout: `a+b=c`, most significant digit first, operands padded to `digits`, the sum to `digits + 1`.

Shapes: N instances, D digits, A = D + 1 answer cells, W random words. Arrays with D start with the lowest digit.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.fields import Bounds
from hardtail.core.seeds import below, words
from hardtail.core.types import Array, Instances, Tokens, Trace
from hardtail.core.vocabulary import Vocabulary
from hardtail.tasks.addition.solver import ROLES, Digits, Sum, add
from hardtail.tasks.base import Part, Task, index_dtype
from hardtail.tasks.parts import Look, Pen, Roles, Words
from hardtail.tasks.strata import Stratum

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.text import Text

    from hardtail.tasks.addition.profile import Profile

SWEEP = (2, 3, 4, 6, 8, 12, 16, 20, 24, 28)
DIAGNOSIS = (4, 8, 12, 16, 20, 24, 28, 30, 32)
MAX_DIGITS = 64
SPACED = 36
"""The most answer cells that a drawing writes with spaces between them."""
_PROMPT = re.compile(r"([0-9]+)\s*\+\s*([0-9]+)")


@dataclass(frozen=True)
class Addition(Task):
    """`digits`-digit addition, stratified by the longest carry chain (run of positions whose digits sum to 9).

    The extra `chain_msb_N` is the answer cell directly above the longest chain, the one that has to wait for all of it.
    It is -1 without a chain, and with `sum="modulo"` also where that cell is the carry-out, which is then always 0.
    """

    name: ClassVar[str] = "addition"
    axes: ClassVar[tuple[str, ...]] = ("chain",)
    order_names: ClassVar[tuple[str, ...]] = ("lsb",)
    words: ClassVar[Words] = Words(
        "sums",
        "digit",
        {"lsb": "lowest digit first"},
        "Add the two numbers.",
        ("chain>=", "sums with a carry chain of {} or more digits"),
    )
    vocabulary = Vocabulary("0123456789+=")
    answer_characters = "0123456789"
    scene_extras: ClassVar[tuple[str, ...]] = ("chain_msb_N", "carry_in_NA")
    profile_renamed: ClassVar[Mapping[str, str]] = {"top": "lowest_index", "first": "first_in_time"}
    short_headings: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "by chain": {
            "instances": "n",
            "failures": "failed",
            "at chain msb": "at msb",
            "plus one at g": "+1 at g",
            "minus one at k": "-1 at k",
            "inside chain": "inside",
            "premature": "unready",
            "confidence mean": "prob",
            "chain masked median": "masked",
            "step median": "step",
        },
        "examples": {"instance": "no.", "at chain msb": "at msb", "difference": "diff", "gold rank": "rank"},
    }
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "release": {},
        "paper": {"operands": "any", "sum": "modulo", "planting": "minimum"},
        "paper-carry": {"operands": "any", "planting": "minimum"},  # the text elsewhere: 33 digits with the carry-out
    }

    digits: Annotated[int, Bounds(ge=1, le=MAX_DIGITS)] = 32
    operands: Literal["full", "any"] = "full"
    """`full`: uniform on 10^(digits-1) … 10^digits - 1; `any`: uniform on 0 … 10^digits - 1."""
    sum: Literal["full", "modulo"] = "full"
    """`full`: the true sum; `modulo`: the sum modulo 10^digits, so that the carry-out cell is always 0."""
    planting: Literal["isolated", "minimum"] = "isolated"
    """`chain>=k` plants a chain of k at a uniform place, `chain=a-b` one of a uniform length in the range; `isolated`:
    no other position propagates, except now and then the top digit, where a leading zero was replaced; `minimum`: the
    other positions are free, so that k is a lower bound."""

    @property
    def seq_len(self) -> int:
        return 3 * self.digits + 3

    @property
    def answer_len(self) -> int:
        return self.digits + 1

    def strata(self) -> list[str]:
        return ["natural", *(f"chain>={k}" for k in SWEEP if k <= self.digits)]

    def gallery(self) -> tuple[str, str]:
        """The longest chain of the study that leaves room for a digit below it: no carry enters a longer one, whose
        digits are all 9."""
        carried = [k for k in SWEEP if k < self.digits]
        return "natural", f"chain>={carried[-1]}" if carried else self.strata()[-1]

    def splits(self) -> Mapping[str, Sequence[Part]]:
        splits = {
            "train": [Part("natural", 20_000)],
            "test": [Part("natural", 10_000)],
            "sweep": [Part(f"chain>={k}", 500) for k in SWEEP if k <= self.digits],
            "diagnosis": [Part(f"chain>={k}", 300) for k in DIAGNOSIS if k <= self.digits],
        }
        return {split: parts for split, parts in splits.items() if parts}

    # -- generating ---------------------------------------------------------------------------------------------

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        d = self.digits
        word_NW = words(key_N, 2 * d + 4)
        a_ND = below(word_NW[:, :d], 10).astype(np.int8)
        b_ND = below(word_NW[:, d : 2 * d], 10).astype(np.int8)
        top_N2 = word_NW[:, 2 * d : 2 * d + 2]
        if stratum.on("chain").low > 0:
            self._plant(a_ND, b_ND, word_NW, self._lengths(word_NW[:, 2 * d + 3 :], stratum))
        elif self.operands == "full":  # a range with 0 in it is drawn from natural sums
            a_ND[:, -1] = 1 + below(top_N2[:, 0], 9)
            b_ND[:, -1] = 1 + below(top_N2[:, 1], 9)
        return self._instances(a_ND, b_ND)

    def _lengths(self, word_N1: NDArray[np.uint64], stratum: Stratum) -> NDArray[np.int64]:
        """The chain to plant in each sum: the shortest one of an open range, a uniform one of a closed range."""
        wanted = stratum.on("chain")
        low = int(np.ceil(wanted.low))
        high = int(min(np.floor(wanted.high), self.digits)) if wanted.high < np.inf else low
        if low > self.digits:
            raise HardtailError(
                f"addition: {stratum} does not fit in {self.digits} digits; give at most chain>={self.digits}"
            )
        if low > high:
            raise HardtailError(f"addition: no chain meets {stratum}; its length is a whole number")
        return low + below(word_N1, high - low + 1).astype(np.int64)

    def _plant(self, a_ND: Digits, b_ND: Digits, word_NW: NDArray[np.uint64], length_N1: NDArray[np.int64]) -> None:
        """Plant a chain of each given length at a uniformly random position, in place (docs/study.md §2)."""
        d = self.digits
        top_N3 = word_NW[:, 2 * d : 2 * d + 3]
        start_N1 = below(top_N3[:, 2:], (d - length_N1 + 1).astype(np.uint64))
        position_D = np.arange(d)
        in_chain_ND = (position_D >= start_N1) & (position_D < start_N1 + length_N1)
        if self.planting == "isolated":  # 9 - a plus 1 … 9: every digit but the one that would propagate
            b_ND[:] = (10 - a_ND + below(word_NW[:, d : 2 * d], 9)) % 10
        np.copyto(b_ND, 9 - a_ND, where=in_chain_ND)
        if self.operands == "any":
            return
        to_top_N = in_chain_ND[:, -1]
        fresh_N2 = 1 + below(top_N3[:, :2], 9)
        for column, digit_ND in enumerate((a_ND, b_ND)):
            zero_N = digit_ND[:, -1] == 0
            digit_ND[zero_N, -1] = fresh_N2[zero_N, column]
        a_ND[to_top_N, -1] = 1 + below(top_N3[to_top_N, 0], 4)
        b_ND[to_top_N, -1] = 9 - a_ND[to_top_N, -1]

    # -- laying out ---------------------------------------------------------------------------------------------

    def _instances(self, a_ND: Digits, b_ND: Digits) -> Instances:
        n, d = a_ND.shape
        result = add(a_ND, b_ND)
        digit_NS = result.digit_NS
        kind = index_dtype(self.answer_len)
        # A cell waits for the digit below it where that digit propagates. The lowest digit waits for nothing.
        waits_NA = np.pad((a_ND + b_ND == 9)[:, ::-1], ((0, 0), (0, 1)))
        chain_msb_N = np.where(result.chain_top_N >= 0, d - (result.chain_top_N + 1), -1).astype(kind)
        if self.sum == "modulo":
            digit_NS[:, d], waits_NA[:, 0] = 0, False
            chain_msb_N[chain_msb_N == 0] = -1
        plus_N1, equals_N1 = (np.full((n, 1), self.vocabulary.id(sign), dtype=np.int8) for sign in "+=")
        everywhere_NA = np.ones((n, d + 1), dtype=np.bool_)
        return Instances(
            tokens_NL=np.hstack([a_ND[:, ::-1], plus_N1, b_ND[:, ::-1], equals_N1, digit_NS[:, ::-1]]).view(np.uint8),
            prompt_len_N=np.full(n, 2 * d + 2, dtype=np.int32),
            maskable_NA=everywhere_NA,
            scored_NA=everywhere_NA,
            orders={"lsb": np.tile(np.arange(d, -1, -1, dtype=kind), (n, 1))},
            parents_NAE=np.where(waits_NA, np.arange(1, d + 2, dtype=kind), kind(-1))[:, :, None],
            strata={"chain": result.chain_N},
            extras={
                "role_NA": result.role_NS[:, ::-1],
                "carry_in_NA": result.carry_in_NS[:, ::-1],
                "chain_msb_N": chain_msb_N,
            },
        )

    # -- reading and judging ------------------------------------------------------------------------------------

    def fitted(self, prompt: str) -> "Addition":
        match = _read(prompt)
        if match is None or self.sum == "modulo":  # another width would be another modulus
            return self
        return replace(self, digits=min(max(map(len, match.groups())), MAX_DIGITS))

    def parse(self, prompts: Sequence[str]) -> Instances:
        rows = [self._operands(prompt) for prompt in prompts]
        ab_N2D = np.array(rows, dtype=np.int8).reshape(len(rows), 2, self.digits)
        return self._instances(ab_N2D[:, 0], ab_N2D[:, 1])

    def _operands(self, prompt: str) -> list[list[int]]:
        match = _read(prompt)
        if match is None:
            raise HardtailError(f"addition: {quoted(prompt)} is not a sum; write two whole numbers, e.g. '47+38'")
        if (width := max(map(len, match.groups()))) > self.digits:
            raise HardtailError(
                f"addition: {quoted(prompt)} has a number of {width} digits; this task accepts at most {self.digits}"
                + (f" (digits={width} accepts more)" if width <= MAX_DIGITS else "")
            )
        return [[int(digit) for digit in reversed(number.zfill(self.digits))] for number in match.groups()]

    def read_answer(self, instances: Instances, i: int, text: str) -> Tokens:
        text = "".join(text.split())
        if not (text.isascii() and text.isdigit()) or len(text) > self.answer_len:
            raise HardtailError(f"addition: {quoted(text)} is not a sum; write at most {self.answer_len} digits")
        return self.vocabulary.encode(text.zfill(self.answer_len))

    def fault(self, instances: Instances, i: int, answer_A: Array) -> str | None:
        wrong = np.flatnonzero(answer_A != instances.answer(i))
        if not wrong.size:
            return None
        cell = int(wrong[-1])
        place = self.digits - cell
        working = self.working(instances, i)
        role, carry = ROLES[working.role_NS[0, place]], int(working.carry_in_NS[0, place])
        given, gold = self.signs_at(cell, answer_A, instances.answer(i))
        return (
            f"the digit of 10^{place} is {given}; it must be {gold} (carry in {carry}, role {role}); "
            f"wrong digits: {wrong.size} of {self.answer_len}"
        )

    def working(self, instances: Instances, i: int) -> Sum:
        """The carries and roles of sum `i`, from its prompt alone: bare instances have no annotations."""
        a_D, b_D = np.split(np.delete(instances.prompt(i).astype(np.int8), [self.digits, -1]), 2)
        return add(a_D[None, ::-1], b_D[None, ::-1])

    # -- for people ---------------------------------------------------------------------------------------------

    def cell_name(self, cell: int) -> str:
        return f"10^{self.digits - cell}"

    def drawing(self, one: Instances, look: Look) -> "Text":
        """The sum in columns: operands, sum, roles and carries, with the longest chain marked."""
        from rich.text import Text

        a, b = self.render(one)[0].split("+")
        gap = " " if self.answer_len <= SPACED else ""
        working = self.working(one, 0)
        top = self.digits - int(working.chain_top_N[0])
        chain = range(top, top + int(working.chain_N[0]))
        roles = (ROLES[role] for role in working.role_NS[0, ::-1])
        text = Text()
        text.append(f"chain  {gap.join('━' if cell in chain else ' ' for cell in range(self.answer_len))}\n", "yellow")
        text.append(f"    a  {gap.join(f' {a}')}\n    b  {gap.join(f'+{b}')}\n")
        text.append("  sum  ", "bold")
        for cell in range(self.answer_len):
            sign, style = look(cell)
            text.append(sign, style or "bold").append(gap)
        text.append(f"\n role  {gap.join(' ' if role == 'carry_out' else role[0] for role in roles)}")
        carries = gap.join("1" if carry else " " for carry in working.carry_in_NS[0, ::-1])
        return text.append(f"\ncarry  {carries}", "dim")

    def roles(self, instances: Instances) -> Roles:
        return Roles.of_extra(instances, "role_NA", ROLES)

    def extra_limits(self) -> Mapping[str, int]:
        return {"role_NA": len(ROLES), "carry_in_NA": 2, "chain_msb_N": self.answer_len}

    def figures(self, trace: Trace, pen: Pen) -> "Mapping[str, Figure]":
        from hardtail.tasks.addition.figures import failures_figure

        return {"failures": failures_figure(self, trace, pen)} if "role_NA" in trace.instances.extras else {}

    @classmethod
    def profile_type(cls) -> "type[Profile]":
        from hardtail.tasks.addition.profile import Profile

        return Profile


def _read(prompt: str) -> re.Match[str] | None:
    """The two numbers of a sum, which may end in `=`."""
    return _PROMPT.fullmatch(prompt.strip().removesuffix("=").rstrip())
