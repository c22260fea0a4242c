"""What XLA computes on a platform, and what it does not."""

from typing import Any, NamedTuple

import jax.numpy as jnp


class Numerics(NamedTuple):
    """Types of one matmul format, as JAX and as XLA name the operand's, and what products are summed in."""

    operand: Any
    xla: str
    output: Any
    accumulate: str


FORMATS = {
    "fp64": Numerics(jnp.float64, "f64", jnp.float64, "fp64"),
    "fp32": Numerics(jnp.float32, "f32", jnp.float32, "fp32"),
    "tf32": Numerics(jnp.float32, "f32", jnp.float32, "fp32"),
    "bf16": Numerics(jnp.bfloat16, "bf16", jnp.bfloat16, "fp32"),
    "fp16": Numerics(jnp.float16, "f16", jnp.float16, "fp32"),
    "int8": Numerics(jnp.int8, "s8", jnp.int32, "int32"),
    "fp8_e4m3": Numerics(jnp.float8_e4m3fn, "f8e4m3fn", jnp.bfloat16, "fp32"),
}


class Target(NamedTuple):
    """One device: ``kind`` is cpu, cuda, rocm or tpu; ``capability`` the compute capability of an NVIDIA device; ``lacking``
    pairs formats that a CPU has no instructions for with the words for it.
    """

    kind: str
    capability: tuple[int, int] | None = None
    lacking: tuple[tuple[str, str], ...] = ()

    def missing(self, format_name: str) -> str | None:
        """Why XLA cannot compute this format here; ``None`` when it can, natively or not."""
        if format_name == "tf32":
            return self._no_tf32()
        if format_name == "fp64" and self.kind == "tpu":
            return "a TPU has no fp64 arithmetic"
        return None

    def _no_tf32(self) -> str | None:
        if self.kind != "cuda":
            return f"tf32 is a mode of NVIDIA tensor cores; XLA on {self.kind} has none"
        if self.capability is not None and self.capability < (8, 0):
            return f"tf32 needs compute capability 8.0, this device has {self.capability[0]}.{self.capability[1]}"
        return None
