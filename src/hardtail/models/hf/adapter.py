"""A Hugging Face model as a denoiser: our tokens in, logits over our vocabulary at the answer cells out.

The model reads `before`, the prompt, `between`, the answer cells and `after`, in this order. All rows have the same
length; what a shorter prompt leaves is padding at the end, which attention does not see.

Shapes: B batch, L our sequence, A answer cells, V our vocabulary, S the model's sequence, W the model's vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hardtail.core.errors import HardtailError
from hardtail.core.vocabulary import Vocabulary
from hardtail.models.hf.families import Family, family_of
from hardtail.models.hf.table import encoded, token_table

PREFIX = "hf:"
TEMPLATE = "{prompt}{answer}"


@dataclass(frozen=True)
class Template:
    """The text around a problem: `Add: {prompt}\\n{answer}`. Without `{answer}` the answer comes at the end."""

    before: str = ""
    between: str = ""
    after: str = ""

    @classmethod
    def parse(cls, text: str) -> "Template":
        before, prompt, rest = text.partition("{prompt}")
        between, answer, after = rest.partition("{answer}")
        if not prompt or "{answer}" in before or "{prompt}" in rest or "{answer}" in after:
            raise HardtailError(
                f"the template {text!r} must have {{prompt}} once and, if it names it, {{answer}} once after it"
            )
        return cls(before, between, after if answer else "")


class HfDenoiser:
    """A model of another project. `mask_id` is our mask; `their_mask` is the model's."""

    def __init__(
        self,
        model: nn.Module,
        family: Family,
        vocabulary: Vocabulary,
        tokenizer: Any,
        their_mask: int | None,
        template: Template = Template(),  # noqa: B008 (it is frozen)
    ) -> None:
        self.model, self.family, self.mask_id = model.eval().requires_grad_(False), family, vocabulary.mask_id
        self.id_V = token_table(vocabulary, tokenizer, their_mask)
        self.their_mask = int(self.id_V[vocabulary.mask_id])
        starts = [getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "bos")]
        first = [start for start in starts if start is not None][:1]  # as every text that the model has seen begins
        before, between, after = (
            encoded(tokenizer, text) for text in (template.before, template.between, template.after)
        )
        self.sizes = len(first) + len(before), len(between), len(after)
        self.fixed_F = torch.tensor([*first, *before, *between, *after, int(self.id_V[vocabulary.pad_id])])

    def logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        """`at_BA` are all answer cells in order; the prompt is everything before the first of them."""
        device, cells = tokens_BL.device, at_BA.shape[1]
        prompt_B1 = at_BA[:, :1]
        if not self.family.pads and bool((prompt_B1 != prompt_B1[:1]).any()):
            raise HardtailError(
                f"{self.family.name} takes no attention mask, so prompts of different lengths cannot share a batch"
            )
        ids_BS, real_BS = self._laid_out(tokens_BL, prompt_B1, cells)
        at_BS = self.sizes[0] + prompt_B1 + self.sizes[1] + torch.arange(cells, device=device)
        if self.family.shifted:
            if bool((at_BS == 0).any()):
                raise HardtailError(
                    f"{self.family.name} predicts each token at the position before it, so it cannot predict the first"
                )
            at_BS = at_BS - 1
        logits_BSW = self.family.logits(self.model, ids_BS, real_BS, self.their_mask)
        logits_BAW = logits_BSW.gather(1, at_BS[:, :, None].expand(-1, -1, logits_BSW.shape[-1]))
        return logits_BAW[:, :, self.id_V.to(device)]

    def _laid_out(self, tokens_BL: Tensor, prompt_B1: Tensor, cells: int) -> tuple[Tensor, Tensor]:
        """The model's ids, and which of them are not padding; every place takes one of our tokens or a fixed one."""
        device, ours = tokens_BL.device, tokens_BL.shape[1]
        before, between, after = self.sizes
        place_S = torch.arange(before + ours + between + after, device=device)
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
        fixed_BF = self.fixed_F.to(device).expand(len(tokens_BL), -1)
        ids_BS = torch.cat([self.id_V.to(device)[tokens_BL], fixed_BF], dim=1).gather(1, from_BS)
        return ids_BS, place_S < end_B1


def load_hf(
    name: str, vocabulary: Vocabulary, template: str = TEMPLATE, *, device: str = "cpu", trust_remote_code: bool = False
) -> HfDenoiser:
    """The model in a folder that `transformers` saved, or of that name on the Hub."""
    try:
        import transformers
    except ImportError as error:
        raise HardtailError(f"models of others need transformers: pip install 'hardtail[hf]' ({error})") from error
    laid_out = Template.parse(template)
    try:
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code)
        family = family_of(config)
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=trust_remote_code)
        kind = getattr(transformers, family.auto_class)
        model = kind.from_pretrained(name, trust_remote_code=trust_remote_code)
    except HardtailError as error:
        raise HardtailError(f"{PREFIX}{name}: {error}") from error
    except (OSError, ValueError, ImportError) as error:
        hint = "" if trust_remote_code else "; code that comes with a model runs only with --trust-remote-code"
        raise HardtailError(f"{PREFIX}{name} cannot be loaded: {str(error).splitlines()[0]}{hint}") from error
    mask_id = next(
        (found for held in (tokenizer, config) if (found := getattr(held, "mask_token_id", None)) is not None), None
    )
    try:
        return HfDenoiser(model.to(device), family, vocabulary, tokenizer, mask_id, laid_out)
    except HardtailError as error:
        raise HardtailError(f"{PREFIX}{name}: {error}") from error
