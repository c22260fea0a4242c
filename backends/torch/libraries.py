"""Versions of torch and of the libraries it has loaded."""

import ctypes
import re
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import torch

from backends.torch.overrides import Workspaces, workspaces
from backends.triton.version import triton_version
from backends.variables import variables
from suite.backend import Fact
from suite.targets.names import TRITON


def torch_facts() -> dict[str, Fact]:
    """Facts that every torch device shares."""
    config = torch.__config__.show()
    return {
        "torch": Fact.measured(str(torch.__version__)),
        "mkl": _found(r"Math Kernel Library Version (\S+)", config, "torch was built without MKL"),
        "onednn": _found(r"MKL-DNN v(\S+)", config, "torch was built without oneDNN"),
        "torch_threads": Fact.measured(torch.get_num_threads()),
        "triton": _triton(),
        **{name.lower(): Fact.measured(value) for name, value in variables(TRITON).items()},
    }


def cuda_facts(capability: tuple[int, int]) -> dict[str, Fact]:
    """CUDA libraries as loaded into this process, and what they are given on a device of this compute capability."""
    cudnn = torch.backends.cudnn.version()
    sizes, status = blas_workspaces(capability)
    return {
        "cuda_runtime": Fact.measured(str(torch.version.cuda)),
        "cublas": version_of("libcublas.so", _cublas_version),
        "cublaslt": version_of("libcublasLt.so", _cublaslt_version),
        "cudnn": Fact.measured(cudnn) if cudnn is not None else Fact.unavailable("torch has no cuDNN"),
        "blas_preferred": Fact.measured(str(torch.backends.cuda.preferred_blas_library()).rpartition(".")[2]),
        "cublas_workspace_bytes": Fact(sizes.cublas_bytes, status),
        "cublaslt_workspace_bytes": Fact(sizes.cublaslt_bytes, status),
        "tunable_op": Fact.measured(bool(torch.cuda.tunable.is_enabled())),
    }


def blas_workspaces(capability: tuple[int, int]) -> tuple[Workspaces, str]:
    """What torch gives cuBLAS and cuBLASLt, and how that is known: older versions cannot be asked."""
    torchs = torch.backends.cuda
    if hasattr(torchs, "cublas_workspace_size") and hasattr(torch._C, "_cuda_getCublasWorkspaceSize"):
        return Workspaces(int(torchs.cublas_workspace_size()), int(torchs.cublaslt_workspace_size())), "measured"
    return workspaces(capability), "declared"


def _found(pattern: str, text: str, why_not: str) -> Fact:
    match = re.search(pattern, text)
    return Fact.measured(match.group(1)) if match else Fact.unavailable(why_not)


def _triton() -> Fact:
    try:
        return Fact.measured(triton_version())
    except PackageNotFoundError:
        return Fact.unavailable("triton is not installed")


def loaded_library(name: str, maps: Path = Path("/proc/self/maps")) -> ctypes.CDLL | None:
    """The copy of a library that is mapped into this process; ``None`` where none is.  Raises ``OSError`` as loading does."""
    paths = {line.split(maxsplit=5)[-1] for line in maps.read_text().splitlines() if f"/{name}" in line}
    return ctypes.CDLL(min(paths)) if paths else None


def version_of(name: str, read_version: Callable[[ctypes.CDLL], str], maps: Path = Path("/proc/self/maps")) -> Fact:
    """The version of a library as it is loaded into this process."""
    try:
        library = loaded_library(name, maps)
        return Fact.unavailable(f"{name} is not loaded") if library is None else Fact.measured(read_version(library))
    except (OSError, AttributeError) as error:
        return Fact.unavailable(f"{name}: {error}")


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
