"""ListOps: random expression trees as text, their post-order traces, and what each trace cell waits for.

An expression is `[`, an operator, arguments that are digits or expressions, `]`; the value of an expression is a digit.
Its *trace* has one digit per operator in post-order: the t-th `]` of the text closes the expression of trace cell t.

Shapes: N instances, P text, A trace cells, E = A - 1 children that an expression can have, D depths, C argument counts.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks.jit import jit
from hardtail.tasks.rng import State, below, unit

Codes = NDArray[np.uint8]
Int = NDArray[np.int64]

OPERATORS = "XNDS"
MAX, MIN, MEDIAN, SUM = range(4)
KINDS = ("max", "min", "median", "sum", "eos", "padding")
EOS, PADDING = 4, 5

_OPERATOR_CODES = np.frombuffer(OPERATORS.encode(), dtype=np.uint8)
_OPEN, _CLOSE, _SPACE, _ZERO, _NINE = ord("["), ord("]"), ord(" "), ord("0"), ord("9")


@jit
def _grow(
    depth: int, count_C: Int, expand: float, nodes: int, state: State, left_D: Int, must_D: Int, text: Codes
) -> int:
    """Write one random expression of `depth` into `text`; its length, or 0 if `nodes` or the room are exceeded.

    At the deepest level arguments are digits; above it each is an expression with probability `expand`. The root must
    reach the full depth and passes this duty to its first sub-expression, and so on; if no argument before the last one
    is an expression, the last one is made an expression.
    """
    at, made, level = 0, 0, 0
    opens, duty = True, 1
    while True:
        if opens:
            made += 1
            if made > nodes or at + 2 > text.size:
                return 0
            text[at] = _OPEN
            text[at + 1] = _OPERATOR_CODES[below(state, 4)]
            at += 2
            left_D[level], must_D[level] = count_C[below(state, count_C.size)], duty
            level += 1
        top = level - 1
        if left_D[top] == 0:
            if at + 1 > text.size:
                return 0
            text[at] = _CLOSE
            at += 1
            level -= 1
            if level == 0:
                return at
            opens = False
            continue
        left_D[top] -= 1
        if at + 2 > text.size:
            return 0
        text[at] = _SPACE
        at += 1
        opens = level < depth and (unit(state) < expand or (must_D[top] == 1 and left_D[top] == 0))
        if opens:
            duty, must_D[top] = must_D[top], 0
        else:
            text[at] = _ZERO + below(state, 10)
            at += 1


@jit
def draw(
    key_N: State,
    share_D: NDArray[np.float64],
    redraw: bool,
    count_C: Int,
    expand: float,
    nodes: int,
    room: int,
    tries: int,
) -> tuple[Codes, Int]:
    """`text_NP`, `length_N`: random expressions of at most `nodes` operators and `room` characters.

    Depth d has the cumulative share `share_D[d - 1]`; after a draw that does not fit, the depth is drawn again
    (`redraw`) or kept. A length of 0 means that nothing fitted in `tries` draws; nothing is drawn after it.
    """
    n = key_N.size
    text_NP = np.zeros((n, room), dtype=np.uint8)
    length_N = np.zeros(n, dtype=np.int64)
    left_D, must_D = np.zeros(share_D.size, dtype=np.int64), np.zeros(share_D.size, dtype=np.int64)
    state = np.zeros(1, dtype=np.uint64)
    for i in range(n):
        state[0] = key_N[i]
        depth = 0
        for _ in range(tries):
            if redraw or depth == 0:
                depth = 1 + int(np.searchsorted(share_D, unit(state), side="right"))
            length_N[i] = _grow(depth, count_C, expand, nodes, state, left_D, must_D, text_NP[i])
            if length_N[i] > 0:
                break
        if length_N[i] == 0:
            break
    return text_NP, length_N


def value_of(operator: int, count_10: Int, upper: bool) -> int:
    """The value of an operator on one or more arguments, given as the number of 0s, 1s, … 9s among them.

    Not compiled: runs are measured on machines without numba, too.
    """
    digit_10 = np.arange(10)
    if operator == SUM:
        return (digit_10 * count_10).sum() % 10
    argument_C = np.repeat(digit_10, count_10)
    if operator == MAX:
        return argument_C[-1]
    if operator == MIN:
        return argument_C[0]
    above_middle = argument_C[argument_C.size // 2]
    return above_middle if upper else (argument_C[(argument_C.size - 1) // 2] + above_middle) // 2


_value_of = jit(value_of)


@jit
def annotate(
    text_NP: Codes, length_N: Int, upper: bool, cells: int
) -> tuple[Codes, Int, Int, NDArray[np.int8], NDArray[np.int8], NDArray[np.int8], NDArray[np.int8]]:
    """Evaluate well-formed expressions of at most `cells` operators; spaces in the text are ignored.

    `code_NA`        ASCII digits of the trace (0 after it)
    `nodes_N`        operators: the length of the trace
    `depth_N`        nesting depth; 1 is a flat expression
    `rank_NA`        layer: 0 without sub-expressions, else 1 + the highest among them; `cells` after the trace
    `node_depth_NA`  distance from the root, which has 1; -1 after the trace
    `kind_NA`        index into `KINDS`
    `parents_NAE`    the trace cells of an expression's sub-expressions

    The median of an even number of arguments is the upper middle one (`upper`) or the truncated mean of both.
    """
    n = text_NP.shape[0]
    code_NA = np.zeros((n, cells), dtype=np.uint8)
    nodes_N, depth_N = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    rank_NA = np.full((n, cells), cells, dtype=np.int8)
    node_depth_NA = np.full((n, cells), -1, dtype=np.int8)
    kind_NA = np.full((n, cells), PADDING, dtype=np.int8)
    parents_NAE = np.full((n, cells, cells - 1), -1, dtype=np.int8)
    count_A10 = np.zeros((cells, 10), dtype=np.int64)  # per open expression: how often each digit is an argument
    operator_A, first_child_A = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64)
    child_A = np.zeros(cells, dtype=np.int64)  # closed expressions whose parent is still open
    for i in range(n):
        cell, level, children = 0, 0, 0
        for at in range(length_N[i]):
            code = text_NP[i, at]
            if code == _OPEN:
                count_A10[level] = 0
                first_child_A[level] = children
                level += 1
                depth_N[i] = max(depth_N[i], level)
            elif _ZERO <= code <= _NINE:
                count_A10[level - 1, code - _ZERO] += 1
            elif code == _CLOSE:
                level -= 1
                value = _value_of(operator_A[level], count_A10[level], upper)
                code_NA[i, cell] = _ZERO + value
                kind_NA[i, cell] = operator_A[level]
                node_depth_NA[i, cell] = level + 1
                first, rank_NA[i, cell] = first_child_A[level], 0
                for place, child in enumerate(child_A[first:children]):
                    parents_NAE[i, cell, place] = child
                    rank_NA[i, cell] = max(rank_NA[i, cell], rank_NA[i, child] + 1)
                child_A[first], children = cell, first + 1
                cell += 1
                if level > 0:
                    count_A10[level - 1, value] += 1
            elif code != _SPACE:
                operator_A[level - 1] = np.flatnonzero(code == _OPERATOR_CODES)[0]
        nodes_N[i] = cell
        if cell < cells:
            kind_NA[i, cell] = EOS
    return code_NA, nodes_N, depth_N, rank_NA, node_depth_NA, kind_NA, parents_NAE
