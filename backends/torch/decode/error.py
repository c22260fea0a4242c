"""What storing K and V in a format costs: decoding of what is stored against that of the numbers before any rounding."""

import torch

from backends.seeds import mixed_seed
from backends.torch.decode.cache import CacheOperand
from backends.torch.decode.kernel import DecodeKernel
from backends.torch.decode.places import own_tokens
from backends.torch.decode.reference import Group
from suite.jobs.decode import Sizes

SEQUENCES = 4
EXACT = ("fp32",)  # drawn as it is stored


def quantisation_error(kernel: DecodeKernel, format_name: str, sizes: Sizes) -> float | None:
    """norm(O' - O) / norm(O) over sampled heads of sequences in float64: O of the cache as drawn, O' of what is stored.

    Queries are those that are stored: their type is the model's, not the cache's.  ``None`` where nothing is rounded, and on
    data that are all zeros.
    """
    if format_name in EXACT:
        return None
    pairs = [_results(kernel, sizes, each) for each in sampled(sizes)]
    size = float(torch.cat([right.flatten() for _, right in pairs]).norm())
    return float(torch.cat([(found - right).flatten() for found, right in pairs]).norm()) / size if size else None


def sampled(sizes: Sizes) -> list[Group]:
    """Some sequences from the first to the last, each with another KV head."""
    count = min(SEQUENCES, sizes.batch)
    chosen = dict.fromkeys(place * (sizes.batch - 1) // max(1, count - 1) for place in range(count))
    return [Group(each, place % sizes.num_kv_heads) for place, each in enumerate(chosen)]


def _results(kernel: DecodeKernel, sizes: Sizes, group: Group) -> tuple[torch.Tensor, torch.Tensor]:
    """Of one head of one sequence: what is stored gives, and what was drawn."""
    each, decoding = kernel.buffers[0], kernel.decoding
    queries = decoding.queries(each.operands, group)
    stored = [cache.worth(*group) for cache in (each.k, each.v)]
    exact = [_drawn(kernel, cache, group) for cache in (each.k, each.v)]
    found, right = (decoding.of(queries, k, v) for k, v in (stored, exact))
    return found, right


def _drawn(kernel: DecodeKernel, cache: CacheOperand, group: Group) -> torch.Tensor:
    """One sequence's numbers of a head as they were drawn, in float64."""
    assert kernel.seed is not None
    index = next(place for place, each in enumerate(kernel.buffers[0].operands) if each is cache)
    seed, own = mixed_seed(kernel.seed, 0, index), own_tokens(cache.sizes)[group.sequence]
    spans = ((0, cache.sizes.shared_prefix), own)
    drawn = [cache.drawn(kernel.distribution, seed, *span)[:, group.kv_head] for span in spans if span[0] < span[1]]
    return torch.cat(drawn).to(torch.float64)
