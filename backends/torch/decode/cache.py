"""Keys or values of one input set in their pages."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from backends.decode_data import LOUD, meeting_columns
from backends.seeds import mixed_seed
from backends.torch.data import Drawn, Operand
from backends.torch.decode.places import latest_tokens
from backends.torch.decode.stored import Storing, as_bytes
from backends.torch.decode.table import TableOperand
from suite.jobs.decode import Sizes
from suite.jobs.decode.cache import SPARE_PAGES

CHUNK_NUMBERS = 1 << 22  # drawn, rounded and put into their pages at a time


class Worth:
    """Rows of keys or values (tokens x columns): any slice of them in float64."""

    def __init__(self, codes: torch.Tensor, scales: torch.Tensor | None) -> None:
        self._codes, self._scales = codes, scales

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, rows: slice) -> torch.Tensor:
        numbers = self._codes[rows].to(torch.float64)
        if self._scales is None:
            return numbers
        return numbers.mul_(self._scales if self._scales.dim() == 1 else self._scales[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOperand(Operand):
    """``data`` (pages and a spare one, kv_heads, page_size, columns).

    ``scales`` in float32 are (1) or (pages, kv_heads, page_size); ``None`` where numbers have none.  ``queries`` are given to
    keys alone: each sequence's latest key begins with the numbers of one of its queries in each group, as many as make it weigh
    about as much in that query's result as all other keys together.  A key that is left out at the end, or one too many, would
    else be lost in a long sequence's rounding.  Taken by itself every number is still one of the distribution's.
    """

    storing: Storing
    sizes: Sizes
    table: TableOperand
    scales: torch.Tensor | None
    queries: Operand | None = None

    @classmethod
    def of(cls, storing: Storing, table: TableOperand, columns: int, queries: Operand | None = None) -> "CacheOperand":
        sizes, device = table.sizes, table.data.device
        places = (sizes.paging.page_count + SPARE_PAGES, sizes.num_kv_heads, sizes.page_size)
        shape = {"tensor": (1,), "token": places}.get(storing.scaling)
        return cls(
            data=torch.empty((*places, columns), dtype=storing.dtype, device=device),
            storing=storing,
            sizes=sizes,
            table=table,
            scales=None if shape is None else torch.ones(shape, dtype=torch.float32, device=device),
            queries=queries,
        )

    @property
    def buffers(self) -> tuple[torch.Tensor, ...]:
        return (self.data,) if self.scales is None else (self.data, self.scales)

    def refill(self, distribution: str, seed: int) -> None:
        """Draws every number twice where all share a scale, which is known only once every number has been seen.

        The table has to be filled before, and so have the queries.
        """
        if self.storing.scaling == "tensor":
            assert self.scales is not None
            largest = torch.stack([numbers.abs().max() for _, numbers in self._chunks(distribution, seed)]).max()
            self.scales.copy_(self.storing.scales_for(largest.view(1)))
        self._fill_unused(seed)
        for start, numbers in self._chunks(distribution, seed):
            places = self.table.places[start : start + len(numbers)]
            self._put(places, *self._rounded(numbers))

    def drawn(self, distribution: str, seed: int, start: int, stop: int) -> torch.Tensor:
        """Tokens ``start`` to ``stop`` before any rounding: (tokens, kv_heads, columns) in float32."""
        return self._meeting(self._numbers(distribution, seed).rows(start, stop), distribution, start)

    def worth(self, sequence: int, kv_head: int, on: torch.device | None = None) -> Worth:
        """What one sequence's numbers of a head are worth, on a device of choice."""
        entries, length = self.table.entries(sequence), self.sizes.tokens[sequence]
        codes = as_bytes(self.data)[entries, kv_head].view(self.data.dtype).flatten(0, 1)[:length]
        scales = self.scales
        if scales is not None and self.storing.scaling == "token":
            scales = scales[entries, kv_head].flatten()[:length, None]
        return Worth(codes.to(on or codes.device), None if scales is None else scales.to(on or scales.device))

    def _numbers(self, distribution: str, seed: int) -> Drawn:
        shape = (self.sizes.paging.unique_tokens, self.sizes.num_kv_heads * self.data.shape[3])
        return Drawn(shape, distribution, seed, self.data.device)

    def _chunks(self, distribution: str, seed: int) -> Iterator[tuple[int, torch.Tensor]]:
        """All tokens in order, some at a time, each lot with the number of its first."""
        drawn, count = self._numbers(distribution, seed), self.sizes.paging.unique_tokens
        step = max(1, CHUNK_NUMBERS // (self.sizes.num_kv_heads * self.data.shape[3]))
        for start in range(0, count, step):
            yield start, self._meeting(drawn.rows(start, min(start + step, count)), distribution, start)

    def _meeting(self, rows: torch.Tensor, distribution: str, start: int) -> torch.Tensor:
        """Drawn rows as tokens, with the numbers of queries where there are latest keys among them."""
        numbers = rows.view(len(rows), self.sizes.num_kv_heads, -1)
        if self.queries is None:
            return numbers
        latest = latest_tokens(self.sizes, rows.device) - start
        here = ((latest >= 0) & (latest < len(rows))).nonzero()[:, 0]
        if not len(here):
            return numbers
        numbers = numbers.clone()
        columns = meeting_columns(self.sizes, distribution)
        queries = self.queries.data[here, -1, :: self.sizes.group, :columns]
        numbers[latest[here], :, :columns] = queries.to(numbers.dtype)
        return numbers

    def _rounded(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Codes of tokens, and their scales where each has its own."""
        if self.storing.scaling != "token":
            return self.storing.codes(numbers, self.scales), None
        scales = self.storing.scales_for(numbers.abs().amax(2))
        return self.storing.codes(numbers, scales[..., None]), scales

    def _fill_unused(self, seed: int) -> None:
        """The same row for each head everywhere: numbers of one size, with the signs of the queries' sum in a key."""
        signs = self._signs(seed)
        scales = None
        if self.storing.scaling == "token":
            scales = self.storing.scales_for(torch.full((1,), LOUD, device=signs.device))
        loud = signs * (math.inf if self.storing.scaling == "tensor" else LOUD)  # cut off at the largest code
        codes = self.storing.codes(loud, self.scales if scales is None else scales)
        unused = self.table.unused_places
        self._put(
            unused, codes.expand(len(unused), *codes.shape), None if scales is None else scales.expand(len(unused), len(codes))
        )

    def _signs(self, seed: int) -> torch.Tensor:
        """(kv_heads, columns) of +1 and -1."""
        heads, columns = self.sizes.num_kv_heads, self.data.shape[3]
        generator = torch.Generator().manual_seed(mixed_seed(seed, columns))
        signs = (torch.randint(0, 2, (heads, columns), generator=generator) * 2.0 - 1.0).to(self.data.device)
        if self.queries is None:
            return signs
        sums = self.queries.data.to(torch.float32).sum((0, 1)).view(heads, -1, columns).sum(1)
        return torch.where(sums == 0, signs, sums.sign())

    def _put(self, places: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor | None) -> None:
        """Tokens (tokens, kv_heads, columns) into their places."""
        pages, within = places // self.sizes.page_size, places % self.sizes.page_size
        as_bytes(self.data)[pages, :, within] = as_bytes(codes)
        if scales is not None:
            assert self.scales is not None
            self.scales[pages, :, within] = scales
