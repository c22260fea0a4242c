"""Versions and settings of the libraries that torch loads on AMD devices."""

import ctypes
import os
from collections.abc import Callable
from typing import Any

import torch

from backends.torch.hip_target import preferred_blas
from backends.torch.libraries import version_of
from backends.torch.precision import HAS_TUNABLE_OP
from backends.torch.tunable_op import results_words
from suite.backend import Fact

NO_TUNABLE_OP = "this build of torch has no TunableOp"
# RCCL's own switches for algorithms that MSCCL and MSCCL++ bring; it decides by itself where they are not set.
COLLECTIVES = {"msccl": "RCCL_MSCCL_ENABLE", "mscclpp": "RCCL_MSCCLPP_ENABLE"}
RCCL_S_OWN = "RCCL's own choice"


def hip_facts() -> dict[str, Fact]:
    """Libraries as loaded into this process, and how torch chooses among them."""
    return {
        "hip_runtime": Fact.measured(str(torch.version.hip)),
        "rocblas": version_of("librocblas.so", rocblas_version),
        "hipblaslt": version_of("libhipblaslt.so", hipblaslt_version),
        "miopen": version_of("libMIOpen.so", miopen_version),
        "rccl": version_of("librccl.so", rccl_version),
        "blas_preferred": Fact.measured(preferred_blas()),
        **_tunable_op(),
        **{name: Fact(os.environ.get(variable, RCCL_S_OWN), "declared") for name, variable in COLLECTIVES.items()},
    }


def rocblas_version(library: ctypes.CDLL) -> str:
    """As rocBLAS writes it: ``4.4.0.cbc3b67``."""
    size = ctypes.c_size_t()
    _call(library.rocblas_get_version_string_size, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    _call(library.rocblas_get_version_string, text, size)
    return text.value.decode()


def hipblaslt_version(library: ctypes.CDLL) -> str:
    """hipBLASLt asks for a handle, and answers 100000 x major + 100 x minor + patch."""
    handle, number = ctypes.c_void_p(), ctypes.c_int()
    _call(library.hipblasLtCreate, ctypes.byref(handle))
    try:
        _call(library.hipblasLtGetVersion, handle, ctypes.byref(number))
    finally:
        _call(library.hipblasLtDestroy, handle)
    return f"{number.value // 100_000}.{number.value // 100 % 1000}.{number.value % 100}"


def miopen_version(library: ctypes.CDLL) -> str:
    """Major, minor and patch."""
    parts = [ctypes.c_size_t() for _ in range(3)]
    _call(library.miopenGetVersion, *(ctypes.byref(part) for part in parts))
    return ".".join(str(part.value) for part in parts)


def rccl_version(library: ctypes.CDLL) -> str:
    """RCCL counts as NCCL does from 2.9 on: 10000 x major + 100 x minor + patch."""
    number = ctypes.c_int()
    _call(library.ncclGetVersion, ctypes.byref(number))
    return f"{number.value // 10_000}.{number.value // 100 % 100}.{number.value % 100}"


def _tunable_op() -> dict[str, Fact]:
    """Whether TunableOp is on outside of cases that ask for it, and what bounds its trials and keeps their results."""
    settings: dict[str, Callable[[], Any]] = {
        "tunable_op": lambda: bool(torch.cuda.tunable.is_enabled()),
        "tunable_op_tunes": lambda: bool(torch.cuda.tunable.tuning_is_enabled()),
        "tunable_op_trial_ms": lambda: int(torch.cuda.tunable.get_max_tuning_duration()),
        "tunable_op_trials": lambda: int(torch.cuda.tunable.get_max_tuning_iterations()),
        "tunable_op_file": results_words,
        "tunable_op_rotating_mib": lambda: int(torch.cuda.tunable.get_rotating_buffer_size()),
    }
    if not HAS_TUNABLE_OP:
        return dict.fromkeys(settings, Fact.unavailable(NO_TUNABLE_OP))
    return {name: Fact.measured(read()) for name, read in settings.items()}


def _call(function: Any, *arguments: Any) -> None:
    """Raises ``OSError`` for a status that is not success, which is 0 in all of these libraries."""
    status = int(function(*arguments))
    if status:
        raise OSError(f"{getattr(function, '__name__', 'the library')} returned status {status}")
