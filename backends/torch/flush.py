"""Emptying the last-level cache of everything a kernel will touch."""

import torch

# Rows long enough to stream, and enough of them to use every core and every unit.
_ROW_BYTES = 1 << 18


class Flush:
    """Reads a buffer of at least ``size_bytes`` of non-zero data, so that nothing else stays in a cache half its size.

    It reads and does not write: lines that a flush leaves dirty would be written back inside the next timed launch.
    """

    def __init__(self, device: torch.device, size_bytes: int) -> None:
        rows = max(1, -(-size_bytes // _ROW_BYTES))
        self._buffer = torch.full((rows, _ROW_BYTES // 4), 1.5, dtype=torch.float32, device=device)
        self._sums = torch.empty(rows, dtype=torch.float32, device=device)
        self.size_bytes = rows * _ROW_BYTES

    def __call__(self) -> None:
        torch.sum(self._buffer, dim=1, out=self._sums)
