"""A driver for Triton without a device: kernels are compiled for real, and a launch computes the product on the host.

It stands in for what ``triton.runtime.driver`` has active, and shows what a launch is given: grid, stream and arguments.
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from triton.backends.compiler import GPUTarget

from backends.triton.gemm.device import Device

STREAM = 7


class Launch(NamedTuple):
    """One launch; ``arguments`` and ``constants`` by the names of the kernel's parameters."""

    grid: tuple[int, int, int]
    stream: int
    arguments: dict[str, Any]
    constants: dict[str, Any]


class FakeDriver:
    """A device whose launches go to ``launched``; ``registers`` and ``spilled_words`` are what it says of every kernel."""

    registers, spilled_words = 168, 0

    def __init__(self, device: Device, launched: Callable[[Launch], None]) -> None:
        self._device = device
        self.launcher_cls = partial(_Launcher, launched)
        self.utils = SimpleNamespace(
            load_binary=lambda *_: (object(), object(), self.registers, self.spilled_words, 1024),
            get_device_properties=lambda _: {"max_shared_mem": device.shared_bytes},
        )

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return STREAM

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", int(self._device.architecture), 32)


class _Launcher:
    def __init__(self, launched: Callable[[Launch], None], source: Any, metadata: Any) -> None:
        self._launched, self._source = launched, source

    def __call__(self, x: int, y: int, z: int, stream: int, function: Any, *rest: Any) -> None:
        """``rest`` are the kernel's metadata, the launch's, two hooks, and then every argument in order."""
        given = dict(zip(self._source.signature, rest[4:], strict=True))
        constants = {name: value for name, value in given.items() if self._source.signature[name] == "constexpr"}
        arguments = {name: value for name, value in given.items() if name not in constants}
        self._launched(Launch((x, y, z), stream, arguments, constants))


def compute(launch: Launch) -> None:
    """Write the product that the arguments name."""
    a, b, c = (tensor_of(launch, name) for name in "abc")
    a_mk = a.t() if launch.constants["A_TRANSPOSED"] else a
    b_kn = b.t() if launch.constants["B_TRANSPOSED"] else b
    product = a_mk.double() @ b_kn.double()
    if launch.constants["SCALES"] != "none":
        a_scale, b_scale = (launch.arguments[f"{name}_scale_ptr"].double() for name in "ab")
        product *= a_scale * b_scale if a_scale.numel() == 1 else a_scale.view(-1, 1) * b_scale.view(1, -1)
    c.copy_(product)


def tensor_of(launch: Launch, name: str) -> torch.Tensor:
    """A matrix, whether it is given by a descriptor or by a pointer."""
    described = launch.arguments.get(f"{name}_desc")
    found: torch.Tensor = launch.arguments[f"{name}_ptr"] if described is None else described.base
    return found
