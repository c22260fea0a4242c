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
    shelf, kind = selection.stores.shelves[device.store], evidence_of(rows)
    best, bandwidth = shelf.roofs_of(device.uid, kind)
    known = shelf.device(device.uid)
    spec = sheet_of(known)
    found = roof_set(rows, spec, bandwidth, {EmpiricalKey(*key): rate for key, rate in best.items()})
    own = [row for row in rows if row.evidence == kind]  # the clocks of others are no clocks of this device
    return RoofSet((*found.lines, *clocked_roofs(own, Ceilings(known.info, spec))), found.notes)


def bandwidths_of(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> dict[str, float]:
    """The memory bandwidth by the sheet, ``spec``, and the best there is under the kind of evidence that ``rows`` are of."""
    shelf, kind = selection.stores.shelves[device.store], evidence_of(rows)
    spec = sheet_of(shelf.device(device.uid))
    found = {"spec": spec.bandwidth_bytes_s if spec else None, kind.value: shelf.roofs_of(device.uid, kind)[1]}
    return {name: value for name, value in found.items() if value}


def sheet_line(device: DeviceRow) -> str:
    """What a device is held against, in one line of Markdown."""
    spec: HardwareSpec | None = sheet_of(device)
    if spec is None:
        return plain(f"No spec sheet: {device.match_reason or 'none was matched'}. Fractions of spec are not available.")
    kind = "Derived spec" if spec.derived else "Spec sheet"
    bandwidth = spec.bandwidth_bytes_s
    memory = f"{si(bandwidth, 'B/s')} memory bandwidth" if bandwidth else "memory bandwidth not declared"
    return plain(f"{kind}: {spec.title}, {memory}")
