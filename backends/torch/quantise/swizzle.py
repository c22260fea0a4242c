"""One-byte block scales in the order that NVIDIA's block-scaled products want them: tiles of 128 rows x 4 blocks along K.

A tile is 512 consecutive bytes; tiles follow each other along K, then along the rows.  Within one, the scale of row r and block
b is at (r mod 32) * 16 + (r div 32) * 4 + b.  Rows and blocks are padded with zeros to whole tiles.

Sources: cuBLAS documentation (https://docs.nvidia.com/cuda/cublas/#d-block-scaling-factors-layout); PTX ISA, scale factors of
tcgen05.mma with block_scale; examples of nvmath-python, ``get_block_scale_offset``.  In torch it is
``SwizzleType.SWIZZLE_32_4_4``.
"""

import torch

TILE_ROWS, TILE_BLOCKS, LANES = 128, 4, 32


def swizzled_bytes(rows: int, k_blocks: int) -> int:
    """Bytes of the tiles that cover rows x k_blocks scales."""
    return -(-rows // TILE_ROWS) * TILE_ROWS * -(-k_blocks // TILE_BLOCKS) * TILE_BLOCKS


def swizzle(scales: torch.Tensor) -> torch.Tensor:
    """Scales (rows x blocks along K, a one-byte type) as one contiguous line of tiles, in the same type."""
    assert scales.dtype.itemsize == 1, f"scales of one byte are swizzled, not {scales.dtype}"
    rows, k_blocks = scales.shape
    padding = (0, -k_blocks % TILE_BLOCKS, 0, -rows % TILE_ROWS)
    padded = torch.nn.functional.pad(scales.view(torch.uint8), padding)
    tiles = padded.view(-1, TILE_ROWS // LANES, LANES, padded.shape[1] // TILE_BLOCKS, TILE_BLOCKS)
    return tiles.permute(0, 3, 2, 1, 4).reshape(-1).view(scales.dtype)


def unswizzle(line: torch.Tensor, rows: int, k_blocks: int) -> torch.Tensor:
    """The inverse of ``swizzle``: rows x k_blocks scales, without the padding."""
    expected = swizzled_bytes(rows, k_blocks)
    assert line.numel() == expected, f"{rows} x {k_blocks} scales take {expected} bytes of tiles, not {line.numel()}"
    tiles = line.view(torch.uint8).view(-(-rows // TILE_ROWS), -1, LANES, TILE_ROWS // LANES, TILE_BLOCKS)
    padded = tiles.permute(0, 3, 2, 1, 4).reshape(-(-rows // TILE_ROWS) * TILE_ROWS, -1)
    return padded[:rows, :k_blocks].contiguous().view(line.dtype)
