"""Where the new token's key and value stand in a layer's caches."""

import torch

from backends.torch.decode.cache import CacheOperand
from backends.torch.decode.places import latest_tokens
from suite.jobs.decode import Sizes

IN_ORDER = "contiguous"


def in_one_piece(sizes: Sizes) -> Sizes:
    """The same cache with a page for each sequence, one behind the other: (batch, kv_heads, kv_len, columns), and a spare one.

    The numbers of tokens do not depend on how their pages lie.
    """
    return sizes._replace(page_size=sizes.kv_len, page_order=IN_ORDER)


def newest(cache: CacheOperand) -> torch.Tensor:
    """A copy of what stands in the newest token's place of each sequence: (batch, kv_heads x columns)."""
    pages, within = _places(cache)
    return cache.data[pages, :, within].flatten(1)


def put_newest(cache: CacheOperand, numbers: torch.Tensor) -> None:
    """Write there; ``numbers`` as ``newest`` returns them."""
    pages, within = _places(cache)
    cache.data[pages, :, within] = numbers.unflatten(1, (cache.data.shape[1], -1))


def _places(cache: CacheOperand) -> tuple[torch.Tensor, torch.Tensor]:
    places = cache.table.places[latest_tokens(cache.sizes, cache.data.device)]
    return places // cache.sizes.page_size, places % cache.sizes.page_size
