"""The transformer, what makes it fast (attention, kernels, CUDA graphs, precision), and the protocol `Denoiser`."""
