"""The page table of one input set, and where in the cache its tokens stand."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from suite.jobs.decode import Sizes
from suite.jobs.decode.cache import SPARE_PAGES


class Table(NamedTuple):
    """``entries`` (batch x columns, int32); an entry behind a sequence's last page names the spare page, which has no token.

    A place is page x page_size + place in the page.  ``latest`` is that of each sequence's last token, ``unused`` are those
    without a token, the spare page's among them.
    """

    entries: NDArray[np.int32]
    latest: NDArray[np.int64]
    unused: NDArray[np.int64]


def drawn_table(sizes: Sizes, columns: int, seed: int) -> Table:
    """Draw which page is where; ``columns`` are more than the pages of the longest sequence."""
    pages = sizes.pages(seed)
    counts = np.array(pages.counts)
    entries = np.full((sizes.batch, columns), pages.page_count, dtype=np.int32)
    used = np.arange(pages.table.shape[1])[None, :] < counts[:, None]
    entries[:, : pages.table.shape[1]] = np.where(used, pages.table, pages.page_count)
    return Table(entries, _latest(sizes, entries), _unused(sizes, entries, counts))


def cache_pages(sizes: Sizes) -> int:
    """Pages of a cache with those that no sequence has."""
    return sizes.paging.page_count + SPARE_PAGES


def _latest(sizes: Sizes, entries: NDArray[np.int32]) -> NDArray[np.int64]:
    last = np.array(sizes.tokens) - 1
    pages = entries[np.arange(sizes.batch), last // sizes.page_size].astype(np.int64)
    places: NDArray[np.int64] = pages * sizes.page_size + last % sizes.page_size
    return places


def _unused(sizes: Sizes, entries: NDArray[np.int32], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """What is left of each sequence's last page, and the spare page."""
    free = np.zeros(cache_pages(sizes) * sizes.page_size, dtype=bool)
    free[sizes.paging.page_count * sizes.page_size :] = True
    last_pages = entries[np.arange(sizes.batch), counts - 1].astype(np.int64)
    for page, length, count in zip(last_pages, sizes.tokens, counts, strict=True):
        taken = length - (int(count) - 1) * sizes.page_size
        free[page * sizes.page_size + taken : (page + 1) * sizes.page_size] = True
    return np.flatnonzero(free)
