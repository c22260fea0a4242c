"""A stand-in for libcublas whose ``cublasGemmEx`` multiplies in host memory: what a call's arguments mean is then computed.

``emulates`` says whether it does as it was asked, ``strategy`` what it answers when asked for its strategy.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

NOT_SUPPORTED = 15
TYPES = {0: np.dtype(np.float32), 1: np.dtype(np.float64)}


class StatusName:
    """A function that is told its result type, as one of ctypes."""

    restype: Any = None

    def __call__(self, status: int) -> bytes:
        assert self.restype is ctypes.c_char_p, "an address cut to an int would be read as text"
        return {NOT_SUPPORTED: b"CUBLAS_STATUS_NOT_SUPPORTED"}[status]


class FakeCublas:
    """See above."""

    def __init__(self, *, emulates: bool = True, strategy: int | None = None, fails: str = "") -> None:
        self.emulates, self.answered_strategy, self.fails = emulates, strategy, fails
        self.calls: list[str] = []
        self.handles = 0
        self.workspace: tuple[int, int] | None = None
        self.retained: int | None = None
        self.stream: int | None = None
        self.computed: list[int] = []
        self.values: dict[str, int] = {}
        self.functions: dict[str, Callable[..., Any]] = {
            "cublasCreate_v2": self._create,
            "cublasDestroy_v2": self._destroy,
            "cublasSetStream_v2": self._set_stream,
            "cublasSetWorkspace_v2": self._set_workspace,
            "cublasSetEmulationStrategy": self._set_strategy,
            "cublasGetEmulationStrategy": self._get_strategy,
            "cublasSetFixedPointEmulationMantissaControl": self._set_control,
            "cublasGetFixedPointEmulationMantissaControl": self._get_control,
            "cublasSetFixedPointEmulationMantissaBitCountPointer": self._set_bits_place,
            "cublasGemmEx": self._gemm,
        }

    def __getattr__(self, name: str) -> Any:
        if name == "cublasGetStatusName":
            return StatusName()
        if name not in self.__dict__.get("functions", {}):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == self.fails:
                return NOT_SUPPORTED
            self.functions[name](*arguments)
            return 0

        return call

    def _create(self, handle: Any) -> None:
        self.handles += 1
        handle._obj.value = 77

    def _destroy(self, handle: Any) -> None:
        self.handles -= 1

    def _set_stream(self, handle: Any, stream: Any) -> None:
        self.stream, self.workspace = stream.value, None  # as documented: the handle's own again

    def _set_workspace(self, handle: Any, place: Any, size: Any) -> None:
        self.workspace = (place.value, size.value)

    def _set_strategy(self, handle: Any, value: Any) -> None:
        self.values["strategy"] = value.value

    def _get_strategy(self, handle: Any, value: Any) -> None:
        value._obj.value = self.values["strategy"] if self.answered_strategy is None else self.answered_strategy

    def _set_control(self, handle: Any, value: Any) -> None:
        self.values["control"] = value.value

    def _get_control(self, handle: Any, value: Any) -> None:
        value._obj.value = self.values["control"]

    def _set_bits_place(self, handle: Any, place: Any) -> None:
        self.retained = place.value

    def _gemm(self, handle: Any, transa: Any, transb: Any, m: Any, n: Any, k: Any, *rest: Any) -> None:
        """C = alpha op(A) op(B) + beta C, every matrix column by column with its leading dimension."""
        alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute, algorithm = rest
        assert handle.value == 77
        assert self.workspace is not None, "no workspace: the library would allocate"
        assert algorithm.value == -1
        kind = TYPES[a_type.value]
        assert {a_type.value, b_type.value, c_type.value} == {a_type.value}
        first = _matrix(a.value, kind, lda.value, *((m.value, k.value) if not transa.value else (k.value, m.value)))
        second = _matrix(b.value, kind, ldb.value, *((k.value, n.value) if not transb.value else (n.value, k.value)))
        product = (first.T if transa.value else first) @ (second.T if transb.value else second)
        out = _matrix(c.value, kind, ldc.value, m.value, n.value)
        assert (float(alpha._obj.value), float(beta._obj.value)) == (1.0, 0.0)
        out[:] = product
        self.computed.append(compute.value)
        if self.emulates and self.retained is not None:
            ctypes.c_int32.from_address(self.retained).value = 55


def _matrix(place: int, kind: np.dtype[Any], leading: int, rows: int, columns: int) -> Any:
    """A view of rows x columns kept column by column, ``leading`` elements from one to the next."""
    assert leading >= rows
    count = leading * (columns - 1) + rows
    raw = (ctypes.c_char * (count * kind.itemsize)).from_address(place)
    flat = np.frombuffer(raw, dtype=kind)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), (kind.itemsize, leading * kind.itemsize))
