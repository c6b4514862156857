"""The transformer, what makes it fast (attention, kernels, CUDA graphs, precision), the protocol `Denoiser`, and models
of others as denoisers."""
