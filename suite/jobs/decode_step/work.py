"""What a decode step has to move and to compute, and what streaming its weights alone has."""

from typing import NamedTuple

from suite.case import Workload
from suite.jobs.decode.cache import (
    ENTRY_BYTES,
    LENGTH_BYTES,
    NUMBER_BYTES,
    cache_bytes,
    compulsory_bytes,
    flops,
    spare_bytes,
)
from suite.jobs.decode_step.formats import as_gemm
from suite.jobs.decode_step.sizes import Q_LEN, Sizes, sizes_of
from suite.jobs.gemm import GemmJob

TOKEN_BYTES = 4  # its number, int32
ROTATION_BYTES = 4  # a cosine or a sine, fp32
UNSCALED = "none"
GEMM = GemmJob()


class StepBytes(NamedTuple):
    """What one step moves at least, every piece once: the roofline's bytes, part by part.

    ``weights`` are the matrices of all layers and of the vocabulary, ``norms`` the vectors of all norms, ``kv`` K and V of
    every token in every layer's cache, the new ones included (written, and read by the step itself from wherever they are),
    ``inputs`` numbers of tokens with their rows of the embedding, page table and lengths, and what a position turns by.
    """

    weights: int
    norms: int
    kv: int
    inputs: int
    logits: int

    @property
    def total(self) -> int:
        return sum(self)


def step_bytes(workload: Workload) -> StepBytes:
    """See ``StepBytes``; activations pass from launch to launch and are no operands."""
    sizes, width = sizes_of(workload), NUMBER_BYTES[workload.format]
    cached = compulsory_bytes(sizes.cache.heads, sizes.cache.paging, workload.format, UNSCALED, Q_LEN, width)
    of_token = TOKEN_BYTES + sizes.hidden_size * width
    return StepBytes(
        weights=sizes.weights * width,
        norms=(2 * sizes.layers + 1) * sizes.hidden_size * width,
        kv=sizes.layers * cached.kv,
        inputs=sizes.batch * of_token + cached.table + sizes.head_dim * ROTATION_BYTES,
        logits=sizes.batch * sizes.vocabulary * width,
    )


def step_flops(sizes: Sizes) -> int:
    """2 of each weight for each sequence, and those of attention; norms, rotation and activation are not the multiplier's."""
    attended = flops(sizes.cache.heads, sizes.cache.tokens, Q_LEN)
    return 2 * sizes.batch * sizes.weights + sizes.layers * attended


def weights_bytes(workload: Workload) -> int:
    """Of every product each operand once: weights with their scales, activations, results."""
    sizes = sizes_of(workload)
    return sum(each.times * GEMM.work(as_gemm(workload, sizes, each)).compulsory_bytes for each in sizes.products)


def activation_bytes(sizes: Sizes, number_bytes: int) -> int:
    """What launches of a step pass on and the check looks at: for each layer q, k, v, attention, two streams, feed-forward."""
    of_layer = 2 * sizes.q_width + 2 * sizes.kv_width + 2 * sizes.hidden_size + sizes.intermediate_size
    return sizes.batch * (sizes.layers * of_layer + sizes.hidden_size) * number_bytes


def one_piece_bytes(workload: Workload) -> int:
    """What caches in one piece have more than those in pages: what no token is in is a whole sequence, not a page."""
    sizes, width = sizes_of(workload), NUMBER_BYTES[workload.format]
    return sizes.layers * sizes.kv_len * 2 * sizes.kv_width * width


def resting_bytes(workload: Workload) -> int:
    """Memory of a step beside what it moves: the embedding's other rows, unused places of caches and table, other positions.

    Places of tokens in the cache, which filling needs, included.
    """
    sizes, width = sizes_of(workload), NUMBER_BYTES[workload.format]
    stored = (sizes.cache.heads, sizes.cache.paging, workload.format, UNSCALED)
    moved = compulsory_bytes(*stored, Q_LEN, width)
    embedding = (sizes.vocabulary - min(sizes.batch, sizes.vocabulary)) * sizes.hidden_size * width
    rotation = sizes.kv_len * sizes.head_dim * ROTATION_BYTES
    table = spare_bytes(*stored) + sizes.batch * (ENTRY_BYTES + LENGTH_BYTES)
    caches = sizes.layers * (cache_bytes(*stored) - moved.kv + spare_bytes(*stored))
    places = 8 * sizes.cache.paging.unique_tokens
    return embedding + rotation + table + caches + places
