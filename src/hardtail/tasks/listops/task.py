"""ListOps: nested expressions over digits; inner values must be known before outer ones.

Layout: `[X 3 [N 2 5] 7]=27$abc…`, the answer in 20 cells (the value of every operator in post-order, an end mark,
rainbow padding), then padding to 200. X is the maximum, N the minimum, D the median, S the sum modulo 10.

Shapes: N instances, P text, L sequence, A answer cells, D depths.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.fields import AtLeastOne, Probability
from hardtail.core.types import Array, Instances, Tokens
from hardtail.core.vocabulary import Vocabulary
from hardtail.tasks.base import Part, Task
from hardtail.tasks.listops.solver import KINDS, OPERATORS, annotate, draw
from hardtail.tasks.listops.text import canonical, folded, spans
from hardtail.tasks.parts import Look, Roles, Words
from hardtail.tasks.rainbow import EOS, PAD, RAINBOW, before_end, lay_out, meaning, pad_codes, padded
from hardtail.tasks.strata import Stratum

if TYPE_CHECKING:
    from rich.text import Text

    from hardtail.tasks.listops.profile import Profile

_CELLS, _LENGTH = 20, 200
_TRIES = 100_000
_VOCABULARY = Vocabulary(f"0123456789{OPERATORS}[] ={EOS}{RAINBOW}", pad=PAD)


@dataclass(frozen=True)
class ListOps(Task):
    """Expressions over max, min, median and sum modulo 10, stratified by nesting depth; the answer is the trace."""

    name: ClassVar[str] = "listops"
    axes: ClassVar[tuple[str, ...]] = ("depth", "nodes")
    order_names: ClassVar[tuple[str, ...]] = ("post_order",)
    words: ClassVar[Words] = Words(
        "expressions",
        "value",
        {"post_order": "innermost expression first"},
        "In [OP a b …], OP is X for the maximum, N for the minimum, D for the median (of an even number of values the "
        "upper one) or S for the sum modulo 10. Write one digit for each bracket, its value, in the order in which the "
        "brackets close.",
        ("depth=", "expressions of depth {}"),
    )
    vocabulary = _VOCABULARY
    answer_characters = "0123456789" + EOS + RAINBOW
    seq_len, answer_len = _LENGTH, _CELLS
    profile_renamed: ClassVar[Mapping[str, str]] = {"first_in_trace": "lowest_index"}
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "release": {},
        "paper": {
            "space_before_equals": True,
            "depth_law": "ratio",
            "max_depth": 6,
            "train_size": 20_000,
            "test_per_depth": 1000,
            "metric": "answer",
        },
    }

    space_before_equals: bool = False
    """Whether the prompt ends in ` =` or in `=`."""
    median: Literal["upper", "truncated_mean"] = "upper"
    """Of an even number of arguments: the upper middle one, or the mean of both middle ones without its fraction. The
    paper is silent on it."""
    depth_law: Literal["coin", "ratio"] = "coin"
    """`coin`: a fair coin decides about each further level; a tree that does not fit is drawn again, depth included, so
    deep trees get rarer. `ratio`: shares exactly proportional to 0.5^depth; the depth is kept until a tree fits."""
    max_train_depth: int = 5
    """The greatest depth of natural trees, and so of the training set."""
    max_depth: int = 5
    """The greatest depth that is measured."""
    arguments: tuple[int, ...] = (2, 3, 4)
    """Argument counts, each as likely as the others."""
    expand: Probability = 0.6
    """Probability that an argument above the deepest level is an expression."""
    train_size: AtLeastOne = 200_000
    test_per_depth: AtLeastOne = 500
    metric: Literal["trace", "answer"] = "trace"
    """The cells that exact match compares: the trace only, or the whole answer with end mark and padding."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "arguments", tuple(self.arguments))  # a list, where it was read from JSON
        if not 1 <= self.max_train_depth <= self.max_depth <= _CELLS:
            raise HardtailError(
                f"listops: max_train_depth is {self.max_train_depth} and max_depth {self.max_depth}; "
                f"1 <= max_train_depth <= max_depth <= {_CELLS} must hold"
            )
        if not self.arguments or any(not isinstance(count, int) or count < 1 for count in self.arguments):
            raise HardtailError(f"listops: arguments is {self.arguments}; give counts of 1 and above, e.g. 2,3,4")

    @property
    def _equals(self) -> str:
        return " =" if self.space_before_equals else "="

    @property
    def _room(self) -> int:
        """Characters that an expression may have."""
        return _LENGTH - _CELLS - len(self._equals)

    def strata(self) -> list[str]:
        return ["natural", *(f"depth={d}" for d in range(1, self.max_depth + 1))]

    def gallery(self) -> tuple[str, str]:
        return f"depth={min(2, self.max_depth)}", f"depth={self.max_depth}"

    def splits(self) -> Mapping[str, Sequence[Part]]:
        return {
            "train": [Part("natural", self.train_size)],
            "test": [Part(f"depth={d}", self.test_per_depth) for d in range(1, self.max_depth + 1)],
            "probe": [Part(f"depth={d}", 1000) for d in range(1, self.max_train_depth + 1)],
        }

    # -- generating and laying out ------------------------------------------------------------------------------

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        share_D = self._depth_shares(stratum)
        count_C = np.array(self.arguments, dtype=np.int64)
        redraw = self.depth_law == "coin"
        text_NP, length_N = draw(key_N, share_D, redraw, count_C, self.expand, _CELLS, self._room, _TRIES)
        if not length_N.all():
            raise HardtailError(
                f"listops: no tree for {stratum} with at most {_CELLS} operators and {self._room} characters was found "
                f"in {_TRIES:,} draws; reduce the depth, the number of arguments or expand"
            )
        return self._instances(text_NP, length_N)

    def _depth_shares(self, stratum: Stratum) -> NDArray[np.float64]:
        """Cumulative shares of the depths 1, 2, …: the law of natural trees, or that law continued to `max_depth` and
        restricted to the depths of a stratum."""
        depth_D = np.arange(1, self.max_depth + 1)
        inside_D = stratum.on("depth").holds(depth_D)
        if not inside_D.any():
            raise HardtailError(
                f"listops: no depth fits {stratum}; depths are 1 to {self.max_depth} (max_depth is a field)"
            )
        natural = all(condition.axis != "depth" for condition in stratum.conditions)
        deepest = self.max_train_depth if natural else self.max_depth
        share_D = np.where(depth_D <= deepest, 0.5**depth_D, 0.0)
        if self.depth_law == "coin":
            share_D[deepest - 1] *= 2
        cumulative_D = np.cumsum(share_D * inside_D)
        return np.asarray(cumulative_D / cumulative_D[-1])

    def _instances(self, text_NP: NDArray[np.uint8], length_N: Array) -> Instances:
        n = len(text_NP)
        code_NA, nodes_N, depth_N, rank_NA, node_depth_NA, kind_NA, parents_NAE = annotate(
            text_NP, length_N, self.median == "upper", _CELLS
        )
        prompt_NP = np.pad(text_NP, ((0, 0), (0, len(self._equals))))
        for place, character in enumerate(self._equals):
            prompt_NP[np.arange(n), length_N + place] = ord(character)
        prompt_len_N = length_N + len(self._equals)
        everywhere_NA = np.ones((n, _CELLS), dtype=np.bool_)
        trace_NA = np.arange(_CELLS) < nodes_N[:, None]
        return Instances(
            tokens_NL=lay_out(_VOCABULARY, _LENGTH, prompt_NP, prompt_len_N, pad_codes(code_NA, nodes_N)),
            prompt_len_N=prompt_len_N.astype(np.int32),
            maskable_NA=everywhere_NA,
            scored_NA=trace_NA if self.metric == "trace" else everywhere_NA,
            orders={"post_order": rank_NA},
            # The end mark and padding wait for nothing: the prompt alone determines how long the trace is.
            parents_NAE=parents_NAE,
            strata={"depth": depth_N.astype(np.int8), "nodes": nodes_N.astype(np.int8)},
            extras={"node_depth_NA": node_depth_NA, "kind_NA": kind_NA},
        )

    # -- reading ------------------------------------------------------------------------------------------------

    def parse(self, prompts: Sequence[str]) -> Instances:
        texts = [self._fitting(prompt) for prompt in prompts]
        text_NP = np.array(texts, dtype=f"S{self._room}").view(np.uint8).reshape(len(texts), self._room)
        return self._instances(text_NP, np.array([len(text) for text in texts], dtype=np.int64))

    def _fitting(self, prompt: str) -> str:
        """The expression with single spaces before arguments and nowhere else, if there is room for it."""
        text = canonical(prompt)
        if (nodes := text.count("[")) > _CELLS:
            raise HardtailError(f"listops: {quoted(prompt)} has {nodes} operators; the answer has room for {_CELLS}")
        if len(text) > self._room:
            raise HardtailError(
                f"listops: {quoted(prompt)} has {len(text)} characters with single spaces; there is room "
                f"for {self._room}"
            )
        return text

    def answer_text(self, instances: Instances, i: int, answer_A: Array | None = None) -> str:
        return meaning(super().answer_text(instances, i, answer_A))

    def read_answer(self, instances: Instances, i: int, text: str) -> Tokens:
        trace = meaning("".join(text.split()))
        nodes = int(self._trace_len(instances)[i])
        if not (trace.isascii() and trace.isdigit()) or len(trace) != nodes:
            raise HardtailError(
                f"listops: {quoted(trace)} is not an answer to this expression; write one digit for each of its "
                f"{nodes} operators, inner before outer and left before right"
            )
        return _VOCABULARY.encode(padded(trace, _CELLS))

    # -- judging ------------------------------------------------------------------------------------------------

    def _trace_len(self, instances: Instances) -> NDArray[np.int64]:
        return (instances.tokens_NL == _VOCABULARY.id("[")).sum(axis=1)

    def meaningful(self, instances: Instances) -> NDArray[np.bool_]:
        return before_end(self.vocabulary, instances.answer_NA)

    def check(self, instances: Instances, answer_NA: Array) -> NDArray[np.bool_]:
        """Which traces are right; the end mark and padding only count for exact match (`scored_NA`)."""
        after_NA = np.arange(_CELLS) >= self._trace_len(instances)[:, None]
        return ((answer_NA == instances.answer_NA) | after_NA).all(axis=1)

    def fault(self, instances: Instances, i: int, answer_A: Array) -> str | None:
        expression = self.render(instances.take(slice(i, i + 1)))[0]
        gold, given = (_VOCABULARY.decode(row) for row in (instances.answer(i), answer_A))
        for cell, (start, end) in enumerate(spans(expression)):
            if given[cell] != gold[cell]:
                shown = given[cell] if given[cell].isdigit() else repr(given[cell])
                return f"{expression[start:end]} is {gold[cell]}, not {shown}"
        return None

    # -- for people ---------------------------------------------------------------------------------------------

    def drawing(self, one: Instances, look: Look) -> "Text":
        """The expression, and its tree: one operator per line with its value, sub-expressions below it."""
        from rich.text import Text

        expression = self.render(one)[0]
        cells = sorted((start, end, cell) for cell, (start, end) in enumerate(spans(expression)))
        text = Text(expression)
        for start, end, cell in cells:
            level = sum(outer < start and end < outer_end for outer, outer_end, _ in cells)
            text.append(f"\n  {'  ' * level}{folded(expression[start:end])} = ")
            sign, style = look(cell)
            text.append(sign, style or "bold")
        rest = Text.assemble(*(look(cell) for cell in range(len(cells), self.answer_len)))
        return text.append("\n  end  ", "dim").append(rest) if rest else text

    def roles(self, instances: Instances) -> Roles:
        return Roles.of_extra(instances, "kind_NA", KINDS)

    def extra_limits(self) -> Mapping[str, int]:
        return {"kind_NA": len(KINDS), "node_depth_NA": self.answer_len}

    @classmethod
    def profile_type(cls) -> "type[Profile]":
        from hardtail.tasks.listops.profile import Profile

        return Profile
