"""The numerical switches of torch's matmuls, process-wide: set explicitly before a launch, never left to defaults."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch

SWITCHES = ("tf32", "fp8_fast_accum", "reduced_precision_reduction")


@dataclass(frozen=True, slots=True)
class Precision:
    """Every switch that decides how a matmul rounds.

    ``tf32`` lets fp32 matmuls use tensor cores with 10-bit mantissas; ``fp8_fast_accum`` sums fp8 products in the tensor
    core's short accumulator; ``reduced_precision_reduction`` lets split-K partial sums of bf16 and fp16 be added in that type.
    """

    tf32: bool = False
    fp8_fast_accum: bool = False
    reduced_precision_reduction: bool = False

    def to_json(self) -> dict[str, bool]:
        return asdict(self)


def precision_of(format_name: str, switches: Mapping[str, Any]) -> Precision:
    """The switches of a case; one that the case leaves out is off, tf32 for the tf32 format excepted."""
    return Precision(
        tf32=bool(switches.get("tf32", format_name == "tf32")),
        fp8_fast_accum=bool(switches.get("fp8_fast_accum", False)),
        reduced_precision_reduction=bool(switches.get("reduced_precision_reduction", False)),
    )


_in_force: Precision | None = None


def enforce(precision: Precision) -> None:
    """Put switches in force for the launches that follow; costs one comparison when they already are.

    Launches of several kernels may alternate in one process, so this is called before each.
    """
    global _in_force
    if precision is not _in_force:
        _apply(precision)
        _in_force = precision


@contextmanager
def preserved() -> Iterator[None]:
    """Give back the switches as they were found."""
    global _in_force
    matmul = torch.backends.cuda.matmul
    found = (
        torch.get_float32_matmul_precision(),
        matmul.allow_bf16_reduced_precision_reduction,
        matmul.allow_fp16_reduced_precision_reduction,
        matmul.allow_fp16_accumulation,
    )
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(found[0])
        matmul.allow_bf16_reduced_precision_reduction = found[1]
        matmul.allow_fp16_reduced_precision_reduction = found[2]
        matmul.allow_fp16_accumulation = found[3]
        _in_force = None


def _apply(precision: Precision) -> None:
    # This setter alone moves the old and the new interface together; a mixture makes torch refuse the matmul.
    torch.set_float32_matmul_precision("high" if precision.tf32 else "highest")
    matmul = torch.backends.cuda.matmul
    matmul.allow_bf16_reduced_precision_reduction = precision.reduced_precision_reduction
    matmul.allow_fp16_reduced_precision_reduction = precision.reduced_precision_reduction
    matmul.allow_fp16_accumulation = False
