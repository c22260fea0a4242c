"""The base figures that a run had: what its store held of its device when it began, and its own over them.

Later runs measure them again, and a run in progress may be disturbed by the one that is read: neither is what bound this run.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from suite.backend import DeviceInfo
from suite.outcome import Outcome
from suite.report.trust import TRUSTED, trust_rank
from suite.rows import BaseKey, Calibration, Figures, ResultRow, RunInfo, base_name


class Standing(NamedTuple):
    """Base figures with the results that they are of, by the fields of ``Calibration``."""

    calibration: Calibration
    set_by: Mapping[str, ResultRow]


def standing_of(found: Iterable[ResultRow], device: DeviceInfo, info: RunInfo, running: Collection[str] = ()) -> Standing:
    """What a run was bound by, among all the calibration results ``found`` of its device; ``running`` are runs in progress.

    A figure that was contended or is not resolved stands only where the run knew of no other.
    """
    figures, rows = Figures(), dict[BaseKey, list[ResultRow]]()
    for row in sorted(found, key=lambda row: (row.run == info.run, row.finished_at, row.result_id)):
        name = base_name(str(row.params.get("op")), row.dispatch)
        value = None if name is None else value_of(row, name)
        if name is None or value is None or not _is_known(row, info, running):
            continue
        key = BaseKey(row.device_uid, row.backend, name)
        figures.enter(key, value, trust_rank(row) == TRUSTED)
        rows.setdefault(key, []).append(row)
    calibration = figures.calibration(device.uid, device.backend)
    return Standing(calibration, dict(_setters(calibration, figures.values, rows)))


def value_of(row: ResultRow, name: str) -> float | None:
    """The figure ``name`` of a calibration result: bytes per second, or the seconds of an empty kernel."""
    return row.p50_s if name.startswith("empty") else row.bytes_s


def _is_known(row: ResultRow, info: RunInfo, running: Collection[str]) -> bool:
    if row.outcome != Outcome.OK:
        return False
    return row.run == info.run or (row.run not in running and row.finished_at <= info.started_at)


def _setters(
    calibration: Calibration, values: Mapping[BaseKey, float], rows: Mapping[BaseKey, list[ResultRow]]
) -> Iterable[tuple[str, ResultRow]]:
    for key, value in values.items():
        if getattr(calibration, key.name) == value:
            yield key.name, next(row for row in reversed(rows[key]) if value_of(row, key.name) == value)
