"""What a decode asks its denoiser: logits of any number of rows, in passes that always have the same number.

Shapes: B batch, K any number of rows, L sequence, A answer cells, V vocabulary.
"""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from hardtail.core.errors import HardtailError
from hardtail.core.types import MOST_TOKENS
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import is_ours
from hardtail.models.denoiser import Denoiser, well_shaped
from hardtail.models.transformer import pick
from hardtail.policies.base import in_tiles


class Asked:
    """A denoiser of which only the tokens that may be committed are possible, asked in tiles of rows."""

    def __init__(self, denoiser: Denoiser, tokens_BL: Tensor, at_BA: Tensor, tile: int, decoding: Decoding) -> None:
        """The denoiser's first answer, about some of these rows, shows how many tokens there are; the mask is counted
        even if the denoiser gives it no logit. The places are those that it will be asked about."""
        self.denoiser, self.tile = denoiser, tile
        few = 1 if tokens_BL.device.type == "cpu" and is_ours(denoiser) else tile
        logits_BAV = well_shaped(denoiser.logits(tokens_BL[:few], at_BA[:few]), at_BA[:few])
        self.predicted = logits_BAV.shape[-1]
        self.vocab_size = max(self.predicted, denoiser.mask_id + 1)
        if denoiser.mask_id < 0 or self.vocab_size > MOST_TOKENS:
            raise HardtailError(
                f"the denoiser has {self.predicted:,} tokens and its mask is {denoiser.mask_id:,}; traces hold tokens "
                f"from 0 and below {MOST_TOKENS:,}"
            )
        self.allowed_V = decoding.committable(denoiser.mask_id, self.vocab_size)
        self.allowed_V[self.predicted :] = False
        if not bool(self.allowed_V.any()):
            raise HardtailError("no token may be committed: `allowed` names no token except the mask")

    def logits(self, tokens_KL: Tensor, at_KA: Tensor) -> Tensor:
        """Logits in float32, tokens that may not be committed at -inf."""
        logits_KAV = in_tiles(self._float_logits, self.tile, tokens_KL, at_KA)
        if absent := self.vocab_size - self.predicted:
            logits_KAV = F.pad(logits_KAV, (0, absent))
        return logits_KAV.masked_fill(~self.allowed_V, -torch.inf)

    def _float_logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return self.denoiser.logits(tokens_BL, at_BA).float()

    def some_cells(self, tokens_KL: Tensor, at_KA: Tensor, every_KA: Tensor, most: int) -> Tensor:
        """Logits of some of the answer cells, of which `every_KA` has all.

        Our transformer computes the cells that are asked for. Any other denoiser is always asked for all of them, at
        most this many rows at a time: it may need their places to know where the prompt ends, or answer for all
        whatever it is asked.
        """
        if is_ours(self.denoiser):
            return self.logits(tokens_KL, at_KA)
        parts = (torch.split(part, most) for part in (tokens_KL, at_KA, every_KA))
        return torch.cat(
            [pick(self.logits(tokens, every), at - every[:, :1]) for tokens, at, every in zip(*parts, strict=True)]
        )
