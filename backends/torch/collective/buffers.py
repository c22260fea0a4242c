"""The flat buffers of one rank: what it sends, and what it receives, which may be the same memory."""

from typing import NamedTuple

import torch

from backends.torch.check import POISON, Poison
from suite.collectives.data import PERIOD, Inputs
from suite.collectives.names import Op
from suite.collectives.part import Part
from suite.jobs.collective import Task

DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
    "int64": torch.int64,
    "int32": torch.int32,
    "int8": torch.int8,
}
# As in ``POISON``.  The data keep away from the smallest integers, and fp8 has these NaN only from overflow.
POISONS = {
    **POISON,
    torch.int64: Poison(-(2**63), torch.int64),
    torch.int8: Poison(-128, torch.int8),
    torch.float8_e4m3fn: Poison(0x7F, torch.int8),
    torch.float8_e5m2: Poison(0x7D, torch.int8),
}
ROOT = 0  # of a broadcast


class Buffers(NamedTuple):
    """``sent`` and ``received`` are the same elements, or one is a part of the other, where ``in_place``."""

    sent: torch.Tensor
    received: torch.Tensor
    in_place: bool

    @property
    def whole(self) -> torch.Tensor:
        """The larger of the two: every rank's share, in rank order, where there are shares."""
        return self.sent if self.sent.numel() > self.received.numel() else self.received

    def poison(self) -> None:
        """Overwrite what receives."""
        pattern = POISONS[self.received.dtype]
        self.received.view(pattern.view).fill_(pattern.bits)

    def drawn(self, inputs: Inputs, rank: int) -> torch.Tensor | None:
        """What ``rank`` sends until it repeats, beside the buffers; ``None`` of a broadcast where another is the root."""
        if inputs.message.op is Op.BROADCAST and rank != ROOT:
            return None
        values = torch.from_numpy(inputs.sent(rank, Part(0, min(PERIOD, self.sent.numel()))))
        return values.to(self.sent.dtype).to(self.sent.device)

    def write(self, drawn: torch.Tensor | None) -> None:
        """Write what is sent, at the pace of a copy on the device."""
        if drawn is None:
            return
        bits = POISONS[self.sent.dtype].view  # a format of 8 bits is copied as its bits
        sent, values = self.sent.view(bits), drawn.view(bits)
        whole = sent.numel() - sent.numel() % values.numel()
        sent[:whole].view(-1, values.numel()).copy_(values)
        sent[whole:].copy_(values[: sent.numel() - whole])


def allocate(task: Task, rank: int, device: torch.device) -> Buffers:
    """Buffers of ``rank``; in place, a share stands where it belongs among the others."""
    given, dtype = task.message, DTYPES[task.message.format]
    if not task.in_place:
        sent, received = (torch.empty(n, dtype=dtype, device=device) for n in (given.send_elements, given.receive_elements))
        return Buffers(sent, received, in_place=False)
    whole = torch.empty(max(given.send_elements, given.receive_elements), dtype=dtype, device=device)
    sent, received = (_share(whole, rank, elements) for elements in (given.send_elements, given.receive_elements))
    return Buffers(sent, received, in_place=True)


def _share(whole: torch.Tensor, rank: int, elements: int) -> torch.Tensor:
    return whole if elements == whole.numel() else whole[rank * elements : (rank + 1) * elements]
