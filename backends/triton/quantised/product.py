"""What every way of multiplying quantised operands offers, and which one a product takes."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Buffers
from backends.triton.quantised.converted import Converted
from backends.triton.quantised.few_rows import config as few_rows
from backends.triton.quantised.few_rows.product import FewRows
from backends.triton.quantised.on_hopper import OnHopper
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.scaled import Fp8InBlocks
from backends.triton.quantised.weights import WeightOnly


class Product(Protocol):
    """A product on the buffers of all input sets.  Configurations can be hashed, and have a ``label``."""

    @property
    def conversion(self) -> Any:
        """What the numbers in the buffers ask of a kernel, beside its configuration."""
        ...

    def configs(self) -> Sequence[Any]:
        """The default first, then others worth a trial."""
        ...

    def unfit(self, config: Any) -> str | None:
        """Why a configuration cannot compute the product; ``None`` where it can."""
        ...

    def takes(self, conversion: Any) -> bool:
        """Whether kernels made for this ``conversion`` compute the product of what the buffers hold now."""
        ...

    def calls(self, config: Any) -> list[list[Call]]:
        """For each input set, what one launch calls, in order; the last writes the output."""
        ...

    def describe(self, config: Any) -> Mapping[str, Any]:
        """How the product is cut, for people and for whoever repeats it."""
        ...

    def emulation(self, facts: Mapping[str, Any]) -> str:
        """What is multiplied in place of the format's own numbers; empty where nothing is."""
        ...

    def close(self) -> None:
        """Drop the buffers."""
        ...


def product_of(problem: Problem, device: Device, buffers: Sequence[Buffers], gluon: bool = False) -> Product:
    """Allocates what the kernels read beside the operands, and has each refill of those write it too, which is never timed.

    ``gluon`` is for what ``on_hopper.reason`` has nothing against.
    """
    if gluon:
        return OnHopper(problem, device, buffers)
    if few_rows.reason(problem, device) is None:
        return FewRows(problem, device, buffers)
    if problem.is_weight_only:
        return WeightOnly(problem, device, buffers)
    if problem.format == "mxfp8_e4m3":
        return Converted(problem, device, buffers)
    return Fp8InBlocks(problem, device, buffers)
