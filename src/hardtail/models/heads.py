"""A small head on a frozen model: one number for each answer cell, from the features that the model's own head reads.

Shapes: B batch, L sequence, A answer cells, D width.
"""

import torch
from torch import Tensor, nn

from hardtail.models.transformer import Transformer


class CellHead(nn.Module):
    """Two layers on the last features of a transformer whose weights stay as they are."""

    def __init__(self, model: Transformer, generator: torch.Generator, width: int = 128) -> None:
        super().__init__()
        self.features = model.features
        self.layers = nn.Sequential(nn.Linear(model.shape.width, width), nn.GELU(), nn.Linear(width, 1))
        for name, parameter in self.layers.named_parameters():
            scale = 0.0 if name.endswith("bias") else parameter.shape[-1] ** -0.5
            nn.init.normal_(parameter, std=scale, generator=generator)

    def forward(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        with torch.no_grad():
            features_BAD = self.features(tokens_BL, at_BA)
        number_BA: Tensor = self.layers(features_BAD)[..., 0]
        return number_BA
