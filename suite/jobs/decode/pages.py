"""Page tables: which page of the cache has which tokens of a sequence."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from suite.errors import UsageError, nearest

ORDERS = ("random", "contiguous")


class Pages(NamedTuple):
    """The pages of a batch.

    ``table`` (batch x pages of the longest sequence) in int32 has 0 behind a sequence's last page; ``page_count`` pages make up
    the cache, each used, and by one sequence only unless it is of the ``shared_tokens`` that all begin with.
    """

    table: np.ndarray
    lengths: tuple[int, ...]
    page_size: int
    page_count: int
    shared_tokens: int = 0

    @property
    def entries(self) -> int:
        """Entries of the table that stand for a page."""
        return sum(-(-length // self.page_size) for length in self.lengths)

    @property
    def unique_tokens(self) -> int:
        """Tokens in the cache: those of a shared prefix once."""
        return sum(self.lengths) - (len(self.lengths) - 1) * self.shared_tokens

    @property
    def wasted(self) -> float:
        """The share of the cache's memory that has no token: the rest of each sequence's last page."""
        return 1.0 - self.unique_tokens / (self.page_count * self.page_size)


def paged(lengths: Sequence[int], page_size: int, *, shared_tokens: int = 0, order: str = "random", seed: int = 0) -> Pages:
    """Give every sequence its pages: drawn without repeats, or one after the other where ``order`` is ``contiguous``.

    All sequences begin with the same ``shared_tokens``, in the same pages: whole ones, since the next token of a page belongs
    to one sequence only.  Raises ``UsageError`` for what no table can have, naming the limit.
    """
    if order not in ORDERS:
        raise UsageError(f"unknown order of pages '{order}'{nearest(order, ORDERS)}")
    if page_size < 1 or not lengths or min(lengths) < 1:
        raise UsageError(f"pages of {page_size} tokens for sequences of {list(lengths)}; all of them have at least 1 token")
    if shared_tokens % page_size or not 0 <= shared_tokens <= min(lengths):
        most = min(lengths) // page_size * page_size
        raise UsageError(
            f"a shared prefix of {shared_tokens} tokens; whole pages of {page_size} are shared, and of the shortest "
            f"sequence at most {most} tokens"
        )
    shared = shared_tokens // page_size
    own = [-(-length // page_size) - shared for length in lengths]
    count = shared + sum(own)
    numbers = np.arange(count, dtype=np.int32)
    if order == "random":
        numbers = np.random.default_rng(seed).permutation(numbers)
    table = np.zeros((len(lengths), shared + max(own)), dtype=np.int32)
    table[:, :shared] = numbers[:shared]
    first = shared
    for row, pages in zip(table, own, strict=True):
        row[shared : shared + pages] = numbers[first : first + pages]
        first += pages
    return Pages(table, tuple(lengths), page_size, count, shared_tokens)
