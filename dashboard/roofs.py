"""The roofs of one device, for figures that hold results against them."""

from collections.abc import Sequence
from dataclasses import replace

from dashboard.selection import Selection
from dashboard.shelf import Device
from dashboard.text import plain
from suite.outcome import Evidence, Outcome
from suite.report.panels import evidence_of
from suite.report.roofs import (
    CALIBRATION,
    EmpiricalKey,
    Judged,
    RoofSet,
    clocked_roofs,
    judged_by,
    judged_roof_set,
    with_setters,
)
from suite.report.sheets import sheet_of
from suite.report.words import si
from suite.roofline import Ceilings
from suite.rows import DeviceRow, ResultRow

DERIVED, NO_SHEET = "derived", "no sheet"
MOST_SETTERS = 2_000  # results that are looked through for what set an empirical roof


def devices_of(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> dict[str, DeviceRow]:
    """The device as each sheet judged ``rows`` of it, by the sheet's name: runs of one chip may have different ones."""
    shelf = selection.stores.shelves[device.store]
    newest: dict[str | None, ResultRow] = {}
    for row in sorted(rows, key=lambda row: row.finished_at):
        newest[row.hardware] = row
    found: dict[str, DeviceRow] = {}
    for row in newest.values():
        known = [each for each in shelf.devices(row.run) if (each.slot, each.info.uid) == (row.device_slot, row.device_uid)]
        judging = known[-1] if known else shelf.device(device.uid)
        found[judging.hardware or (NO_SHEET if judging.spec is None else DERIVED)] = judging
    return found or {"": shelf.device(device.uid)}


def roofs_of(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> RoofSet:
    """Every kind of roof that belongs with ``rows`` of a device, of each sheet over what it judged."""
    shelf, kind = selection.stores.shelves[device.store], evidence_of(rows)
    best, bandwidth = shelf.roofs_of(device.uid, kind)
    devices = devices_of(selection, device, rows)
    judged = [Judged(name, _judged_by(each, rows, len(devices) > 1), sheet_of(each)) for name, each in devices.items()]
    found = judged_roof_set(judged, bandwidth, {EmpiricalKey(*key): rate for key, rate in best.items()})
    clocked = []
    for each, known in zip(judged, devices.values(), strict=True):
        own = [row for row in each.rows if row.evidence == kind]  # the clocks of others are no clocks of this device
        lines = clocked_roofs(own, Ceilings(known.info, each.spec))
        clocked += [replace(line, sheet=each.name) if len(judged) > 1 else line for line in lines]
    return _named(selection, device, RoofSet((*found.lines, *clocked), found.notes, found.memory), kind)


def _named(selection: Selection, device: Device, roofs: RoofSet, kind: Evidence) -> RoofSet:
    """With the results that set the empirical roofs, which are of any run of the store: the best of its groups."""
    loads = {line.load for line in roofs.of_kind("empirical")}
    if not loads and roofs.memory is None:
        return roofs
    shelf = selection.stores.shelves[device.store]
    best = [
        group.best
        for each, group in shelf.held(wait_s=0).pairs
        if each == device and group.evidence == kind and group.outcome == Outcome.OK and group.is_trusted
        if group.job == CALIBRATION or group.load in loads
    ]
    return with_setters(roofs, shelf.rows(best[:MOST_SETTERS]))


def _judged_by(device: DeviceRow, rows: Sequence[ResultRow], several: bool) -> Sequence[ResultRow]:
    return [row for row in rows if row.hardware == device.hardware] if several else rows


def bandwidths_of(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> dict[str, float]:
    """The memory bandwidth by each sheet, ``spec``, and the best there is under the kind of evidence that ``rows`` are of."""
    shelf, kind = selection.stores.shelves[device.store], evidence_of(rows)
    devices = devices_of(selection, device, rows)
    sheets = {f"spec {name}" if len(devices) > 1 else "spec": sheet_of(each) for name, each in devices.items()}
    found = {name: spec.bandwidth_bytes_s if spec else None for name, spec in sheets.items()}
    found[kind.value] = shelf.roofs_of(device.uid, kind)[1]
    return {name: value for name, value in found.items() if value}


def sheet_lines(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> str:
    """What ``rows`` of a device were judged by, a line of Markdown for each sheet."""
    return "  \n".join(_sheet_line(each) for each in devices_of(selection, device, rows).values())


def several_sheets(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> str:
    """That ``rows`` of a device were judged by several sheets, and which; empty for one."""
    names = list(devices_of(selection, device, rows))
    return judged_by(names) if len(names) > 1 else ""


def _sheet_line(device: DeviceRow) -> str:
    spec = sheet_of(device)
    if spec is None:
        return plain(f"No spec sheet: {device.match_reason or 'none was matched'}. Fractions of spec are not available.")
    kind = "Derived spec" if spec.derived else "Spec sheet"
    bandwidth = spec.bandwidth_bytes_s
    memory = f"{si(bandwidth, 'B/s')} memory bandwidth" if bandwidth else "memory bandwidth not declared"
    return plain(f"{kind}: {spec.title}, {memory}")
