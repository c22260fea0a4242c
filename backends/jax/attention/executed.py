"""What the products of a compiled launch really take."""

from typing import Any

from backends.jax.hlo import Module, product_types
from backends.jax.target import FORMATS, Target
from suite.jobs.emulation import EXECUTED_PIPE, WIDE_ON_A_CPU


def executed(module: Module, format_name: str, target: Target, *, opaque: bool, stored: str = "") -> dict[str, Any]:
    """Native where every product takes the format as it is; of a library's own, which are ``opaque``, it is known.

    ``stored`` is the format of a cache that products may take beside it without converting it first.
    """
    taken, wanted = product_types(module), FORMATS[format_name].xla
    beside = {FORMATS[stored].xla} - {wanted} if stored else set()
    if taken - beside == {wanted} or (opaque and not taken):
        told = dict(target.lacking).get(format_name, "")
        if not told:
            return {"execution": "native", "emulation": ""}
        return {"execution": "emulated", "emulation": f"converted to fp32: {told}", EXECUTED_PIPE: WIDE_ON_A_CPU}
    told = f"XLA multiplies {', '.join(sorted(taken)) or 'in a form that its text does not show'}"
    # On a GPU or TPU what multiplies f32 may be a narrower unit.
    on_fp32 = target.kind == "cpu" and taken == {"f32"}
    return {"execution": "emulated", "emulation": told, **({EXECUTED_PIPE: WIDE_ON_A_CPU} if on_fp32 else {})}
