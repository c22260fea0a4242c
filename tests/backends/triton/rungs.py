"""Rungs of the precision ladder with scales, made ready on whatever device is pretended."""

from typing import Any, NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm.operands import allocate, quantised_formats
from backends.torch.gemm.product import Product
from backends.torch.precision import precision_of
from backends.torch.target import Target
from backends.triton.gemm.kernel import Buffers, Shared
from backends.triton.quantised.exponents import NEUTRAL, Exponents
from suite.case import Case
from tests.backends.cases import gemm_case

HOPPER_TARGET = Target(torch.device("cpu"), "cuda", {}, {}, "sm_90")
NEEDS_FULL = Exponents(NEUTRAL, NEUTRAL, nan=True)  # scales that only the full conversion takes


class Rung(NamedTuple):
    """A format with its scaling."""

    format: str
    semantics: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return " ".join([self.format, *(f"{name}={value}" for name, value in self.semantics)])

    def case(self, *sizes: int, **options: Any) -> Case:
        return gemm_case(self.format, *sizes, semantics=dict(self.semantics), **options)


W4, W4_ZERO, W8, MX4 = Rung("w4a16"), Rung("w4a16", (("zero_point", True),)), Rung("w8a16"), Rung("mxfp4a16")
BLOCKS, MX8 = Rung("fp8_e4m3", (("scaling", "block"),)), Rung("mxfp8_e4m3")
INT8_ROW, INT8_TENSOR = Rung("int8", (("scaling", "row"),)), Rung("int8", (("scaling", "tensor"),))
FP8_ROW = Rung("fp8_e4m3", (("scaling", "row"),))
WEIGHT_ONLY = (W4, W4_ZERO, W8, MX4)
QUANTISED = (*WEIGHT_ONLY, BLOCKS, MX8)
BY_ROWS = (INT8_ROW, INT8_TENSOR, FP8_ROW)


def buffers_of(case: Case, sets: int, a_type: torch.dtype = torch.bfloat16, device: str = "cpu") -> list[Buffers]:
    """Operands as a backend allocates them; ``a_type`` is that of plain numbers."""
    where = torch.device(device)
    params = dict(case.workload.params)
    m, n, k = (int(params[name]) for name in "mnk")
    a_format, b_format = quantised_formats(case.workload, HOPPER_TARGET)
    made = []
    for _ in range(sets):
        a: Operand = allocate(a_format, a_type, (m, k), where)
        b: Operand = allocate(b_format, torch.bfloat16, (n, k), where)
        made.append(Buffers(a, b, torch.empty(m, n, dtype=torch.bfloat16, device=where)))
    return made


def shared_of(case: Case) -> Shared:
    workload = case.workload
    return Shared(Product("nt"), workload.distribution, precision_of(workload.format, dict(case.switches)), {"layout": "nt"})
