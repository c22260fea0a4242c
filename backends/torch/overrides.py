"""Environment variables that decide what the libraries behind torch compute, whatever a program sets.

They are read once, when a library loads or makes its first handle, so a worker has to be started with them.
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from suite.case import Case
from suite.jobs.emulation import KIB, MIB, NATIVE


class Asked(NamedTuple):
    """What a case asks of the libraries: its format, the emulation of it (``none``: the format's own arithmetic), TunableOp."""

    format: str
    emulation: str
    tunable_op: bool
    backend: str


class Override(NamedTuple):
    """``contradicts`` says whether a value of ``variable`` makes something else of the case; ``effect`` is what."""

    variable: str
    contradicts: Callable[[str, Asked], bool]
    effect: str


def _emulates(value: str) -> bool:
    return value not in ("", "0")


OVERRIDES = (
    Override(
        "NVIDIA_TF32_OVERRIDE",
        lambda value, asked: {"0": "tf32", "1": "fp32"}.get(value) == asked.format,
        "makes the libraries compute {format} as something else",
    ),
    Override(
        "CUBLAS_EMULATE_SINGLE_PRECISION",
        lambda value, asked: asked.format in ("fp32", "tf32") and _emulates(value) != (asked.emulation == "bf16x9"),
        "decides for every fp32 product of the process whether it is emulated",
    ),
    Override(
        "CUBLAS_EMULATE_DOUBLE_PRECISION",
        lambda value, asked: asked.format == "fp64" and _emulates(value) != (asked.emulation == "int8"),
        "decides for every fp64 product of the process whether it is emulated",
    ),
    Override(
        "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT",
        lambda value, asked: asked.emulation == "int8",
        "fixes the bits of an emulated product, which then need not keep the accuracy of fp64",
    ),
    Override(
        "PYTORCH_TUNABLEOP_ENABLED",
        lambda value, asked: value == "1" and not asked.tunable_op and asked.format != "int8",
        "has TunableOp choose the kernels of a case that leaves it off",
    ),
    Override(
        "PYTORCH_TUNABLEOP_TUNING",
        lambda value, asked: value == "0" and asked.tunable_op,
        "keeps TunableOp from trying any kernel",
    ),
    Override(
        "PYTORCH_TUNABLEOP_RECORD_UNTUNED",
        lambda value, asked: value == "1" and asked.tunable_op,
        "has TunableOp write down products instead of tuning them",
    ),
    *(
        Override(
            variable,
            lambda value, asked: (asked.backend, asked.format) == ("cpu", "fp32") and value.upper() not in ("", "STRICT"),
            "lets oneDNN compute fp32 with fewer bits",
        )
        for variable in ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
    ),
)


def overridden(case: Case, variables: Mapping[str, str] = os.environ) -> str | None:
    """Why a matrix product would not be what its case says, in this environment; ``None`` when it would."""
    if case.workload.job != "gemm":
        return None
    switches = dict(case.switches)
    emulation, tunable_op = str(switches.get("emulation", NATIVE)), bool(switches.get("tunable_op", False))
    asked = Asked(case.workload.format, emulation, tunable_op, case.backend)
    for variable, contradicts, effect in OVERRIDES:
        value = variables.get(variable)
        if value is not None and contradicts(value, asked):
            return f"{variable}={value} {effect.format(format=asked.format)}; unset it"
    return None


class Workspaces(NamedTuple):
    """Device memory that torch lets cuBLAS and cuBLASLt use beside the operands, bytes."""

    cublas_bytes: int
    cublaslt_bytes: int


def workspaces(capability: tuple[int, int], variables: Mapping[str, str] = os.environ) -> Workspaces:
    """The sizes as torch 2.11 derives them from the device and the environment (ATen, ``CublasHandlePool.cpp``)."""
    cublas_bytes = 32 * MIB if capability[0] in (9, 10, 12) else 2 * 4096 * KIB + 8 * 16 * KIB
    pools = re.findall(r":(\d+):(\d+)", variables.get("CUBLAS_WORKSPACE_CONFIG", ""))
    if pools:
        cublas_bytes = sum(int(size) * int(count) for size, count in pools) * KIB
    unified = variables.get("TORCH_CUBLASLT_UNIFIED_WORKSPACE") != "0"
    asked = re.match(r"\s*(\d+)", variables.get("CUBLASLT_WORKSPACE_SIZE", ""))
    cublaslt_bytes = int(asked[1]) * KIB if asked else cublas_bytes if unified else 1024 * KIB
    return Workspaces(cublas_bytes, min(cublaslt_bytes, cublas_bytes) if unified else cublaslt_bytes)


def workspace_reason(switches: Mapping[str, Any], sizes: Callable[[], Workspaces]) -> str | None:
    """Why a case cannot have the workspace it asks for: torch takes it from the environment, once a process."""
    wanted = switches.get("workspace_mib")
    if wanted is None:
        return None
    have = sizes()
    if set(have) == {int(wanted) * MIB}:
        return None
    return (
        f"workspace_mib={wanted} is not what this process has (cuBLAS {have.cublas_bytes / MIB:.4g} MiB, cuBLASLt "
        f"{have.cublaslt_bytes / MIB:.4g}); start roofbench with CUBLAS_WORKSPACE_CONFIG=:{int(wanted) * MIB // KIB}:1 and no "
        "CUBLASLT_WORKSPACE_SIZE"
    )
