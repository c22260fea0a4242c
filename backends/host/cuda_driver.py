"""What the CUDA driver says of a visible device, asked directly: for frameworks that do not pass it on."""

import ctypes
from typing import Any, NamedTuple
from uuid import UUID

LIBRARY = "libcuda.so.1"
# CUdevice_attribute in cuda.h.
UNITS, L2_BYTES, MAJOR, MINOR = 16, 38, 75, 76


class CudaIdentity(NamedTuple):
    """One device: its UUID and PCI address in text, memory, multiprocessors, last-level cache and compute capability."""

    uuid: str
    pci_bus_id: str
    memory_bytes: int
    units: int
    l2_bytes: int
    capability: tuple[int, int]


class DriverSilent(Exception):
    """The driver cannot be asked; the message says why in one line."""


def identify(ordinal: int, library: Any = None) -> CudaIdentity:
    """Ask for the device that this process sees under ``ordinal``; raises ``DriverSilent``."""
    try:
        driver = library or ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise DriverSilent(f"{LIBRARY} cannot be loaded: {error}") from error
    _ask(driver.cuInit(0), "cuInit")
    device = ctypes.c_int()
    _ask(driver.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
    return CudaIdentity(
        uuid=_uuid(driver, device),
        pci_bus_id=_pci_bus_id(driver, device),
        memory_bytes=_memory_bytes(driver, device),
        units=_attribute(driver, device, UNITS),
        l2_bytes=_attribute(driver, device, L2_BYTES),
        capability=(_attribute(driver, device, MAJOR), _attribute(driver, device, MINOR)),
    )


def _uuid(driver: Any, device: ctypes.c_int) -> str:
    raw = (ctypes.c_ubyte * 16)()
    _ask(driver.cuDeviceGetUuid_v2(ctypes.byref(raw), device), "cuDeviceGetUuid")
    return str(UUID(bytes=bytes(raw)))


def _pci_bus_id(driver: Any, device: ctypes.c_int) -> str:
    text = ctypes.create_string_buffer(32)
    _ask(driver.cuDeviceGetPCIBusId(text, 32, device), "cuDeviceGetPCIBusId")
    domain, _, rest = text.value.decode().lower().partition(":")
    return f"{domain:0>8}:{rest}"


def _memory_bytes(driver: Any, device: ctypes.c_int) -> int:
    total = ctypes.c_size_t()
    _ask(driver.cuDeviceTotalMem_v2(ctypes.byref(total), device), "cuDeviceTotalMem")
    return int(total.value)


def _attribute(driver: Any, device: ctypes.c_int, which: int) -> int:
    value = ctypes.c_int()
    _ask(driver.cuDeviceGetAttribute(ctypes.byref(value), which, device), "cuDeviceGetAttribute")
    return int(value.value)


def _ask(status: int, call: str) -> None:
    if status != 0:
        raise DriverSilent(f"{call} answers with CUDA error {status}")
