"""``jax.nn.dot_product_attention``: XLA's own composition of it (``library_math``), and cuDNN's (``library_cudnn``).

It is called as its users call it, on (batch, rows, heads, columns).
"""

from functools import partial

import jax

from backends.jax.attention.layout import ROWS_FIRST
from backends.jax.attention.way import Compute, Results, Way, products_of
from backends.jax.target import Target
from suite.case import Workload
from suite.jobs.attention import Sizes, sizes_of
from suite.jobs.attention.sizes import FULL

CALL = "jax.nn.dot_product_attention"
WITHOUT_FP16 = ("cpu", "tpu")  # whose compilers have no products of fp16 with fp32 sums
OLDEST_WITH_CUDNN, HOPPER = (8, 0), (9, 0)
WIDEST, WIDEST_ON_HOPPER = 128, 256  # columns of a head that cuDNN takes


def compute(implementation: str, sizes: Sizes) -> Compute:
    """Forward, or the gradients by ``jax.vjp``."""

    def forward(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        window = None if sizes.window is None else (sizes.window - 1, 0)  # of keys before the query's own, and behind it
        causal = sizes.mask != FULL
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal, local_window_size=window, implementation=implementation)

    def backward(q: jax.Array, k: jax.Array, v: jax.Array, do: jax.Array) -> Results:
        _, pull = jax.vjp(forward, q, k, v)
        return tuple(pull(do))

    return backward if sizes.is_backward else lambda q, k, v: (forward(q, k, v),)


def refuses_shapes(name: str, sizes: Sizes) -> str | None:
    """What the function itself does not take, whoever computes."""
    if sizes.head_dim != sizes.v_head_dim:
        return f"{name}: {CALL} wants as many columns of V as of K, not {sizes.v_head_dim} beside {sizes.head_dim}; take naive"
    if sizes.mask != FULL and sizes.q_len != sizes.kv_len:
        return f"{name}: {CALL} has the first query, not the last, stand at the first key; take naive"
    return None


def refuses_math(workload: Workload, target: Target) -> str | None:
    """What XLA's composition does not take on a device."""
    if workload.format == "fp16" and target.kind in WITHOUT_FP16:
        return (
            f"library_math: {CALL} asks for fp16 products with fp32 sums, which XLA does not offer on a {target.kind.upper()}; "
            "take naive, or bf16"
        )
    return refuses_shapes("library_math", sizes_of(workload))


def refuses_cudnn(workload: Workload, target: Target) -> str | None:
    """What cuDNN does not take; of a capability that is not known nothing is said."""
    sizes = sizes_of(workload)
    if target.kind != "cuda":
        return (
            f"library_cudnn is cuDNN, which is for NVIDIA GPUs; the device here is a {target.kind.upper()}; take library_math"
        )
    if workload.format not in ("bf16", "fp16"):
        return f"library_cudnn takes bf16 and fp16, not {workload.format}"
    if sizes.is_backward:
        return (
            "library_cudnn backward: JAX differentiates cuDNN's attention by running its forward pass again in front of it, "
            "which would be timed too; take library_math or naive"
        )
    return refuses_shapes("library_cudnn", sizes) or _refuses_capability(sizes, target.capability)


def _refuses_capability(sizes: Sizes, capability: tuple[int, int] | None) -> str | None:
    if capability is None:
        return None
    had = ".".join(str(part) for part in capability)
    if capability < OLDEST_WITH_CUDNN:
        return f"library_cudnn needs compute capability 8.0, this device has {had}"
    widest = WIDEST_ON_HOPPER if capability >= HOPPER else WIDEST
    if sizes.head_dim > widest:
        return f"library_cudnn takes a head_dim of up to {widest} at compute capability {had}, not {sizes.head_dim}"
    return None


MATH = Way(ROWS_FIRST, refuses_math, partial(compute, "xla"), products_of, f"{CALL}, implementation xla")
# cuDNN's products stand in no HLO.
CUDNN = Way(ROWS_FIRST, refuses_cudnn, partial(compute, "cudnn"), lambda sizes: 0, f"{CALL}, implementation cudnn")
