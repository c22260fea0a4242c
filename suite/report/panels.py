"""One device with its results and everything they are held against: what a report's section and a view both show."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from suite.backend import Fact
from suite.hardware.spec import HardwareSpec
from suite.outcome import Evidence
from suite.report.roofs import CALIBRATION, EmpiricalKey, RoofSet, lacks_setters, roof_set, with_setters
from suite.report.sheets import sheet_of
from suite.rows import CalibrationHistory, DeviceRow, ResultRow, RunInfo

if TYPE_CHECKING:  # the store's room imports SQLAlchemy
    from suite.store.roofs import RoofKey


MOST_RUNS = 16  # that are looked through for what set an empirical roof


class Source(Protocol):
    """The queries that reports and views are built from; ``suite.store.queries.Reader`` answers them."""

    def runs(self) -> Sequence[RunInfo]: ...

    def resolve(self, run: str) -> RunInfo: ...

    def results(
        self, run: str | None = None, *, job: str | None = None, device_uid: str | None = None, evidence: str | None = None
    ) -> Sequence[ResultRow]: ...

    def devices(self, run: str) -> Sequence[DeviceRow]: ...

    def environment(self, run: str) -> Mapping[str, Mapping[str, Fact]]: ...

    def calibrations(self, device_uid: str, backend: str, evidence: Evidence) -> CalibrationHistory: ...

    def empirical_roofs(self, evidence: Evidence) -> "Mapping[RoofKey, float]": ...

    def empirical_bandwidth(self, device_uid: str, evidence: Evidence) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Panel:
    """A device, its results, its spec sheet (``None`` where none was matched), its calibrations and its roofs.

    ``calibrating`` are the results of every run of the store that calibrated it.
    """

    device: DeviceRow
    rows: tuple[ResultRow, ...]
    spec: HardwareSpec | None
    calibrations: CalibrationHistory
    roofs: RoofSet
    calibrating: tuple[ResultRow, ...] = ()


def panel(reader: Source, device: DeviceRow, rows: Sequence[ResultRow]) -> Panel:
    """Put ``rows``, all of them results of ``device``, under the roofs that belong to them."""
    evidence = evidence_of(rows)
    spec = sheet_of(device)
    calibrations = reader.calibrations(device.info.uid, device.info.backend, evidence)
    best = _best_of(reader.empirical_roofs(evidence), device.info.uid)
    bandwidth = reader.empirical_bandwidth(device.info.uid, evidence)
    calibrating = reader.results(job=CALIBRATION, device_uid=device.info.uid, evidence=evidence.value)
    roofs = with_setters(roof_set(rows, spec, bandwidth, best), [*rows, *calibrating])
    return Panel(device, tuple(rows), spec, calibrations, _named(reader, roofs, device, evidence), tuple(calibrating))


def _named(reader: Source, roofs: RoofSet, device: DeviceRow, evidence: Evidence) -> RoofSet:
    """With what set the empirical roofs, looked for in the newest runs of the store where it is none of this run."""
    for info in reader.runs()[:MOST_RUNS] if lacks_setters(roofs) else ():
        found = reader.results(info.run)
        own = [row for row in found if row.device_uid == device.info.uid and row.evidence == evidence]
        roofs = with_setters(roofs, own)
        if not lacks_setters(roofs):
            break
    return roofs


def each_once(devices: Iterable[DeviceRow]) -> tuple[DeviceRow, ...]:
    """One row for each slot and chip, as it was last recorded: a resumed run may have found other settings."""
    return tuple({(device.slot, device.info.uid): device for device in devices}.values())


def device_of(devices: Iterable[DeviceRow], row: ResultRow) -> DeviceRow:
    """The device a result was taken on, as its run recorded it last."""
    found = [each for each in devices if (each.slot, each.info.uid) == (row.device_slot, row.device_uid)]
    assert found, f"result {row.result_id} refers to a device of its run"
    return found[-1]


def evidence_of(rows: Sequence[ResultRow]) -> Evidence:
    """The kind of evidence whose roofs apply: simulated results are held against simulated ones only."""
    kinds = {row.evidence for row in rows}
    return Evidence.SIMULATED if kinds == {Evidence.SIMULATED.value} else Evidence.MEASURED


def _best_of(roofs: "Mapping[RoofKey, float]", uid: str) -> dict[EmpiricalKey, float]:
    return {EmpiricalKey(key.pipe, key.load): rate for key, rate in roofs.items() if key.device_uid == uid}
