"""A model of another project as a network of ours: our tokens in, logits over our vocabulary at the answer cells out.

Shapes: B batch, L our sequence, A answer cells, V our vocabulary, S the model's sequence, W the model's vocabulary.
"""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from hardtail.core.errors import HardtailError
from hardtail.models.hf.families import Family
from hardtail.models.hf.layout import Layout, Placed
from hardtail.models.trainable import Trainable

_INNER = "inner."
_OFFSET_BY_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "xmod")
"""Types that count positions from the padding token's id on, and so have fewer of them."""


class HfModel(Trainable):
    """A model of another project, with the layout of our problems for it."""

    whole_answers = True
    capturable = False

    def __init__(self, inner: nn.Module, family: Family, layout: Layout) -> None:
        super().__init__()
        self.inner, self.family, self.layout, self.placed = inner, family, layout, Placed(layout)

    @property
    def config(self) -> Any:
        """The configuration that `transformers` keeps with a model."""
        return self.inner.config

    @property
    def id_V(self) -> Tensor:
        """The model's id of each of our tokens."""
        return self.placed.id_V

    def forward(self, tokens_BL: Tensor, at_BA: Tensor | slice, attention: torch.dtype | None = None) -> Tensor:
        """`at_BA` are all answer cells in order; the prompt is everything before the first of them."""
        if attention is not None:
            raise HardtailError("attention in another precision is for our transformer only; leave it at 'same'")
        family = self.family
        if isinstance(at_BA, slice):
            prompt_B1 = torch.full((len(tokens_BL), 1), at_BA.start, device=tokens_BL.device)
            cells = at_BA.stop - at_BA.start
        else:
            prompt_B1, cells = at_BA[:, :1], at_BA.shape[1]
        if not family.pads and bool((prompt_B1 != prompt_B1[:1]).any()):
            raise HardtailError(
                f"{family.name} takes no attention mask, so prompts of different lengths cannot share a batch"
            )
        ids_BS, real_BS = self.placed(tokens_BL, prompt_B1, cells)
        if not family.pads and len(ids_BS):  # it would attend to the padding, of which all rows have the same
            ids_BS, real_BS = (held[:, : int(real_BS[0].sum())] for held in (ids_BS, real_BS))
        at_BS = self.placed.answer_at(prompt_B1, cells)
        if family.shifted:
            if bool((at_BS == 0).any()):
                raise HardtailError(
                    f"{family.name} predicts each token at the position before it, so it cannot predict the first"
                )
            at_BS = at_BS - 1
        logits_BSW = family.logits(self.inner, ids_BS, real_BS, self.layout.mask)
        logits_BAW = logits_BSW.gather(1, at_BS[:, :, None].expand(-1, -1, logits_BSW.shape[-1]))
        return logits_BAW[:, :, self.id_V]

    def twin(self) -> "HfModel":
        return deepcopy(self)

    def header(self) -> dict[str, Any]:
        from hardtail.models.hf.saved import header

        return header(self)

    def fault(self, vocabulary: int, length: int) -> str | None:
        config, whole = self.config, self.layout.length(length)
        if len(self.layout.ours) != vocabulary:
            return f"it was set up for {len(self.layout.ours)} tokens, and the task has {vocabulary}"
        if (known := getattr(config, "vocab_size", None)) is not None and self.layout.highest >= known:
            return f"its tokenizer has the id {self.layout.highest}, but the model knows {known} tokens"
        if (room := positions(config)) is not None and whole > room:
            return f"it reads at most {room} tokens, and a problem in its template takes {whole}"
        return None

    def name_in_files(self, name: str) -> str:
        return name.removeprefix(_INNER)


def positions(config: Any) -> int | None:
    """How many tokens a model reads at once; None if its configuration does not say."""
    names = ("max_position_embeddings", "max_sequence_length", "model_length")
    found = next((found for name in names if isinstance(found := getattr(config, name, None), int)), None)
    if found is not None and config.model_type in _OFFSET_BY_PADDING:
        return found - config.pad_token_id - 1
    return found
