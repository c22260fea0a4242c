"""Codes read out of words in the order of the kernel, place by place as its comment says."""

import torch


def codes_in(words: torch.Tensor, n: int, k: int) -> torch.Tensor:
    """Codes (n x k, uint8) of ``Ordered.words``."""
    halves = words.contiguous().view(torch.int16).reshape(-1).to(torch.int32)
    rows, along = torch.arange(n)[:, None], torch.arange(k)[None, :]
    h, g = rows >> 3 & 1, rows & 7
    u, f, q, s, p, e = (along >> shift & mask for shift, mask in ((6, 1), (5, 1), (3, 3), (2, 1), (1, 1), (0, 1)))
    group = along // 128
    group = group // 16 * 16 + group % 4 * 4 + group // 4 % 4  # those of four strips, by turns
    block = (group // 16 * words.shape[1] + rows // 16) * 16 + group % 16
    return (halves[block * 512 + u * 256 + (g * 4 + q) * 8 + f * 4 + s * 2 + e] >> 4 * (2 * p + h) & 0xF).to(torch.uint8)


def of_rows(lanes: torch.Tensor, n: int, groups: int) -> torch.Tensor:
    """A grid (n x groups) of ``Ordered.scales`` or ``zero_points``."""
    rows, of_tiles = torch.arange(n), lanes.view(*lanes.shape[:2], 4, 8, 4, 2)  # block, tile, strip, g, group, h
    return of_tiles[:, rows // 16, :, rows % 8, :, rows // 8 % 2].reshape(n, -1)[:, :groups]
