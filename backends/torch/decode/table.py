"""The page table of one input set, drawn anew with the data."""

from dataclasses import dataclass

import numpy as np
import torch

from backends.torch.data import Operand
from backends.torch.decode.places import places_of
from suite.jobs.decode import Sizes
from suite.jobs.decode.cache import SPARE_ENTRIES, SPARE_PAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOperand(Operand):
    """``data`` (batch x one more than the pages of the longest sequence, int32); ``places`` as ``places_of`` has them.

    An entry behind a sequence's last page names the spare page, which no token is in.
    """

    sizes: Sizes
    places: torch.Tensor

    @classmethod
    def of(cls, sizes: Sizes, device: torch.device) -> "TableOperand":
        columns = max(sizes.paging.counts) + SPARE_ENTRIES
        return cls(
            data=torch.zeros(sizes.batch, columns, dtype=torch.int32, device=device),
            sizes=sizes,
            places=torch.zeros(sizes.paging.unique_tokens, dtype=torch.int64, device=device),
        )

    def refill(self, distribution: str, seed: int) -> None:
        """Draw which page is where; the lengths stay as they are."""
        pages = self.sizes.pages(seed)
        numbers = np.full(tuple(self.data.shape), pages.page_count, dtype=np.int32)
        numbers[:, :-1] = np.where(self.used, pages.table, pages.page_count)
        self.data.copy_(torch.from_numpy(numbers))
        self.places.copy_(places_of(self.sizes, self.data))

    @property
    def used(self) -> np.ndarray:
        """Which entries (batch x pages of the longest sequence) stand for a page."""
        counts = np.array(self.sizes.paging.counts)
        return np.arange(int(counts.max()))[None, :] < counts[:, None]

    @property
    def unused_places(self) -> torch.Tensor:
        """Places of the cache that have no token, the spare page's among them."""
        free = torch.ones((self.sizes.paging.page_count + SPARE_PAGES) * self.sizes.page_size, dtype=torch.bool)
        free = free.to(self.data.device)
        free[self.places] = False
        return free.nonzero()[:, 0]

    def entries(self, sequence: int) -> torch.Tensor:
        """The pages of one sequence, in int64."""
        count = -(-self.sizes.tokens[sequence] // self.sizes.page_size)
        return self.data[sequence, :count].to(torch.int64)
