"""What a torch device can compute, and how: the part of the port that differs between machines."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch

from backends.host.arithmetic import lacking
from backends.torch.quantise.consumable import consumable
from suite.jobs.emulation import EMULATIONS
from suite.jobs.fp8 import FNUZ, FP8, OCP

Execution = Literal["native", "emulated"]


class Numerics(NamedTuple):
    """Types of one matmul format: operands that carry no scales of rows or blocks, output, and what products are summed in."""

    operand: torch.dtype
    output: torch.dtype
    accumulate: str


FNUZ_OPERANDS = {"fp8_e4m3": torch.float8_e4m3fnuz, "fp8_e5m2": torch.float8_e5m2fnuz}
WITH_BLOCKS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "nvfp4")
WEIGHT_ONLY = ("w8a16", "w4a16", "mxfp4a16")
FORMATS = {
    "fp64": Numerics(torch.float64, torch.float64, "fp64"),
    "fp32": Numerics(torch.float32, torch.float32, "fp32"),
    "tf32": Numerics(torch.float32, torch.float32, "fp32"),
    "bf16": Numerics(torch.bfloat16, torch.bfloat16, "fp32"),
    "fp16": Numerics(torch.float16, torch.float16, "fp32"),
    "int8": Numerics(torch.int8, torch.int32, "int32"),
    "fp8_e4m3": Numerics(torch.float8_e4m3fn, torch.bfloat16, "fp32"),
    "fp8_e5m2": Numerics(torch.float8_e5m2, torch.bfloat16, "fp32"),
    **{name: Numerics(torch.bfloat16, torch.bfloat16, "fp32") for name in WITH_BLOCKS + WEIGHT_ONLY},
}


@dataclass(frozen=True, slots=True)
class Target:
    """A device and how it executes each format.

    ``kind`` is torch's device type.  A format is native, or a key of ``emulated`` (how it is computed instead), or a
    key of ``missing`` (why it cannot run).  ``missing`` also has the emulations that a case may ask for and this device
    does not offer, as ``fp32 by bf16x9``.  ``architecture`` is what code for it is compiled for: ``cpu``, ``sm_90`` or
    ``gfx942``.  ``fp8`` is the encoding that plain fp8 numbers are stored in.
    """

    device: torch.device
    kind: str
    emulated: Mapping[str, str]
    missing: Mapping[str, str]
    architecture: str = "cpu"
    fp8: str = OCP

    @property
    def is_amd(self) -> bool:
        return self.architecture.startswith("gfx")

    def operand(self, format_name: str) -> torch.dtype:
        """The type of operands that carry no scales of rows or blocks."""
        in_fnuz = FNUZ_OPERANDS.get(format_name) if self.fp8 == FNUZ else None
        return in_fnuz or FORMATS[format_name].operand

    def encoding(self, format_name: str) -> str | None:
        """Of the elements of a format; ``None`` where there is only one."""
        return self.fp8 if format_name in FP8 else None

    def in_ocp(self) -> "Target":
        """The same device with fp8 as OCP has it."""
        return self if self.fp8 == OCP else replace(self, fp8=OCP)

    def execution(self, format_name: str) -> Execution:
        return "emulated" if format_name in self.emulated else "native"

    @property
    def takes_fp8_in_any_layout(self) -> bool:
        """Whether fp8 with one scale a tensor is multiplied as it is stored, or converted in whatever layout."""
        return self.kind == "cpu" or consumable("fp8_e4m3", "tensor", self.architecture, encoding=self.fp8) is None


def cpu_target(isa: tuple[str, ...]) -> Target:
    """How a CPU with these instruction-set flags executes each format."""
    emulated = {"fp8_e4m3": "operands converted to bf16 (exact), then a bf16 matmul"}
    emulated |= {name: f"converted to fp32 inside the library: {why}" for name, why in lacking(isa).items()}
    missing = {"tf32": "tf32 is a mode of NVIDIA tensor cores; a CPU computes fp32"}
    for name, each in EMULATIONS.items():
        missing[f"{each.format} by {name}"] = f"{each.format} by {name} is a mode of NVIDIA's cuBLAS, which a CPU has not"
    return Target(torch.device("cpu"), "cpu", emulated, missing)


def cuda_target(index: int, capability: tuple[int, int]) -> Target:
    """How an NVIDIA device of this compute capability executes each format."""
    emulated, missing = {}, {}
    version = f"compute capability {capability[0]}.{capability[1]}"
    if capability < (8, 0):
        emulated["bf16"] = f"computed in fp32 by the library: {version} is below 8.0"
        missing["tf32"] = f"tf32 needs compute capability 8.0, this device has {version}"
    if capability < (7, 0):
        emulated["fp16"] = f"computed without tensor cores: {version} is below 7.0"
    if capability < (7, 5):
        missing["int8"] = f"int8 tensor cores need compute capability 7.5, this device has {version}"
    # By the table under "Floating Point Emulation" in the cuBLAS documentation.
    if capability not in ((10, 0), (10, 3)):
        missing["fp32 by bf16x9"] = f"fp32 by bf16x9 needs compute capability 10.0 or 10.3, this device has {version}"
    if capability < (8, 0):
        missing["fp64 by int8"] = f"fp64 by int8 needs compute capability 8.0, this device has {version}"
    return Target(torch.device("cuda", index), "cuda", emulated, missing, f"sm_{capability[0]}{capability[1]}")
