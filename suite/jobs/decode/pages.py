"""Page tables: which page of the cache has which tokens of a sequence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from suite.errors import UsageError, nearest

if TYPE_CHECKING:  # plan counts pages and makes no table
    import numpy as np

ORDERS = ("random", "contiguous")


class Paging(NamedTuple):
    """How a batch is cut into pages: all that counting needs of a page table."""

    lengths: tuple[int, ...]
    page_size: int
    shared_tokens: int = 0

    @property
    def entries(self) -> int:
        """Entries of the table that stand for a page."""
        return sum(self.counts)

    @property
    def counts(self) -> tuple[int, ...]:
        """Pages of each sequence, shared ones included."""
        return tuple(-(-length // self.page_size) for length in self.lengths)

    @property
    def page_count(self) -> int:
        """Pages of the cache: those of a shared prefix once."""
        return self.entries - (len(self.lengths) - 1) * (self.shared_tokens // self.page_size)

    @property
    def unique_tokens(self) -> int:
        """Tokens in the cache: those of a shared prefix once."""
        return sum(self.lengths) - (len(self.lengths) - 1) * self.shared_tokens

    @property
    def wasted(self) -> float:
        """The share of the cache's memory that has no token: the rest of each sequence's last page."""
        return 1.0 - self.unique_tokens / (self.page_count * self.page_size)


class Pages(NamedTuple):
    """The pages of a batch.

    ``table`` (batch x pages of the longest sequence) in int32 has 0 behind a sequence's last page; ``page_count`` pages make up
    the cache, each used, and by one sequence only unless it is of the ``shared_tokens`` that all begin with.
    """

    table: "np.ndarray"
    lengths: tuple[int, ...]
    page_size: int
    page_count: int
    shared_tokens: int = 0

    @property
    def paging(self) -> Paging:
        return Paging(self.lengths, self.page_size, self.shared_tokens)

    @property
    def entries(self) -> int:
        """See ``Paging``."""
        return self.paging.entries

    @property
    def counts(self) -> tuple[int, ...]:
        """See ``Paging``."""
        return self.paging.counts

    @property
    def unique_tokens(self) -> int:
        """See ``Paging``."""
        return self.paging.unique_tokens

    @property
    def wasted(self) -> float:
        """See ``Paging``."""
        return self.paging.wasted


def paging(lengths: Sequence[int], page_size: int, shared_tokens: int = 0) -> Paging:
    """Cut sequences into pages.  All of them begin with the same ``shared_tokens``, in the same pages: whole ones, since the
    next token of a page belongs to one sequence only.  Raises ``UsageError`` for what no table can have, naming the limit.
    """
    if page_size < 1 or not lengths or min(lengths) < 1:
        raise UsageError(
            f"pages of {page_size} tokens for {len(lengths)} sequences, the shortest of {min(lengths, default=0)} tokens; give "
            "one sequence or more, and each of them and a page at least 1 token"
        )
    if shared_tokens % page_size or not 0 <= shared_tokens <= min(lengths):
        most = min(lengths) // page_size * page_size
        raise UsageError(
            f"a shared prefix of {shared_tokens} tokens; whole pages of {page_size} are shared, and of the shortest "
            f"sequence at most {most} tokens"
        )
    return Paging(tuple(lengths), page_size, shared_tokens)


def paged(lengths: Sequence[int], page_size: int, *, shared_tokens: int = 0, order: str = "random", seed: int = 0) -> Pages:
    """Give every sequence its pages: drawn without repeats, or one after the other where ``order`` is ``contiguous``.

    Raises ``UsageError`` as ``paging`` does.
    """
    import numpy as np

    if order not in ORDERS:
        raise UsageError(f"unknown order of pages '{order}'{nearest(order, ORDERS)}")
    cut = paging(lengths, page_size, shared_tokens)
    shared = shared_tokens // page_size
    own = [pages - shared for pages in cut.counts]
    numbers = np.arange(cut.page_count, dtype=np.int32)
    if order == "random":
        numbers = np.random.default_rng(seed).permutation(numbers)
    table = np.zeros((len(lengths), shared + max(own)), dtype=np.int32)
    table[:, :shared] = numbers[:shared]
    first = shared
    for row, pages in zip(table, own, strict=True):
        row[shared : shared + pages] = numbers[first : first + pages]
        first += pages
    return Pages(table, cut.lengths, page_size, cut.page_count, shared_tokens)
