"""Versions of torch and of the libraries it has loaded."""

import ctypes
import re
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from suite.backend import Fact


def torch_facts() -> dict[str, Fact]:
    """Facts that every torch device shares."""
    config = torch.__config__.show()
    return {
        "torch": Fact.measured(str(torch.__version__)),
        "mkl": _found(r"Math Kernel Library Version (\S+)", config, "torch was built without MKL"),
        "onednn": _found(r"MKL-DNN v(\S+)", config, "torch was built without oneDNN"),
        "torch_threads": Fact.measured(torch.get_num_threads()),
        "triton": _package("triton"),
    }


def cuda_facts() -> dict[str, Fact]:
    """CUDA libraries as loaded into this process."""
    cudnn = torch.backends.cudnn.version()
    return {
        "cuda_runtime": Fact.measured(str(torch.version.cuda)),
        "cublas": _loaded("libcublas.so", _cublas_version),
        "cublaslt": _loaded("libcublasLt.so", _cublaslt_version),
        "cudnn": Fact.measured(cudnn) if cudnn is not None else Fact.unavailable("torch has no cuDNN"),
        "blas_preferred": Fact.measured(str(torch.backends.cuda.preferred_blas_library()).rpartition(".")[2]),
        "tunable_op": Fact.measured(bool(torch.cuda.tunable.is_enabled())),
    }


def _found(pattern: str, text: str, why_not: str) -> Fact:
    match = re.search(pattern, text)
    return Fact.measured(match.group(1)) if match else Fact.unavailable(why_not)


def _package(name: str) -> Fact:
    try:
        return Fact.measured(version(name))
    except PackageNotFoundError:
        return Fact.unavailable(f"{name} is not installed")


def _loaded(library: str, read_version: Callable[[ctypes.CDLL], str], maps: Path = Path("/proc/self/maps")) -> Fact:
    """Ask the copy of a library that is mapped into this process for its version."""
    paths = {line.split(maxsplit=5)[-1] for line in maps.read_text().splitlines() if f"/{library}" in line}
    if not paths:
        return Fact.unavailable(f"{library} is not loaded")
    try:
        return Fact.measured(read_version(ctypes.CDLL(min(paths))))
    except (OSError, AttributeError) as error:
        return Fact.unavailable(f"{library}: {error}")


def _cublas_version(library: ctypes.CDLL) -> str:
    """Major, minor and patch by cublasGetProperty, which needs no handle."""
    parts = []
    for which in range(3):
        value = ctypes.c_int()
        library.cublasGetProperty(which, ctypes.byref(value))
        parts.append(str(value.value))
    return ".".join(parts)


def _cublaslt_version(library: ctypes.CDLL) -> str:
    library.cublasLtGetVersion.restype = ctypes.c_size_t
    return str(library.cublasLtGetVersion())
