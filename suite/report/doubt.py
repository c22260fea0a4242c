"""Whether a bound rests on a bandwidth that was measured while other work ran, or is not resolved.

Where no sheet declares a device's bandwidth, as of a CPU, the calibrated one decides between arithmetic and memory.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from suite.hardware.spec import LINKS
from suite.outcome import Bound, Evidence
from suite.report.panels import each_once, evidence_of
from suite.report.printable import printable
from suite.report.sheets import sheet_of
from suite.report.words import counted
from suite.rows import Calibration, CalibrationHistory, DeviceRow, ResultRow

DISTURBED = "while other work ran, or not resolved"
AGAIN = "measure again with nothing beside"
WEIGHED = (Bound.COMPUTE, Bound.MEMORY, Bound.CACHE)  # what is decided by arithmetic against memory


class Source(Protocol):
    """A store's calibrations."""

    def calibrations(self, device_uid: str, backend: str, evidence: Evidence) -> CalibrationHistory: ...


def is_in_doubt(row: ResultRow, calibration: Calibration, declared_bytes_s: float | None) -> bool:
    """Whether a result's bound rests on a disturbed bandwidth; ``calibration`` stood when it finished."""
    weighed = row.bound in WEIGHED and row.flops and row.compulsory_bytes and row.pipe not in LINKS
    return bool(weighed and declared_bytes_s is None and calibration.is_memory_disturbed)


def in_doubt(source: Source, devices: Iterable[DeviceRow], rows: Sequence[ResultRow]) -> Mapping[int, DeviceRow]:
    """By their ids the results of a run whose bound does, with their devices."""
    found: dict[int, DeviceRow] = {}
    for device in each_once(devices):
        own = [row for row in rows if (row.device_slot, row.device_uid) == (device.slot, device.info.uid)]
        spec = sheet_of(device)
        if not own or (spec is not None and spec.bandwidth_bytes_s):
            continue
        history = source.calibrations(device.info.uid, device.info.backend, evidence_of(own))
        found |= {row.result_id: device for row in own if is_in_doubt(row, history.at(row.finished_at), None)}
    return found


def doubt_lines(doubted: Mapping[int, DeviceRow]) -> Iterator[str]:
    """One line for each device that has such results."""
    counts: dict[tuple[str, str], int] = {}
    for device in doubted.values():
        key = device.info.backend, device.info.name
        counts[key] = counts.get(key, 0) + 1
    for (backend, name), count in counts.items():
        rests = f"the bound of {counted(count, 'case')} rests on it and may be wrong"
        yield f"{backend} {printable(name)}: its bandwidth was measured {DISTURBED}: {rests}; {AGAIN}"
