"""Kernels, data, checks and samplers over torch tensors, shared by the CPU, CUDA and ROCm backends."""
