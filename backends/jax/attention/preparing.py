"""Attention made ready: shapes, computation, and what is said of it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from backends.blind_spots import ATTENTION
from backends.host.cpuinfo import memory_available_bytes
from backends.jax.attention.executed import executed
from backends.jax.attention.kernel import AttentionKernel
from backends.jax.attention.layout import operand_names, output_shape, shapes_of, width_of
from backends.jax.attention.passing import passing
from backends.jax.attention.reference import Attention
from backends.jax.attention.way import Way
from backends.jax.attention.ways import WAYS
from backends.jax.hlo import parse
from backends.jax.kernel import Plan
from backends.jax.target import FORMATS, Target
from suite.case import Case, Workload
from suite.gigabytes import gigabytes
from suite.jobs.attention import Sizes, sizes_of

SCORE_BYTES = 4
SCORE_ARRAYS = 2  # of all pairs, at the least: scores and weights
WITHOUT_SCORES = ("library_cudnn", "library_flash")


def prepare(case: Case, target: Target, sets: int, seed: int) -> AttentionKernel:
    """Draw ``sets`` input sets and compile a launch; raises ``MemoryError`` where a host has no room for the scores."""
    workload, sizes = case.workload, sizes_of(case.workload)
    if target.kind == "cpu" and case.implementation not in WITHOUT_SCORES:
        _refuse_too_large(sizes)
    plan = plan_of(case.implementation, workload.format, sizes)
    describe = partial(_description, case.implementation, workload, sizes, target)
    return AttentionKernel(workload, WAYS[case.implementation].layout, plan, sets, seed, describe)


def plan_of(implementation: str, format_name: str, sizes: Sizes) -> Plan:
    """Shapes, types and computation of an implementation."""
    way, kind = WAYS[implementation], FORMATS[format_name].operand
    shapes = shapes_of(sizes, way.layout)
    return Plan(
        operands=tuple((shapes[name], kind) for name in operand_names(sizes)),
        output=(output_shape(sizes, way.layout), kind),
        compute=_compute(way, format_name, sizes),
        formula=Attention(sizes, way.layout),
        products=way.products(sizes),
    )


def _compute(way: Way, format_name: str, sizes: Sizes) -> Callable[..., jax.Array]:
    inner, width = way.compute(sizes), width_of(sizes)

    def compute(*operands: jax.Array) -> jax.Array:
        with precise(format_name):
            results = [each.reshape(-1, width) for each in inner(*operands)]
        return results[0] if len(results) == 1 else jnp.concatenate(results)

    return compute


def precise(format_name: str) -> Any:
    """Keeps fp32 products from tensor cores and a TPU's bf16 passes; those of 16 bits stay as they are."""
    return jax.default_matmul_precision("highest" if format_name == "fp32" else None)


def _refuse_too_large(sizes: Sizes) -> None:
    """A host gives out memory that it does not have, and ends whoever then uses it."""
    needed, free = SCORE_ARRAYS * SCORE_BYTES * sizes.pairs, memory_available_bytes()
    if needed > free:
        raise MemoryError(
            f"scores of all pairs need {gigabytes(needed)}; {gigabytes(free)} are available; take fewer tokens or heads"
        )


def _description(implementation: str, workload: Workload, sizes: Sizes, target: Target, text: str) -> dict[str, Any]:
    way, numerics, module = WAYS[implementation], FORMATS[workload.format], parse(text)
    return {
        **executed(module, workload.format, target, opaque=way.products(sizes) == 0),
        **passing(module, target.kind),
        "call": way.call,
        "layout": way.layout.name,
        "operand_dtype": jnp.dtype(numerics.operand).name,
        "output_dtype": jnp.dtype(numerics.operand).name,
        "output": "dQ, dK and dV, one after the other" if sizes.is_backward else "O",
        "mask_alignment": "the last query stands at the last key",
        "accumulate": "fp32",
        "check_cannot_see": list(ATTENTION.get(workload.distribution, ())),
    }
