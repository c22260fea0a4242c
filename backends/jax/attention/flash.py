"""The flash attention that JAX ships for TPUs, a Pallas kernel, with the blocks that it takes by itself."""

import jax

from backends.jax.attention.layout import HEADS_FIRST
from backends.jax.attention.way import Compute, Results, Way
from backends.jax.target import Target
from suite.case import Workload
from suite.jobs.attention import Sizes, sizes_of
from suite.jobs.attention.sizes import CAUSAL, FULL

CALL = "jax.experimental.pallas.ops.tpu.flash_attention.flash_attention"
BLOCK = 128  # queries and keys in a block of the kernel's own choice
LANES = 128


def compute(sizes: Sizes) -> Compute:
    """Forward."""
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    def forward(q: jax.Array, k: jax.Array, v: jax.Array) -> Results:
        with jax.enable_x64(False):  # the kernel counts its blocks in 32 bits, whatever JAX counts in
            return (flash_attention(q, k, v, causal=sizes.mask == CAUSAL, sm_scale=sizes.head_dim**-0.5),)

    return forward


def refuses(workload: Workload, target: Target) -> str | None:
    """What the kernel does not take."""
    if target.kind != "tpu":
        other = "library_cudnn or library_math" if target.kind == "cuda" else "library_math"
        here = f"the device here is a {target.kind.upper()}"
        return f"library_flash through XLA is JAX's Pallas kernel for TPUs; {here}; take {other}"
    sizes = sizes_of(workload)
    return _refuses_numbers(workload.format, sizes) or _refuses_shapes(sizes)


def _refuses_numbers(format_name: str, sizes: Sizes) -> str | None:
    if format_name == "fp32":
        return "library_flash multiplies fp32 in bf16: JAX's kernel fixes the precision; take library_math or naive"
    if format_name != "bf16":
        return f"library_flash takes bf16 on a TPU, whose kernels load no {format_name}"
    if sizes.is_backward:
        return (
            "library_flash backward: JAX differentiates its kernel by running the forward pass again in front of it, which "
            "would be timed too; take library_math or naive"
        )
    return None


def _refuses_shapes(sizes: Sizes) -> str | None:
    if sizes.group > 1:
        return f"library_flash takes as many heads of K and V as of Q, not {sizes.num_kv_heads} beside {sizes.num_q_heads}"
    if sizes.head_dim != sizes.v_head_dim:
        return f"library_flash takes as many columns of V as of K, not {sizes.v_head_dim} beside {sizes.head_dim}"
    if sizes.head_dim > LANES and sizes.head_dim % LANES:
        return f"library_flash takes a head_dim of up to {LANES} or a multiple of it, not {sizes.head_dim}"
    if sizes.mask not in (FULL, CAUSAL):
        return f"library_flash has no mask {sizes.mask}; take library_math or naive"
    if sizes.q_len != sizes.kv_len or sizes.q_len % BLOCK:
        return f"library_flash takes as many queries as keys, a multiple of {BLOCK}, not {sizes.q_len} and {sizes.kv_len}"
    return None


# The kernel's products stand in no HLO.
WAY = Way(HEADS_FIRST, refuses, compute, lambda sizes: 0, CALL)
