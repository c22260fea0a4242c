"""The numerical switches of torch's matmuls, process-wide: set explicitly before a launch, never left to defaults."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from backends.torch.tunable_op import results_file

# What a case may name.  ``emulation`` and ``workspace_mib`` are no settings of torch: see ``emulated`` and ``overrides``.
SWITCHES = (
    "tf32",
    "fp8_fast_accum",
    "reduced_precision_reduction",
    "fp16_accumulation",
    "tunable_op",
    "emulation",
    "workspace_mib",
)
# Builds of torch for a CPU have no TunableOp to be on or off.
HAS_TUNABLE_OP = hasattr(torch._C, "_cuda_tunableop_enable")


class NotInForce(RuntimeError):
    """A switch was set, and the library says that something else is in force."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Every switch of torch that decides how a matmul rounds or which kernel it picks.

    ``tf32`` lets fp32 matmuls use tensor cores with 10-bit mantissas; ``fp8_fast_accum`` sums fp8 products in the tensor
    core's short accumulator; ``reduced_precision_reduction`` lets split-K partial sums of bf16 and fp16 be added in that type;
    ``fp16_accumulation`` sums fp16 products in fp16; ``tunable_op`` has torch time the libraries' kernels on the first
    launch and keep the fastest.
    """

    tf32: bool = False
    fp8_fast_accum: bool = False
    reduced_precision_reduction: bool = False
    fp16_accumulation: bool = False
    tunable_op: bool = False

    def to_json(self) -> dict[str, bool]:
        return asdict(self)


def precision_of(format_name: str, switches: Mapping[str, Any]) -> Precision:
    """The switches of a case; one that the case leaves out is off, tf32 for the tf32 format excepted."""
    return Precision(
        tf32=bool(switches.get("tf32", format_name == "tf32")),
        fp8_fast_accum=bool(switches.get("fp8_fast_accum", False)),
        reduced_precision_reduction=bool(switches.get("reduced_precision_reduction", False)),
        fp16_accumulation=bool(switches.get("fp16_accumulation", False)),
        tunable_op=bool(switches.get("tunable_op", False)),
    )


_in_force: Precision | None = None


def enforce(precision: Precision) -> None:
    """Put switches in force for the launches that follow; costs one comparison when they already are.

    Launches of several kernels may alternate in one process, so this is called before each.  Raises ``NotInForce`` where
    torch reads back something else.
    """
    global _in_force
    if precision is not _in_force:
        _in_force = None  # what fails halfway is not in force
        _apply(precision)
        _confirm(precision)
        _in_force = precision


def in_force() -> dict[str, bool]:
    """What torch says now, by the names of ``Precision``; fast accumulation is an argument of each call instead."""
    matmul = torch.backends.cuda.matmul
    return {
        "tf32": matmul.fp32_precision == "tf32",
        "reduced_precision_reduction": bool(matmul.allow_bf16_reduced_precision_reduction),
        "reduced_precision_reduction of fp16": bool(matmul.allow_fp16_reduced_precision_reduction),
        "fp16_accumulation": bool(matmul.allow_fp16_accumulation),
        "tunable_op": HAS_TUNABLE_OP and torch.cuda.tunable.is_enabled(),
    }


def place_tuning_results() -> None:
    """Have TunableOp start from nothing and leave nothing behind, unless a user named a file.

    It reads its file when it is first used and appends to it whatever it finds out, wherever the process was started: a result
    that depends on a file that happened to be there is none.  One that a user names stands in the environment of the run with
    what it held.
    """
    if not HAS_TUNABLE_OP:
        return
    tunable = torch.cuda.tunable
    tunable.set_filename(results_file(), insert_device_ordinal=False)
    tunable.record_untuned_enable(False)
    if hasattr(tunable, "write_file_on_exit"):  # where torch writes once, at the end of the process
        tunable.write_file_on_exit(results_file() != os.devnull)


def _apply(precision: Precision) -> None:
    # This setter alone moves the old and the new interface together; a mixture makes torch refuse the matmul.
    torch.set_float32_matmul_precision("high" if precision.tf32 else "highest")
    matmul = torch.backends.cuda.matmul
    matmul.allow_bf16_reduced_precision_reduction = precision.reduced_precision_reduction
    matmul.allow_fp16_reduced_precision_reduction = precision.reduced_precision_reduction
    matmul.allow_fp16_accumulation = precision.fp16_accumulation
    if HAS_TUNABLE_OP:
        if precision.tunable_op:
            place_tuning_results()
            torch.cuda.tunable.tuning_enable(True)
        torch.cuda.tunable.enable(precision.tunable_op)


def _confirm(precision: Precision) -> None:
    wanted = precision.to_json()
    for name, value in in_force().items():
        asked = wanted[name.partition(" ")[0]]
        if value != asked and (HAS_TUNABLE_OP or name != "tunable_op"):
            raise NotInForce(f"{name}={asked} was set and torch has {value} in force")
