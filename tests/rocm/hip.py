"""A stand-in for torch's HIP surface: torch.cuda on a scripted clock, with products that are computed in host memory.

It keeps to what ATen asks of an AMD device where a test could tell: scaled products take the fp8 encoding of the device alone.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from tests.backends.fake_cuda import FakeCuda

HIP_VERSION = "7.2.53211"
FNUZ_TYPES = (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
OCP_TYPES = (torch.float8_e4m3fn, torch.float8_e5m2)
SCALED = {"gfx942": FNUZ_TYPES, "gfx950": OCP_TYPES, "gfx1200": OCP_TYPES, "gfx1201": OCP_TYPES}

Set = Callable[[Any, str, Any], object]


class Hip(FakeCuda):
    """See the module; ``properties`` are those of each device."""

    def __init__(self, properties: Sequence[SimpleNamespace], blas: str = "Cublaslt") -> None:
        super().__init__()
        self.properties = list(properties)
        self.selected = 0
        self.blas = blas
        self.scaled_dtypes: set[tuple[torch.dtype, torch.dtype]] = set()

    def install(self, put: Set = setattr) -> None:
        """Stand in for torch's own; ``put`` may be one that puts it back."""
        for name, standing_in in {
            "is_available": lambda: True,
            "device_count": lambda: len(self.properties),
            "get_device_properties": lambda index: self.properties[int(index)],
            "get_device_capability": lambda index: (self.properties[int(index)].major, self.properties[int(index)].minor),
            "set_device": self._select,
            "mem_get_info": self._memory,
            "memory_reserved": lambda device=None: 0,
            "memory_allocated": lambda device=None: 0,
            "max_memory_allocated": lambda device=None: 0,
            "reset_peak_memory_stats": lambda device=None: None,
            "empty_cache": lambda: None,
        }.items():
            put(torch.cuda, name, standing_in)
        for name in _OF_STREAMS:
            put(torch.cuda, name, getattr(self, name))
        put(torch.version, "hip", HIP_VERSION)
        put(torch, "_scaled_mm", self.scaled_mm)
        put(torch.backends.cuda, "preferred_blas_library", self._preferred)

    def launch(self, seconds: float, work: Callable[[], object]) -> None:
        """Queue work that takes so long on the device."""

        def node() -> None:
            self.device_s += seconds
            work()

        self.run(node)

    def scaled_mm(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        *,
        scale_a: torch.Tensor,
        scale_b: torch.Tensor,
        out_dtype: torch.dtype,
        use_fast_accum: bool,
        out: torch.Tensor,
    ) -> torch.Tensor:
        taken = SCALED.get(self.properties[self.selected].gcnArchName.partition(":")[0], ())
        if a.dtype not in taken or b.dtype not in taken:
            raise RuntimeError(f"torch._scaled_mm on this device does not take {a.dtype} by {b.dtype}: not supported")
        assert out.dtype == out_dtype
        self.scaled_dtypes.add((a.dtype, b.dtype))
        return out.copy_((a.to(torch.float32) @ b.to(torch.float32)) * scale_a * scale_b)

    def _select(self, index: int) -> None:
        self.selected = int(index)

    def _memory(self, device: Any = None) -> tuple[int, int]:
        total = int(self.properties[self.selected].total_memory)
        return total // 2, total

    def _preferred(self, wanted: str | None = None) -> str:
        if wanted is not None:
            self.blas = wanted.capitalize()
        return f"_BlasBackend.{self.blas}"


_OF_STREAMS = (
    "Event",
    "CUDAGraph",
    "Stream",
    "graph",
    "stream",
    "current_stream",
    "set_stream",
    "current_device",
    "graph_pool_handle",
    "synchronize",
    "_sleep",
)
