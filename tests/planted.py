"""Denoisers that are built by hand, so that what a diagnosis must find in their decodes is known beforehand.

Shapes: B batch, L sequence, D digits, A = D + 1 answer cells, V vocabulary. Digits are least significant first.
"""

import torch
from torch import Tensor

from hardtail.models.denoiser import Function
from hardtail.tasks.addition.task import Addition

EASY, GUESS, SURE, UNSURE = 0.9995, 0.997, 0.98, 0.6
"""How sure the lookahead is of a g or k digit without a chain below it; of one whose carry it guesses; of any other
digit that it knows; and of a digit that it knows nothing about. The guess is the paper's mean wrong confidence."""


def adder(task: Addition) -> Function:
    """Knows addition: the right digit of every cell, surely, whatever is revealed."""

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        total_BD = _digit_sums(tokens_BL, task.digits)
        run_BA, generated_BA = _below(total_BD)
        sure_BA = torch.full(run_BA.shape, SURE)
        return _log_probs(task, total_BD, generated_BA, sure_BA)

    return Function(logits, task.vocabulary.mask_id)


def lookahead(task: Addition, window: int) -> Function:
    """The paper's shortcut (its section 3.3): it sees the operands through a chain of up to `window` nines, no further.

    Behind a longer chain it reads the carry off the answer cell below, if that is revealed: a 0 there came of a carry,
    a 9 did not. Otherwise a g or k cell takes its own carry-out for the carry-in, and is sure of it (its section 3.5);
    a cell inside the chain, or the carry-out, supposes no carry and is unsure. So the most confident order commits the
    g and k digits first that have no chain below, then the guesses, their chains all hidden, then everything else.
    """

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        total_BD = _digit_sums(tokens_BL, task.digits)
        run_BA, generated_BA = _below(total_BD)
        zeros_B1 = torch.zeros_like(total_BD[:, :1])
        answer_BA = tokens_BL.gather(1, at_BA).flip(1)
        below_BA = torch.cat([zeros_B1, answer_BA[:, :-1]], dim=1)  # the answer digit below each cell
        own_BA = torch.cat([total_BD, zeros_B1 + 9], dim=1)  # the carry-out cell, like p, has no role of its own
        far_BA = run_BA > window
        read_BA = far_BA & (below_BA != task.vocabulary.mask_id)
        blind_BA = far_BA & ~read_BA
        guess_BA = blind_BA & (own_BA != 9)
        carry_BA = torch.where(read_BA, below_BA == 0, torch.where(blind_BA, own_BA > 9, generated_BA))
        sure_BA = torch.full(run_BA.shape, SURE)
        sure_BA[(run_BA == 0) & (own_BA != 9)] = EASY
        sure_BA[blind_BA] = UNSURE
        sure_BA[guess_BA] = GUESS
        return _log_probs(task, total_BD, carry_BA, sure_BA)

    return Function(logits, task.vocabulary.mask_id)


def _digit_sums(tokens_BL: Tensor, digits: int) -> Tensor:
    """What the two digits at each position add up to."""
    return (tokens_BL[:, :digits] + tokens_BL[:, digits + 1 : 2 * digits + 1]).flip(1)


def _below(total_BD: Tensor) -> tuple[Tensor, Tensor]:
    """For each cell of the sum, the length of the run of nines directly below it, and whether what ends it carries."""
    rows, digits = total_BD.shape
    place_D = torch.arange(digits).expand(rows, digits)
    ended_at_BD = torch.where(total_BD == 9, -1, place_D).cummax(dim=1).values
    lowest_B1 = torch.full((rows, 1), -1)
    ended_at_BA = torch.cat([lowest_B1, ended_at_BD], dim=1)
    run_BA = torch.arange(-1, digits) - ended_at_BA
    carries_BA = torch.cat([torch.zeros_like(lowest_B1), (total_BD > 9).long()], dim=1).bool()
    return run_BA, carries_BA.gather(1, ended_at_BA + 1)


def _log_probs(task: Addition, total_BD: Tensor, carry_BA: Tensor, sure_BA: Tensor) -> Tensor:
    """The digits that follow from supposed carries, as log-probabilities of the answer cells, most significant first.

    Most of what is left of 1 goes to the digit with the other carry, the rest to all other tokens but the mask.
    """
    own_BA = torch.cat([total_BD, torch.zeros_like(total_BD[:, :1])], dim=1)
    digit_BA1 = ((own_BA + carry_BA.long()) % 10)[..., None]
    other_BA1 = ((own_BA + (~carry_BA).long()) % 10)[..., None]
    left_BA1 = 1 - sure_BA[..., None]
    size = task.vocabulary.size
    p_BAV = (0.1 * left_BA1 / (size - 3)).repeat(1, 1, size)
    p_BAV.scatter_(2, other_BA1, 0.9 * left_BA1).scatter_(2, digit_BA1, sure_BA[..., None])
    p_BAV[..., task.vocabulary.mask_id] = 0.0
    return p_BAV.log().flip(1)
