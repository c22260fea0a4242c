"""Numbers as a cache's format stores them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

DTYPES: Mapping[str, Any] = {
    "fp32": jnp.float32,
    "bf16": jnp.bfloat16,
    "fp16": jnp.float16,
    "fp8_e4m3": jnp.float8_e4m3fn,
    "int8": jnp.int8,
}
LARGEST = {"fp8_e4m3": 448.0, "int8": 127.0}  # of the codes


class Storing(NamedTuple):
    """A cache's format, and what shares a scale: ``none``, ``tensor`` or ``token``."""

    format: str
    scaling: str

    @property
    def dtype(self) -> Any:
        return DTYPES[self.format]

    def scales_for(self, largest: jax.Array) -> jax.Array:
        """Float32 scales that carry the largest magnitudes of their numbers to the format's largest code; 1 for zeros."""
        return jnp.where(largest > 0, largest / LARGEST[self.format], 1.0).astype(jnp.float32)

    def codes(self, numbers: jax.Array, scales: jax.Array | None) -> jax.Array:
        """Float32 numbers rounded to the format, ``scales`` (to be broadcast) taken out."""
        if scales is None:
            return numbers.astype(self.dtype)
        scaled = numbers / scales
        if self.format == "int8":
            scaled = jnp.round(scaled)
        return jnp.clip(scaled, -LARGEST[self.format], LARGEST[self.format]).astype(self.dtype)
