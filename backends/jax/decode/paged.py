"""The paged attention that JAX ships for TPUs, a Pallas kernel that goes through the page table itself."""

import jax

from backends.jax.decode.filling import Step
from backends.jax.decode.way import Compute, Way
from backends.jax.target import Target
from suite.case import Workload
from suite.jobs.decode import Sizes, sizes_of
from suite.jobs.decode.cache import SPARE_ENTRIES

CALL = "jax.experimental.pallas.ops.tpu.paged_attention.paged_attention"
BLOCK_TOKENS = 512  # of a sequence that the kernel is told to fetch at a time; its scratch memory then holds any head of 1024
LANES = 128


def compute(step: Step) -> Compute:
    """One step."""
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    sizes = step.sizes

    def launch(table: jax.Array, lengths: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        # The kernel itself scales no scores.  It counts in 32 bits, whatever JAX counts in.
        queries = (q * sizes.head_dim**-0.5).astype(q.dtype).reshape(sizes.batch, sizes.num_q_heads, sizes.head_dim)
        with jax.enable_x64(False):
            found = paged_attention(queries, k, v, lengths, table, pages_per_compute_block=block_pages(sizes))
        return found.reshape(-1, sizes.v_head_dim)

    return launch


def block_pages(sizes: Sizes) -> int:
    """Pages that the kernel fetches at a time."""
    return max(1, min(BLOCK_TOKENS // sizes.page_size, max(sizes.paging.counts) + SPARE_ENTRIES))


def columns(sizes: Sizes) -> int:
    """Of the page table: whole blocks, of which the kernel reads those that a sequence has tokens in."""
    wanted, block = max(sizes.paging.counts) + SPARE_ENTRIES, block_pages(sizes)
    return -(-wanted // block) * block


def refuses(workload: Workload, target: Target) -> str | None:
    """What the kernel does not take."""
    if target.kind != "tpu":
        return (
            f"library_flash through XLA is JAX's Pallas kernel for TPUs; the device here is a {target.kind.upper()}; take "
            "naive, which gathers the pages"
        )
    sizes = sizes_of(workload)
    if workload.format == "fp32":
        return "library_flash multiplies fp32 in bf16 on a TPU: JAX's kernel asks for no more; take naive"
    if workload.format != "bf16":
        return f"library_flash takes a cache in bf16 on a TPU, not {workload.format}; take naive"
    if sizes.q_len > 1:
        return f"library_flash takes one new token of a sequence, not {sizes.q_len}; take naive"
    if sizes.has_shared_values:
        return "library_flash takes values of their own, not the first columns of the keys (MLA); take naive"
    if sizes.head_dim % LANES:
        return f"library_flash takes a head_dim that is a multiple of {LANES}, not {sizes.head_dim}; take naive"
    return None


# The kernel's products stand in no HLO.
WAY = Way(refuses, compute, columns, 0, CALL, "read where they are, through the page table")
