"""The buffers of one input set: page table, queries, cache, output."""

from typing import NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.decode.cache import CacheOperand
from backends.torch.decode.stored import DTYPES, storing_of
from backends.torch.decode.table import TableOperand
from suite.case import Workload
from suite.jobs.decode import Sizes, activation_of, scaling_of, sizes_of


class Buffers(NamedTuple):
    """One input set.

    ``q`` and ``o`` are (batch, q_len, query heads, columns); ``output`` is ``o`` as a matrix, a row for each query and head.
    With shared values ``v`` is ``k``, of which it is the first columns.  ``lse`` (batch, q_len, query heads, float32) is for
    kernels that write the logarithms of their sums too.
    """

    table: TableOperand
    q: Operand
    k: CacheOperand
    v: CacheOperand
    o: torch.Tensor
    lse: torch.Tensor

    @property
    def operands(self) -> tuple[Operand, ...]:
        """In the order in which they are filled."""
        return (self.table, self.q, self.k) if self.v is self.k else (self.table, self.q, self.k, self.v)

    @property
    def output(self) -> torch.Tensor:
        return self.o.view(-1, self.o.shape[3])

    @property
    def results(self) -> tuple[torch.Tensor, ...]:
        return (self.o,)


def allocate(workload: Workload, device: torch.device) -> Buffers:
    """Contiguous buffers, not filled."""
    sizes, activation = sizes_of(workload), DTYPES[activation_of(workload)]
    storing = storing_of(workload.format, scaling_of(workload))
    table = TableOperand.of(sizes, device)
    q = Operand.empty((*rows_of(sizes), sizes.head_dim), activation, device)
    k = CacheOperand.of(storing, table, sizes.head_dim, queries=q)
    v = k if sizes.has_shared_values else CacheOperand.of(storing, table, sizes.v_head_dim)
    o = torch.empty((*rows_of(sizes), sizes.v_head_dim), dtype=activation, device=device)
    return Buffers(table, q, k, v, o, torch.empty(rows_of(sizes), dtype=torch.float32, device=device))


def rows_of(sizes: Sizes) -> tuple[int, int, int]:
    """Sequences, new tokens of each, query heads of each."""
    return sizes.batch, sizes.q_len, sizes.num_q_heads
