"""Portable Triton kernels; imported only where a device runs them."""
