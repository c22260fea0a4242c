"""Grouped products in Triton: the tiles of all groups in one list, made on the device, and kernels that go through it."""
