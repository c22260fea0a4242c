"""What the products of a compiled launch really take."""

from typing import Any

from backends.jax.hlo import Module, product_types
from backends.jax.target import FORMATS
from suite.jobs.emulation import EXECUTED_PIPE, WIDE_ON_A_CPU


def executed(module: Module, format_name: str, kind: str, *, opaque: bool, stored: str = "") -> dict[str, Any]:
    """Native where every product takes the format as it is; of a library's own, which are ``opaque``, it is known.

    ``stored`` is the format of a cache that products may take beside it without converting it first.
    """
    taken, wanted = product_types(module), FORMATS[format_name].xla
    beside = {FORMATS[stored].xla} - {wanted} if stored else set()
    if taken - beside == {wanted} or (opaque and not taken):
        return {"execution": "native", "emulation": ""}
    told = f"XLA multiplies {', '.join(sorted(taken)) or 'in a form that its text does not show'}"
    # On a GPU or TPU what multiplies f32 may be a narrower unit.
    on_fp32 = kind == "cpu" and taken == {"f32"}
    return {"execution": "emulated", "emulation": told, **({EXECUTED_PIPE: WIDE_ON_A_CPU} if on_fp32 else {})}
