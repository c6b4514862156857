"""Masked diffusion models of other projects as denoisers (`pip install 'hardtail[hf]'`)."""
