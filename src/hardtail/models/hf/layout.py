"""How a problem becomes a sequence of another project's model: which ids our tokens have, and the text around them.

The model reads `before`, the prompt, `between`, the answer cells and `after`, in this order. All rows have the same
length; what a shorter prompt leaves is padding at the end, which the model never sees.

Shapes: B batch, L our sequence, V our vocabulary, F fixed tokens, S the model's sequence.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hardtail.core.errors import HardtailError
from hardtail.core.manifest import Count
from hardtail.core.vocabulary import Vocabulary
from hardtail.models.hf.table import template_ids, token_table

Ids = tuple[Count, ...]


@dataclass(frozen=True)
class Template:
    """The text around a problem: `Add: {prompt}\\n{answer}`. Without `{answer}` the answer comes at the end."""

    before: str = ""
    between: str = ""
    after: str = ""

    @classmethod
    def parse(cls, text: str) -> "Template":
        """A template as a person writes it; a backslash and an n are a line break."""
        before, prompt, rest = text.replace("\\n", "\n").partition("{prompt}")
        between, answer, after = rest.partition("{answer}")
        if not prompt or "{answer}" in before or "{prompt}" in rest or "{answer}" in after:
            raise HardtailError(
                f"the template {text!r} must have {{prompt}} once and, if it names it, {{answer}} once after it"
            )
        return cls(before, between, after if answer else "")


@dataclass(frozen=True)
class Layout:
    """Token ids of a model: those of our vocabulary, in our order, and the fixed ones around prompt and answer."""

    ours: Ids
    mask: Count
    pad: Count
    before: Ids = ()
    between: Ids = ()
    after: Ids = ()

    @classmethod
    def of(cls, vocabulary: Vocabulary, tokenizer: Any, mask_id: int | None, template: Template) -> "Layout":
        ours = tuple(token_table(vocabulary, tokenizer, mask_id))
        starts = [getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "bos")]
        first = [start for start in starts if start is not None][:1]  # as every text that the model has seen begins
        before, between, after = (
            template_ids(tokenizer, text) for text in (template.before, template.between, template.after)
        )
        pad, mask = ours[vocabulary.pad_id], ours[vocabulary.mask_id]
        return cls(ours, mask, pad, (*first, *before), tuple(between), tuple(after))

    def length(self, ours: int) -> int:
        """The length of the model's sequence for one of ours."""
        return len(self.before) + ours + len(self.between) + len(self.after)

    @property
    def highest(self) -> int:
        return max(*self.ours, *self.before, *self.between, *self.after)


class Placed(nn.Module):
    """A layout's ids on a device, and the arithmetic of places."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.sizes = len(layout.before), len(layout.between), len(layout.after)
        fixed = (*layout.before, *layout.between, *layout.after, layout.pad)
        self.id_V: Tensor
        self.fixed_F: Tensor
        self.register_buffer("id_V", torch.tensor(layout.ours), persistent=False)
        self.register_buffer("fixed_F", torch.tensor(fixed), persistent=False)

    def answer_at(self, prompt_B1: Tensor, cells: int) -> Tensor:
        """Where the answer cells are in the model's sequence."""
        return self.sizes[0] + prompt_B1 + self.sizes[1] + torch.arange(cells, device=prompt_B1.device)

    def forward(self, tokens_BL: Tensor, prompt_B1: Tensor, cells: int) -> tuple[Tensor, Tensor]:
        """The model's ids, and which of them are not padding; every place takes one of our tokens or a fixed one."""
        ours = tokens_BL.shape[1]
        before, between, after = self.sizes
        place_S = torch.arange(before + ours + between + after, device=tokens_BL.device)
        prompt_ends_B1 = before + prompt_B1
        answer_B1 = prompt_ends_B1 + between
        after_B1 = answer_B1 + cells
        end_B1 = after_B1 + after
        # Each line overwrites the places that end where it says; the last fixed token is the padding.
        from_BS = torch.full_like(place_S + end_B1, ours + len(self.fixed_F) - 1)
        from_BS = torch.where(place_S < end_B1, ours + before + between + place_S - after_B1, from_BS)
        from_BS = torch.where(place_S < after_B1, prompt_B1 + place_S - answer_B1, from_BS)
        from_BS = torch.where(place_S < answer_B1, ours + before + place_S - prompt_ends_B1, from_BS)
        from_BS = torch.where(place_S < prompt_ends_B1, place_S - before, from_BS)
        from_BS = torch.where(place_S < before, ours + place_S, from_BS)
        fixed_BF = self.fixed_F.expand(len(tokens_BL), -1)
        ids_BS = torch.cat([self.id_V[tokens_BL], fixed_BF], dim=1).gather(1, from_BS)
        return ids_BS, place_S < end_B1
