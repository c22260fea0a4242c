"""Incoherent processing: Q and K times the same orthogonal matrix, which leaves Q K^T as it is and spreads outliers.

A Hadamard matrix after random signs, as in FlashAttention-3 (arXiv:2407.08608, section 3.3) and QuIP (arXiv:2307.13304).  A
kernel that writes Q and K applies it (there, the one of the rotary embedding), so that it is no part of what is timed.
"""

import torch

SIGNS_SEED = 0x51  # the same matrix in every run: it is part of what the numbers mean


def rotation_of(columns: int, device: torch.device) -> torch.Tensor:
    """Orthogonal, columns x columns in float32; blocks of the largest power of two that divides ``columns``."""
    size = columns & -columns
    hadamard = torch.ones(1, 1)
    while len(hadamard) < size:
        hadamard = torch.cat([torch.cat([hadamard, hadamard], 1), torch.cat([hadamard, -hadamard], 1)])
    generator = torch.Generator().manual_seed(SIGNS_SEED)
    signs = torch.randint(0, 2, (columns, 1), generator=generator).to(torch.float32) * 2 - 1
    blocks = torch.block_diag(*[hadamard * size**-0.5] * (columns // size))
    return (signs * blocks).to(device)
