"""Which of the named models fit on one accelerator, by the bytes of their weights and of their KV cache.

What is counted: every parameter, the scales of the 4-bit format, and a 16-bit KV cache for one sequence.  What is not:
activations, workspaces, the runtime's context and fragmentation, for which ``RESERVE`` of the memory is set aside, and the
scales of fp8 weights (under 0.1 %).  Whether the accelerator computes in the format is another question: see its peaks.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from suite.hardware.models import Model, all_models
from suite.hardware.spec import HardwareSpec

RESERVE = 0.10  # of the memory; serving engines commonly leave the same share
CONTEXTS = (4096, 32768, 131072)
# Bits per weight of the layers' matrices; mxfp4 has one 8-bit scale for 32 weights of 4 bits.
WEIGHT_BITS = {"bf16": 16.0, "fp8": 8.0, "4-bit": 4.25}
OTHER_BYTES = 2


class Fit(NamedTuple):
    """One model in one format.  ``max_context`` is in tokens, by memory alone; the model itself may not go that far.

    0 when not even the weights fit.
    """

    model: Model
    format: str
    weight_bytes: int
    kv_bytes_per_token: int
    max_context: int

    @property
    def contexts(self) -> dict[int, bool]:
        """Whether each context of ``CONTEXTS`` fits in memory beside the weights."""
        return {context: context <= self.max_context for context in CONTEXTS}

    @property
    def arithmetic(self) -> str:
        """``6,979,321,856 x 16 bits + 1,050,939,392 x 2 B = 16.1 GB``."""
        linear, other = self.model.linear_parameters, self.model.parameters - self.model.linear_parameters
        return (
            f"{linear:,} x {WEIGHT_BITS[self.format]:g} bits + {other:,} x {OTHER_BYTES} B = {self.weight_bytes / 1e9:.1f} GB"
        )


class Fits(NamedTuple):
    """Every model in every format on ``memory_bytes``, of which ``usable_bytes`` may hold weights and cache."""

    memory_bytes: int
    usable_bytes: int
    rows: tuple[Fit, ...]

    def largest(self, format: str) -> Fit | None:
        """The model with the most parameters that fits with the shortest context."""
        fitting = [row for row in self.rows if row.format == format and row.max_context >= CONTEXTS[0]]
        return max(fitting, key=lambda row: row.model.parameters, default=None)

    def to_json(self) -> dict[str, Any]:
        largest = {format: self.largest(format) for format in WEIGHT_BITS}
        return {
            "memory_bytes": self.memory_bytes,
            "usable_bytes": self.usable_bytes,
            "reserve": RESERVE,
            "largest": {format: row.model.id if row else None for format, row in largest.items()},
            "models": [_row_json(row) for row in self.rows],
        }


def weight_bytes(model: Model, format: str) -> int:
    """Bytes of all parameters: the layers' matrices in ``format``, the rest in 16 bits."""
    linear = model.linear_parameters
    return round(linear * WEIGHT_BITS[format] / 8) + (model.parameters - linear) * OTHER_BYTES


def fits(spec: HardwareSpec, models: Sequence[Model] | None = None) -> Fits | None:
    """What fits on the whole of ``spec``'s memory; ``None`` where that is not known."""
    if spec.memory_bytes is None:
        return None
    usable = int(spec.memory_bytes * (1 - RESERVE))
    chosen = all_models() if models is None else models
    return Fits(spec.memory_bytes, usable, tuple(_fit(model, format, usable) for model in chosen for format in WEIGHT_BITS))


def _fit(model: Model, format: str, usable_bytes: int) -> Fit:
    weights, per_token = weight_bytes(model, format), model.kv_bytes_per_token()
    return Fit(model, format, weights, per_token, max(0, (usable_bytes - weights) // per_token))


def _row_json(row: Fit) -> dict[str, Any]:
    return {
        "model": row.model.id,
        "format": row.format,
        "parameters": row.model.parameters,
        "weight_bytes": row.weight_bytes,
        "kv_bytes_per_token": row.kv_bytes_per_token,
        "max_context_by_memory": row.max_context,
        "model_context": row.model.max_context,
        "contexts": {str(context): fitting for context, fitting in row.contexts.items()},
        "arithmetic": f"{row.arithmetic}; KV {row.model.kv_arithmetic}",
    }
