"""The buffers of one input set: A, the B of all groups, where groups end, C."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm.operands import QuantisedOperand, allocate
from backends.torch.quantise.formats import Format, format_of
from backends.torch.quantise.quantised import Quantised
from backends.torch.target import FORMATS
from suite.case import Workload
from suite.jobs.gemm.formats import Storage
from suite.jobs.grouped_gemm import Sizes, sizes_of
from suite.jobs.grouped_gemm.formats import variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends(Operand):
    """``data`` (groups, int32): where each group's rows end, whatever the seed."""

    sizes: Sizes

    @classmethod
    def of(cls, sizes: Sizes, device: torch.device) -> "Ends":
        return cls(data=torch.zeros(sizes.groups, dtype=torch.int32, device=device), sizes=sizes)

    def refill(self, distribution: str, seed: int) -> None:
        self.data.copy_(torch.tensor(self.sizes.ends, dtype=torch.int32))


class Buffers(NamedTuple):
    """One input set; ``b`` has the rows of all groups, n of each."""

    a: Operand
    b: Operand
    ends: Ends
    output: torch.Tensor

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.a, self.b, self.ends


def allocated(workload: Workload, device: torch.device) -> Buffers:
    """Contiguous buffers, not filled."""
    sizes, stored, numerics = sizes_of(workload), variant(workload), FORMATS[workload.format]
    a = allocate(_format(stored.a), numerics.operand, (sizes.height, sizes.k), device)
    b = allocate(_format(stored.b), numerics.operand, (sizes.groups * sizes.n, sizes.k), device)
    output = torch.empty(sizes.height, sizes.n, dtype=numerics.output, device=device)
    return Buffers(a, b, Ends.of(sizes, device), output)


def scales_of(operand: Operand) -> torch.Tensor | None:
    """Of an operand that has them."""
    return operand.quantised.scales if isinstance(operand, QuantisedOperand) else None


def part(quantised: Quantised, first: int, last: int) -> Quantised:
    """Rows of a quantised matrix, a view; both ends are those of blocks, or of the matrix."""
    height, (_, k) = quantised.format.block.rows, quantised.shape
    assert height, "numbers of one scale have no parts"
    assert quantised.zero_points is None
    scales = quantised.scales[first // height : -(-last // height)]
    return Quantised(quantised.format, (last - first, k), quantised.data[first:last], scales)


def _format(storage: Storage) -> Format | None:
    return format_of(storage.name, storage.block.name) if storage.name else None
