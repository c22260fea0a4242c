"""A decoding step made ready: shapes, computation, and what is said of it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from backends.blind_spots import of_decode
from backends.decode_data import meeting_columns
from backends.host.cpuinfo import memory_available_bytes
from backends.jax.attention.executed import executed
from backends.jax.attention.passing import passing
from backends.jax.attention.preparing import precise
from backends.jax.decode.filling import Step, cache_shape
from backends.jax.decode.kernel import DecodeKernel
from backends.jax.decode.reference import Decoding
from backends.jax.decode.stored import DTYPES, Storing
from backends.jax.decode.way import Way
from backends.jax.decode.ways import WAYS
from backends.jax.hlo import parse
from backends.jax.kernel import Plan
from backends.jax.target import Target
from suite.case import Case, Workload
from suite.gigabytes import gigabytes
from suite.jobs.decode import FORMATS, DecodeJob, activation_of, scaling_of, sizes_of
from suite.jobs.decode.cache import cache_bytes
from suite.jobs.decode.job import bytes_of, separate_bytes_of

WIDE_BYTES = 4  # of a gathered number where a host converts it


def prepare(case: Case, target: Target, sets: int, seed: int) -> DecodeKernel:
    """Draw ``sets`` input sets and compile a launch; raises ``MemoryError`` where a host has no room for what is gathered."""
    workload = case.workload
    step = step_of(case.implementation, workload)
    if target.kind == "cpu":
        _refuse_too_large(step)
    describe = partial(_description, case.implementation, workload, step, target)
    moved_bytes = DecodeJob().work(workload).compulsory_bytes
    plan = plan_of(case.implementation, step)
    return DecodeKernel(step, plan, sets, seed, workload.distribution, describe, moved_bytes)


def step_of(implementation: str, workload: Workload) -> Step:
    """What an implementation is given of a workload."""
    way, sizes = WAYS[implementation], sizes_of(workload)
    storing = Storing(workload.format, scaling_of(workload))
    return Step(sizes, activation_of(workload), storing, way.columns(sizes))


def plan_of(implementation: str, step: Step) -> Plan:
    """Shapes, types and computation of an implementation; scales are given beside the operands."""
    way, sizes, formula = WAYS[implementation], step.sizes, Decoding(step)
    activation = DTYPES[step.activation]
    return Plan(
        operands=(
            ((sizes.batch, step.columns), jnp.int32),
            ((sizes.batch,), jnp.int32),
            ((*step.rows, sizes.head_dim), activation),
            *((cache_shape(step, width), step.storing.dtype) for width in step.caches),
        ),
        output=(formula.shape, activation),
        compute=_compute(way, step),
        formula=formula,
        products=way.products,
    )


def _compute(way: Way, step: Step) -> Callable[..., jax.Array]:
    inner = way.compute(step)

    def compute(*operands: jax.Array) -> jax.Array:
        with precise(step.activation):
            return inner(*operands)

    return compute


def _refuse_too_large(step: Step) -> None:
    """A host gives out memory that it does not have, and ends whoever then uses it."""
    sizes = step.sizes
    padded = max(sizes.paging.counts) * sizes.page_size
    numbers = sizes.batch * sizes.num_kv_heads * padded * sum(step.caches)
    needed, free = numbers * WIDE_BYTES, memory_available_bytes()
    if needed > free:
        raise MemoryError(
            f"gathered keys and values need {gigabytes(needed)}; {gigabytes(free)} are available; take smaller batches or "
            "kv_lens"
        )


def _description(implementation: str, workload: Workload, step: Step, target: Target, text: str) -> dict[str, Any]:
    way, sizes, module = WAYS[implementation], step.sizes, parse(text)
    activation = jnp.dtype(DTYPES[step.activation]).name
    columns = meeting_columns(sizes, workload.distribution)
    return {
        **executed(module, step.activation, target, opaque=way.products == 0, stored=workload.format),
        **passing(module, target.kind),
        "call": way.call,
        "pages_are": way.pages,
        "cache_layout": "KV heads, pages, tokens of a page, columns",
        "operand_dtype": jnp.dtype(step.storing.dtype).name,
        "activation_dtype": activation,
        "output_dtype": activation,
        **({"scales": f"fp32, one a {step.storing.scaling}"} if FORMATS[workload.format].is_quantised else {}),
        "values": "the first columns of the keys, stored once" if sizes.has_shared_values else "of their own",
        "mask_alignment": "the last new token stands at the last key",
        "lengths": {"shortest": min(sizes.tokens), "longest": max(sizes.tokens)},
        "pages": sizes.paging.page_count,
        "page_memory_wasted": sizes.paging.wasted,
        "cache_bytes": cache_bytes(sizes.heads, sizes.paging, workload.format, step.storing.scaling),
        "bytes": bytes_of(workload)._asdict(),
        **({"bytes_without_sharing": separate_bytes_of(workload).total} if sizes.shared_prefix else {}),
        **({"latest_keys": {"columns_of_a_query": columns}} if columns else {}),
        "accumulate": "fp32",
        "check_cannot_see": list(of_decode(workload, sizes)),
    }
