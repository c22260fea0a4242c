"""Emptying a CPU's last-level cache of everything a kernel will touch, with XLA's own threads."""

import jax
import jax.numpy as jnp

_ROW_BYTES = 1 << 18


class Flush:
    """Reads a buffer of at least ``size_bytes`` of non-zero data; it writes only a sum a row.

    Lines that a flush leaves dirty would be written back inside the next timed launch.
    """

    def __init__(self, size_bytes: int) -> None:
        rows = max(1, -(-size_bytes // _ROW_BYTES))
        self._buffer = jnp.full((rows, _ROW_BYTES // 4), 1.5, jnp.float32)
        self._sums = jax.jit(lambda buffer: jnp.sum(buffer, axis=1)).lower(self._buffer).compile()
        self.size_bytes = rows * _ROW_BYTES

    def __call__(self) -> None:
        jax.block_until_ready(self._sums(self._buffer))
