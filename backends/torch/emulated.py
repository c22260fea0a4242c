"""fp32 by bf16 and fp64 by int8, through cuBLAS itself.

torch offers neither: it calls the plain routines, and gives the handle its own math mode back before each call.  The
environment variables of cuBLAS would emulate every product of the process.  So the product goes to ``cublasGemmEx`` of the
library that torch has loaded, with the compute type of the emulation, on a handle of its own.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.kernel import TorchKernel
from backends.torch.libraries import loaded_library
from backends.torch.precision import NotInForce
from suite.backend import Observed, Probe
from suite.jobs.emulation import workspace_bytes

STRATEGY_EAGER = 2  # cublasEmulationStrategy_t: emulate whenever possible, not only where it is expected to pay
MANTISSA_DYNAMIC = 0  # cudaEmulationMantissaControl: as many bits as keep the accuracy of fp64
DEFAULT_ALGORITHM = -1  # cublasGemmAlgo_t
NORMAL, TRANSPOSED = 0, 1  # cublasOperation_t
NOT_EMULATED = -1  # what the library leaves in the place for the bits that it kept


class Mode(NamedTuple):
    """An emulation's numbers in ``cublas_api.h`` and ``library_types.h``; ``symbol`` is a function that came with it."""

    compute_type: int
    data_type: int
    scalar: type[ctypes.c_float] | type[ctypes.c_double]
    symbol: str
    since: str


MODES = {
    "bf16x9": Mode(78, 0, ctypes.c_float, "cublasSetEmulationStrategy", "cuBLAS 12.9"),
    "int8": Mode(79, 1, ctypes.c_double, "cublasSetFixedPointEmulationMantissaBitCountPointer", "cuBLAS 13.1"),
}


def library_reason(name: str, library: Any = None) -> str | None:
    """Why the loaded cuBLAS cannot emulate; ``None`` when it can."""
    library = library or loaded_library("libcublas.so")
    if library is None:
        return "libcublas.so is not loaded, which emulates"
    mode = MODES[name]
    return None if hasattr(library, mode.symbol) else f"emulation by {name} came with {mode.since}; the cuBLAS loaded is older"


class Emulator:
    """A cuBLAS handle that emulates products of one size (C = A B, m x n by k), and its workspace.

    Raises ``RuntimeError`` with the name of the status that cuBLAS returns, and ``NotInForce`` where it reads back another
    strategy than was set.
    """

    def __init__(
        self,
        name: str,
        sizes: tuple[int, int, int],
        device: torch.device,
        library: Any,
        stream: Callable[[], int] | None = None,
    ) -> None:
        self._name, self._mode, self._sizes, self._library = name, MODES[name], sizes, library
        self._stream = stream or (lambda: int(torch.cuda.current_stream().cuda_stream))
        self.workspace_bytes = workspace_bytes(name, *sizes)
        self._workspace = torch.empty(self.workspace_bytes, dtype=torch.uint8, device=device)
        self._retained = torch.full((1,), NOT_EMULATED, dtype=torch.int32, device=device)
        self._one, self._zero = self._mode.scalar(1), self._mode.scalar(0)
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._set("cublasSetEmulationStrategy", "cublasGetEmulationStrategy", STRATEGY_EAGER)
        if name == "int8":
            self._set(
                "cublasSetFixedPointEmulationMantissaControl", "cublasGetFixedPointEmulationMantissaControl", MANTISSA_DYNAMIC
            )
            place = ctypes.c_void_p(self._retained.data_ptr())
            self._call("cublasSetFixedPointEmulationMantissaBitCountPointer", self._handle, place)

    def bind(self, layout: str, a: Operand, b: Operand, output: torch.Tensor) -> Callable[[], None]:
        """The launch that computes ``output``.

        cuBLAS counts columns first, and so sees every row-major matrix transposed: it is asked for C' = B' A'.
        """
        m, n, k = self._sizes
        b_columns, a_columns = (k if layout[1] == "t" else n), (m if layout[0] == "t" else k)
        arguments = (
            *(ctypes.c_int(TRANSPOSED if stored == "t" else NORMAL) for stored in (layout[1], layout[0])),
            *(ctypes.c_int(size) for size in (n, m, k)),
            ctypes.byref(self._one),
            *self._matrix(b.data, b_columns),
            *self._matrix(a.data, a_columns),
            ctypes.byref(self._zero),
            *self._matrix(output, n),
            ctypes.c_int(self._mode.compute_type),
            ctypes.c_int(DEFAULT_ALGORITHM),
        )
        place, size = ctypes.c_void_p(self._workspace.data_ptr()), ctypes.c_size_t(self.workspace_bytes)

        def launch() -> None:
            self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(self._stream()))
            # Setting a stream gives the handle its own small workspace back, beyond which it allocates.
            self._call("cublasSetWorkspace_v2", self._handle, place, size)
            self._call("cublasGemmEx", self._handle, *arguments)

        return launch

    def forget(self) -> None:
        """Before launches that are to be confirmed."""
        self._retained.fill_(NOT_EMULATED)

    def confirm(self) -> None:
        """Raise ``NotInForce`` when the launches since ``forget`` went to the native routine.

        cuBLAS says so for fp64 only; it may still fall back there, when data needs more bits than it has.
        """
        if self._name == "int8" and self.retained_bits == NOT_EMULATED:
            raise NotInForce("emulation=int8 was asked for and cuBLAS computed the product in native fp64")

    @property
    def retained_bits(self) -> int:
        """Mantissa bits that the last product kept; waits for the device."""
        bits: int = self._retained.item()
        return bits

    def describe(self) -> Mapping[str, Any]:
        bits = {"retained_mantissa_bits": self.retained_bits} if self._name == "int8" else {}
        return {"emulation": self._name, "workspace_bytes": self.workspace_bytes, **bits}

    def close(self) -> None:
        """Give back the handle and the memory; a second time changes nothing."""
        if self._handle:
            self._call("cublasDestroy_v2", self._handle)
            self._handle = ctypes.c_void_p()
            self._workspace = self._workspace.new_empty(0)

    def _matrix(self, data: torch.Tensor, columns: int) -> Sequence[Any]:
        return ctypes.c_void_p(data.data_ptr()), ctypes.c_int(self._mode.data_type), ctypes.c_int(columns)

    def _set(self, setter: str, getter: str, value: int) -> None:
        """Set a property of the handle and read it back."""
        self._call(setter, self._handle, ctypes.c_int(value))
        found = ctypes.c_int()
        self._call(getter, self._handle, ctypes.byref(found))
        if found.value != value:
            raise NotInForce(f"{setter} was given {value} and cuBLAS has {found.value} in force")

    def _call(self, function: str, *arguments: Any) -> None:
        status = int(getattr(self._library, function)(*arguments))
        if status:
            name = self._library.cublasGetStatusName
            name.restype = ctypes.c_char_p
            raise RuntimeError(f"CUDA error: {name(status).decode()} when calling `{function}`")


class EmulatedKernel(TorchKernel):
    """A kernel whose launches are an emulator's; a check of its outputs also asks whether they were emulated."""

    def __init__(self, emulator: Emulator, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._emulator = emulator

    def poison(self) -> None:
        super().poison()
        self._emulator.forget()

    def observe(self, probe: Probe) -> Observed:
        observed = super().observe(probe)
        self._emulator.confirm()
        return observed

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), **self._emulator.describe()}

    def close(self) -> None:
        super().close()
        self._emulator.close()
