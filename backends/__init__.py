"""One module a runtime (CPU, CUDA, ROCm, XLA), and what they share."""
