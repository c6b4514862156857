"""What a forward pass costs, by counting its operations."""

from hardtail.models.transformer import Shape


def forward_flops(shape: Shape, cells: int) -> float:
    """Operations of one sequence's forward pass; the last block computes queries and MLP at the answer's cells only."""
    d, length = shape.width, shape.seq_len
    block, last = (
        2 * d * d * (2 * length + 2 * at + 2 * shape.mlp_ratio * at) + 4 * d * length * at for at in (length, cells)
    )
    return float((shape.layers - 1) * block + last + 2 * d * shape.vocab_size * cells)
