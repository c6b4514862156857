"""Countdown by the rules of Stream of Search (Gandhi et al. 2024): exhaustive depth-first search, and its chains.

A chain combines K numbers in K - 1 steps. A state is a list; for every pair i < j in list order the search tries a+b,
a·b, larger-smaller and larger/smaller (if exact and the divisor is not 0), in that order, and appends the result to
what remains of the list. Intermediates are unbounded and may be 0. A *hit* is a list of one number, the target.

`gold` is the first hit and `m` the number of hits, every path counted. `distinct` counts different multisets of
equations, an equation being its operation and its larger and smaller operand. So chains that differ only in the order
of operands of + and ·, in the order of steps or in which of two equal numbers they take count once; a·1 and a/1 differ.

Shapes: N instances, K numbers, S = K - 1 steps, 4 entries of a step (left, operation, right, result), T targets,
A answer cells, E parents, M slots of the table of chains.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks.jit import jit
from hardtail.tasks.rng import State, below

Int = NDArray[np.int64]

OPERATIONS = "+*-/"
ADD, MULTIPLY, SUBTRACT, DIVIDE = range(4)
KINDS = ("operand", "operator", "equals", "result", "comma", "eos", "padding")
OPERAND, OPERATOR, EQUALS, RESULT, COMMA, EOS, PADDING = range(7)
HIGHEST_NUMBER = 99
MAX_PARENTS = 9
"""A result waits for its left side, which is at most `9801-9702`: from a number of six digits, four numbers up to 99
cannot come back to a target below 1000."""

_OPERATION_CODES = np.frombuffer(OPERATIONS.encode(), dtype=np.uint8)
_EQUALS_CODE, _COMMA_CODE, _ZERO_CODE = ord("="), ord(","), ord("0")
_HASH = 0x2545F4914F6CDD1D


@jit
def _insert(chain_S4: Int, seen_MS3: Int) -> int:
    """Put a chain in canonical form into the open-addressed table `seen_MS3`; 1 if it is new there, else 0."""
    slots, steps, _ = seen_MS3.shape
    form_S3 = np.empty((steps, 3), dtype=np.int64)
    for s in range(steps):
        larger, smaller = max(chain_S4[s, 0], chain_S4[s, 2]), min(chain_S4[s, 0], chain_S4[s, 2])
        equation = larger, smaller, chain_S4[s, 1]
        at = s
        while at > 0 and equation < (form_S3[at - 1, 0], form_S3[at - 1, 1], form_S3[at - 1, 2]):
            form_S3[at] = form_S3[at - 1]
            at -= 1
        form_S3[at, 0], form_S3[at, 1], form_S3[at, 2] = equation
    mixed = 0
    for entry in form_S3.flat:
        mixed = (mixed ^ int(entry)) * _HASH
        mixed ^= mixed >> 29
    slot = mixed & (slots - 1)
    while seen_MS3[slot, 0, 2] >= 0:
        if (seen_MS3[slot] == form_S3).all():
            return 0
        slot = (slot + 1) & (slots - 1)
    seen_MS3[slot] = form_S3
    return 1


@jit
def _search(target: int, list_KK: Int, gold_S4: Int, seen_MS3: Int) -> tuple[int, int]:
    """Search below the list `list_KK[-1]`; a list of n numbers is kept in row n - 1.

    Returns the number of hits and writes the first one to `gold_S4`. Where `seen_MS3` has slots, it also collects
    distinct chains there and returns their number. A loop, since recursive calls that pass arrays are slow here.
    """
    k = list_KK.shape[0]
    hits, distinct = 0, 0
    chain_S4 = np.empty((k - 1, 4), dtype=np.int64)
    next_K3 = np.zeros((k + 1, 3), dtype=np.int64)  # for lists of n numbers: i, j and operation to try next
    next_K3[:, 1] = 1
    n = k
    while n <= k:
        i, j, operation = next_K3[n, 0], next_K3[n, 1], next_K3[n, 2]
        if i == n - 1:
            next_K3[n, 0], next_K3[n, 1] = 0, 1
            n += 1
            continue
        if operation < DIVIDE:
            next_K3[n, 2] += 1
        else:
            next_K3[n, 2] = 0
            next_K3[n, 1] += 1
            if j == n - 1:
                next_K3[n, 0], next_K3[n, 1] = i + 1, i + 2

        left, right = list_KK[n - 1, i], list_KK[n - 1, j]
        if operation >= SUBTRACT and left < right:
            left, right = right, left
        if operation == ADD:
            result = left + right
        elif operation == MULTIPLY:
            result = left * right
        elif operation == SUBTRACT:
            result = left - right
        elif right == 0:
            continue
        else:
            result = target if n == 2 else left // right
            if result * right != left:
                continue
        if n == 2 and result != target:
            continue

        step = k - n
        chain_S4[step, 0], chain_S4[step, 1], chain_S4[step, 2], chain_S4[step, 3] = left, operation, right, result
        if n > 2:
            kept = 0
            for other in range(n):
                if other != i and other != j:
                    list_KK[n - 2, kept] = list_KK[n - 1, other]
                    kept += 1
            list_KK[n - 2, kept] = result
            n -= 1
            continue
        if hits == 0:
            gold_S4[:] = chain_S4
        hits += 1
        if seen_MS3.shape[0] > 0:
            distinct += _insert(chain_S4, seen_MS3)
    return hits, distinct


@jit
def _solve_one(number_K: Int, target: int, gold_S4: Int) -> tuple[int, int]:
    """Gold and both counts. Distinct chains are counted in a second search, when the table's size is known."""
    k = number_K.size
    list_KK = np.empty((k, k), dtype=np.int64)
    list_KK[k - 1] = number_K
    hits, _ = _search(target, list_KK, gold_S4, np.empty((0, k - 1, 3), dtype=np.int64))
    if hits <= 1:
        return hits, hits
    slots = 4
    while slots < 2 * hits:
        slots *= 2
    return _search(target, list_KK, gold_S4, np.full((slots, k - 1, 3), -1, dtype=np.int64))


@jit
def solve(number_NK: Int, target_N: Int) -> tuple[Int, Int, Int]:
    """`gold_NS4`, `m_N`, `distinct_N` of given puzzles of 2 to 6 numbers; `m` is 0 where there is no solution."""
    n, k = number_NK.shape
    gold_NS4 = np.zeros((n, k - 1, 4), dtype=np.int64)
    m_N, distinct_N = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for i in range(n):
        m_N[i], distinct_N[i] = _solve_one(number_NK[i], target_N[i], gold_NS4[i])
    return gold_NS4, m_N, distinct_N


@jit
def draw(key_N: State, target_T: Int, k: int) -> tuple[Int, Int, Int, Int, Int]:
    """Solvable puzzles: a target from `target_T`, and `k` numbers uniform on 1 … 99, redrawn until solvable.

    Returns `number_NK`, `target_N` and what `solve` returns for them.
    """
    n = key_N.size
    number_NK, gold_NS4 = np.zeros((n, k), dtype=np.int64), np.zeros((n, k - 1, 4), dtype=np.int64)
    target_N, m_N, distinct_N = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    state = np.zeros(1, dtype=np.uint64)
    for i in range(n):
        state[0] = key_N[i]
        target_N[i] = target_T[below(state, target_T.size)]
        while m_N[i] == 0:
            for j in range(k):
                number_NK[i, j] = 1 + below(state, HIGHEST_NUMBER)
            m_N[i], distinct_N[i] = _solve_one(number_NK[i], target_N[i], gold_NS4[i])
    return number_NK, target_N, gold_NS4, m_N, distinct_N


@jit
def _write_number(number: int, at: int, code_A: NDArray[np.uint8]) -> int:
    """Write the decimal digits of `number` from cell `at` on; returns the cell after them."""
    end = at + 1
    while number >= 10 ** (end - at):
        end += 1
    for cell in range(end - 1, at - 1, -1):
        code_A[cell] = _ZERO_CODE + number % 10
        number //= 10
    return end


@jit
def write_chains(
    number_NK: Int, chain_NS4: Int, cells: int
) -> tuple[NDArray[np.uint8], Int, NDArray[np.int8], NDArray[np.int8], NDArray[np.int8]]:
    """Chains as text, with what every cell is and waits for.

    `code_NA`      ASCII codes, e.g. 86+28=114,31-13=18,114-18=96 (cells after the chain are 0)
    `length_N`     characters of the chain
    `kind_NA`      index into `KINDS`; the cell after the chain is the end mark, the rest is padding
    `step_NA`      the equation a cell belongs to, its comma included; -1 after the chain
    `parents_NAE`  a result waits for its whole left side, an operand that is an earlier result for that result, `=`
                   for the digit before it, comma and end mark for the last digit, padding for the end mark

    An operand that could be a given number or a result is the one that comes first in the search's list, since the
    search tries the earlier of two equal numbers first.
    """
    n, k = number_NK.shape
    code_NA = np.zeros((n, cells), dtype=np.uint8)
    length_N = np.zeros(n, dtype=np.int64)
    kind_NA = np.full((n, cells), PADDING, dtype=np.int8)
    step_NA = np.full((n, cells), -1, dtype=np.int8)
    parents_NAE = np.full((n, cells, MAX_PARENTS), -1, dtype=np.int8)
    pool = np.empty(2 * k, dtype=np.int64)
    result_at = np.zeros((k, 2), dtype=np.int64)
    for i in range(n):
        pool[:k] = number_NK[i]
        at = 0
        for s in range(k - 1):
            start = at
            for side in (0, 2):
                source = np.flatnonzero(pool[: k + s] == chain_NS4[i, s, side])[0]
                pool[source] = -1
                end = _write_number(chain_NS4[i, s, side], at, code_NA[i])
                kind_NA[i, at:end] = OPERAND
                if source >= k:
                    first, last = result_at[source - k, 0], result_at[source - k, 1]
                    parents_NAE[i, at:end, : last - first] = np.arange(first, last)
                at = end
                code_NA[i, at] = _OPERATION_CODES[chain_NS4[i, s, 1]] if side == 0 else _EQUALS_CODE
                kind_NA[i, at] = OPERATOR if side == 0 else EQUALS
                at += 1
            equals = at - 1
            parents_NAE[i, equals, 0] = equals - 1
            pool[k + s] = chain_NS4[i, s, 3]
            end = _write_number(chain_NS4[i, s, 3], at, code_NA[i])
            kind_NA[i, at:end] = RESULT
            parents_NAE[i, at:end, : equals - start] = np.arange(start, equals)
            result_at[s, 0], result_at[s, 1] = at, end
            parents_NAE[i, end, 0] = end - 1
            at = end
            if s < k - 2:
                code_NA[i, at] = _COMMA_CODE
                kind_NA[i, at] = COMMA
                at += 1
            step_NA[i, start:at] = s
        length_N[i] = at
        kind_NA[i, at] = EOS
        parents_NAE[i, at + 1 :, 0] = at
    return code_NA, length_N, kind_NA, step_NA, parents_NAE
