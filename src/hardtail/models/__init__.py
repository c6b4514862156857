"""The transformer and what makes it fast: attention, kernels, CUDA graph capture, precision; and `Denoiser`, the
protocol that the decoder sees, which any other model can fulfil as well.
"""
