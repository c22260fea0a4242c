"""The roofs of one device, for figures that hold results against them."""

from collections.abc import Sequence

from dashboard.selection import Selection
from dashboard.shelf import Device
from dashboard.text import plain
from suite.hardware.spec import HardwareSpec
from suite.report.panels import evidence_of
from suite.report.roofs import EmpiricalKey, RoofSet, clocked_roofs, roof_set
from suite.report.sheets import sheet_of
from suite.report.words import si
from suite.roofline import Ceilings
from suite.rows import DeviceRow, ResultRow


def roofs_of(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> RoofSet:
    """Every kind of roof that belongs with ``rows`` of a device."""
    shelf = selection.stores.shelves[device.store]
    best, bandwidth = shelf.roofs_of(device.uid, evidence_of(rows))
    known = shelf.device(device.uid)
    spec = sheet_of(known)
    found = roof_set(rows, spec, bandwidth, {EmpiricalKey(*key): rate for key, rate in best.items()})
    return RoofSet((*found.lines, *clocked_roofs(rows, Ceilings(known.info, spec))), found.notes)


def bandwidths_of(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> tuple[float | None, float | None]:
    """The memory bandwidth by the sheet, and the best that was measured."""
    shelf = selection.stores.shelves[device.store]
    _, measured = shelf.roofs_of(device.uid, evidence_of(rows))
    spec = sheet_of(shelf.device(device.uid))
    return (spec.bandwidth_bytes_s if spec else None), measured


def sheet_line(device: DeviceRow) -> str:
    """What a device is held against, in one line of Markdown."""
    spec: HardwareSpec | None = sheet_of(device)
    if spec is None:
        return plain(f"No spec sheet: {device.match_reason or 'none was matched'}. Fractions of spec are not available.")
    kind = "Derived spec" if spec.derived else "Spec sheet"
    bandwidth = spec.bandwidth_bytes_s
    memory = f"{si(bandwidth, 'B/s')} memory bandwidth" if bandwidth else "memory bandwidth not declared"
    return plain(f"{kind}: {spec.title}, {memory}")
