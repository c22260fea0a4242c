"""How a runtime names a device, and the processes of other runs on it by a driver's list."""

import os
from collections.abc import Callable
from typing import NamedTuple

from backends.host.processes import run_family
from backends.telemetry.gauges import ReadingLost


class DeviceAddress(NamedTuple):
    """How a runtime names a device: its UUID without prefix, and its PCI bus id where the runtime tells it."""

    uuid: str
    pci_bus_id: str | None


def count_others(process_ids: Callable[[], frozenset[int]]) -> int | None:
    """Compute processes on a device that do not belong to this run.

    ``None`` where the driver lists none or lists them by the numbers of another process namespace: then this
    process, which holds a context on the device, is missing from the list.
    """
    try:
        listed = process_ids()
    except ReadingLost:
        return None
    return len(listed - run_family()) if os.getpid() in listed else None
