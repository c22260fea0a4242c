"""The kernels of this room on a device that is not there."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from backends.torch.target import Target
from backends.triton import works
from backends.triton.gemm import device as device_module
from backends.triton.gemm.device import Device

if TYPE_CHECKING:
    from tests.backends.triton.fake_driver import FakeDriver, Launch

collect_ignore_glob = [] if find_spec("triton") else ["test_*.py"]

HOPPER = Device("90", 132, 232_448)
ANY = Target(torch.device("cpu"), "cuda", {}, {}, "sm_90")

Plug = Callable[..., "FakeDriver"]


@pytest.fixture(scope="session")
def compiled_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Triton's own cache on disk, by source, target and options: a kernel that several tests launch is compiled once."""
    return tmp_path_factory.mktemp("triton")


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch, compiled_before: Path) -> Iterator[Plug]:
    """Make a device the one that Triton and the port find; what was compiled for it is forgotten afterwards."""
    from triton.compiler.compiler import max_shared_mem
    from triton.runtime import driver

    from backends.triton.gemm import kernels
    from backends.triton.quantised import block_scaled, weight_only
    from tests.backends.triton.fake_driver import FakeDriver

    def forget() -> None:
        max_shared_mem.cache_clear()  # of whichever device was asked for first under the same number
        for kernel in (
            kernels.gemm_by_descriptors,
            kernels.gemm_by_pointers,
            weight_only.weight_only_tiles,
            weight_only.weight_only_split,
            block_scaled.fp8_in_blocks,
            block_scaled.mxfp8_to_bf16,
        ):
            kernel.device_caches.clear()

    def plugged(launched: "Callable[[Launch], Any]", device: Device = HOPPER) -> "FakeDriver":
        made = FakeDriver(device, launched)
        driver.set_active(made)
        monkeypatch.setattr(device_module, "of_torch", lambda index: device)
        monkeypatch.setattr(works, "why_not", lambda: "")
        return made

    monkeypatch.setenv("TRITON_CACHE_DIR", str(compiled_before))
    before = driver._active
    forget()
    yield plugged
    forget()
    driver._active = before
