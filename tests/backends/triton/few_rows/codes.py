"""Codes read out of words in the order of the kernel, place by place as its comment says."""

import torch


def codes_in(words: torch.Tensor, n: int, k: int) -> torch.Tensor:
    """Codes (n x k, uint8) of ``Ordered.words``."""
    halves = words.contiguous().view(torch.int16).reshape(-1).to(torch.int32)
    rows, along = torch.arange(n)[:, None], torch.arange(k)[None, :]
    h, g = rows >> 3 & 1, rows & 7
    u, f, q, s, p, e = (along >> shift & mask for shift, mask in ((6, 1), (5, 1), (3, 3), (2, 1), (1, 1), (0, 1)))
    block = rows // 16 * (k // 128) + along // 128
    return (halves[block * 512 + u * 256 + (g * 4 + q) * 8 + f * 4 + s * 2 + e] >> 4 * (2 * p + h) & 0xF).to(torch.uint8)


def of_rows(lanes: torch.Tensor, n: int) -> torch.Tensor:
    """A grid (n x groups) of ``Ordered.scales`` or ``zero_points``."""
    rows = torch.arange(n)
    return lanes[rows // 16, :, rows % 8 * 2 + rows // 8 % 2]
