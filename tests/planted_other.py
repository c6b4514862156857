"""Denoisers whose flaws are planted, so that a diagnosis can be held to what it must find: mazes and ListOps.

They look the prompt up among given instances; what they then make of the answer's revealed cells is their own.

Shapes: B batch, L sequence, A answer cells, V vocabulary, E parents.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardtail import Instances
from hardtail.core.types import Array
from hardtail.models.denoiser import Function
from hardtail.tasks.base import Task
from hardtail.tasks.listops.task import ListOps
from hardtail.tasks.maze.task import Maze

Say = Callable[[Array, Array], tuple[Array, Array]]
"""From the rows of the instances and the answers as they stand [B, A] to a token and its probability, each [B, A]."""

OPERATION: dict[str, Callable[[list[int]], int]] = {
    "X": max,
    "N": min,
    "D": lambda values: sorted(values)[len(values) // 2],
    "S": lambda values: sum(values) % 10,
}


def planted(task: Task, instances: Instances, say: Say) -> Function:
    """A denoiser that says one token of every cell with some probability; the others share the rest evenly."""
    row_of = {instances.prompt(i).tobytes(): i for i in range(len(instances))}
    assert len(row_of) == len(instances), "two instances have the same prompt"
    mask_id, size = task.vocabulary.mask_id, task.vocabulary.size

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        tokens = tokens_BL.numpy().astype(np.uint8)
        row_B = np.array(
            [row_of[row[:start].tobytes()] for row, start in zip(tokens, at_BA[:, 0].tolist(), strict=True)]
        )
        token_BA, sure_BA = (torch.from_numpy(array) for array in say(row_B, tokens_BL.gather(1, at_BA).numpy()))
        rest_BA1 = ((1 - sure_BA) / (size - 2)).log()[..., None]
        said_BAV = rest_BA1.repeat(1, 1, size).scatter(2, token_BA.long()[..., None], sure_BA.log()[..., None])
        said_BAV[..., mask_id] = -torch.inf
        return said_BAV

    return Function(logits, mask_id)


def reciting(task: Task, instances: Instances, answer_NA: Array, sure_NA: Array) -> Function:
    """Says `answer_NA` whatever is revealed; confidence orders commit the cells by `sure_NA`."""
    return planted(task, instances, lambda row_B, answer_BA: (answer_NA[row_B], sure_NA[row_B]))


# -- mazes ------------------------------------------------------------------------------------------------------


def exact_maze(task: Maze, instances: Instances) -> Function:
    """Knows the path."""
    return reciting(task, instances, instances.answer_NA, np.full(instances.maskable_NA.shape, 0.99))


def far_dead_ends(task: Maze, instances: Instances, w: int) -> NDArray[np.bool_]:
    """The cells off the path from which the farthest tip behind them is `w` steps away or more."""
    off_NA = instances.maskable_NA & (instances.answer_NA == task.vocabulary.id("0"))
    return off_NA & (instances.orders["dead_end_rounds"] >= w)


def local_maze(task: Maze, instances: Instances, w: int) -> Function:
    """Takes a cell for off the path, rather sure, only on local evidence: all ways on end within `w` cells, or the
    cells that lead on are revealed as off the path. Everything else it takes for path, and is very sure of it."""
    off, on = task.vocabulary.id("0"), task.vocabulary.id("1")
    off_path_NA = instances.answer_NA == off
    far_NA = far_dead_ends(task, instances, w)
    assert instances.parents_NAE is not None
    parents_NAE = instances.parents_NAE

    def say(row_B: Array, answer_BA: Array) -> tuple[Array, Array]:
        parents_BAE = parents_NAE[row_B].astype(np.int64)
        shown_BAE = answer_BA[np.arange(len(row_B))[:, None, None], parents_BAE]
        closed_BA = ((shown_BAE == off) | (parents_BAE < 0)).all(axis=2)
        seen_BA = off_path_NA[row_B] & (~far_NA[row_B] | closed_BA)
        return np.where(seen_BA, off, on), np.where(seen_BA, 0.9, 0.99)

    return planted(task, instances, say)


# -- ListOps ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """One operator: its arguments that are digits, and the trace cells of the others."""

    operator: str
    digits: list[int]
    children: list[int]
    height: int

    def guess(self) -> int:
        """The value of the digits alone, 0 where there are none."""
        return OPERATION[self.operator](self.digits) if self.digits else 0

    def value(self, answer_A: Array) -> int:
        """The value, given those of the children."""
        return OPERATION[self.operator](self.digits + [int(answer_A[child]) for child in self.children])


def nodes_of(expression: str) -> list[Node]:
    """The operators of an expression in the order of the trace."""
    found: list[Node] = []
    stack: list[tuple[str, list[int], list[int]]] = []
    for at, character in enumerate(expression):
        if character == "[":
            stack.append((expression[at + 1], [], []))
        elif character.isdigit():
            stack[-1][1].append(int(character))
        elif character == "]":
            operator, digits, children = stack.pop()
            found.append(
                Node(operator, digits, children, 1 + max((found[child].height for child in children), default=0))
            )
            if stack:
                stack[-1][2].append(len(found) - 1)
    return found


def hasty_listops(task: ListOps, instances: Instances, w: int) -> Function:
    """Evaluates a node if its children are revealed or its expression has at most `w` levels. Otherwise it guesses
    from the digits alone, and is surer of that than of anything it knows; surest at the root."""
    trees = [nodes_of(expression) for expression in task.render(instances)]
    gold_NA = instances.answer_NA

    def say(row_B: Array, answer_BA: Array) -> tuple[Array, Array]:
        token_BA, sure_BA = gold_NA[row_B].copy(), np.full(answer_BA.shape, 0.6)
        for b, row in enumerate(row_B):
            for cell, node in enumerate(trees[row]):
                sure_BA[b, cell] = 0.9
                if all(answer_BA[b, child] < 10 for child in node.children):
                    token_BA[b, cell] = node.value(answer_BA[b])
                elif node.height > w:
                    token_BA[b, cell], sure_BA[b, cell] = node.guess(), 0.98 + 0.001 * node.height
        return token_BA, sure_BA

    return planted(task, instances, say)
