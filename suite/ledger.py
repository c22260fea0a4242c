"""From the end of a case to its stored row: judged against physics, summarised, committed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from suite.backend import DeviceInfo
from suite.case import Case
from suite.environment import without_identity
from suite.hardware.assign import assign
from suite.jobs.calibration import CalibrationJob
from suite.jobs.emulation import as_executed
from suite.launcher.death import Death
from suite.launcher.happenings import CaseEnded
from suite.measurement import Measurement
from suite.outcome import Evidence, Outcome
from suite.planned import DeviceSlot
from suite.protocol import Ready
from suite.reason import named, one_line
from suite.roofline import Ceilings, Summary, judge, summarize
from suite.rows import BaseKey, DeviceRow, Figures, ResultRow, base_name, is_resolved
from suite.settings import RunConfig

if TYPE_CHECKING:  # SQLAlchemy is loaded by whoever opens the store
    from suite.store.writer import RunWriter


class Place(NamedTuple):
    """A device slot as results refer to it: its row, what bounds it, and the evidence its numbers are."""

    row: DeviceRow
    ceilings: Ceilings
    evidence: Evidence


def device_row(slot: DeviceSlot, answer: Ready | Death, config: RunConfig) -> Place:
    """Match a slot's device to its spec sheet, or to the one the user named."""
    info = answer.device if isinstance(answer, Ready) else slot.info
    assert info is not None, "a run knows its devices"
    evidence = answer.evidence if isinstance(answer, Ready) else Evidence.MEASURED
    found = assign(info, config.hardware, config.hardware_folders)
    # A derived spec is no sheet of the catalogue, and has no id there.
    sheet = None if found.spec is None or found.spec.derived else found.hardware
    content = found.spec.to_json() if found.spec is not None else None
    return Place(DeviceRow(slot.slot, info, sheet, found.reason, content), Ceilings(info, found.spec), evidence)


class Ledger:
    """Enters the ends of cases into one run.

    Calibration results count for the cases after them, so that a device's first run has the bounds of its later ones.
    """

    def __init__(self, writer: "RunWriter", places: Mapping[int, Place], figures: Figures) -> None:
        self.writer = writer
        self._places = places
        self._figures = figures
        self._attempts = writer.attempts  # asked once: a case ends once in a sweep

    def enter(self, ended: CaseEnded) -> ResultRow:
        """Judge, summarise and commit one case; ``StoreWriteFailed`` when the store does not take it.

        A measurement out of which no finite numbers come is entered as an ``error``: the cases after it must have their turn.
        """
        try:
            return self._enter(ended)
        except (ValueError, ArithmeticError) as error:
            reason = one_line(f"the measurement has no finite numbers: {named(error)}")
            return self._enter(ended._replace(measurement=Measurement(Outcome.ERROR, reason)))

    def _enter(self, ended: CaseEnded) -> ResultRow:
        from suite.store.writer import Record

        place, description = self._places[ended.planned.slot], ended.measurement.description
        planned = ended.planned._replace(work=as_executed(ended.planned.work, description))
        regime, info = planned.case.regime, place.row.info
        judged = judge(ended.measurement, planned.work, place.ceilings, regime)
        measurement = replace(judged, reason=without_identity(judged.reason))  # errors like to name files below a home
        calibration = self._figures.calibration(info.uid, info.backend)
        summary = summarize(measurement, planned.work, regime, place.ceilings, calibration)
        finished_at = datetime.now(UTC)
        record = Record(
            planned=planned,
            measurement=measurement,
            summary=summary,
            evidence=place.evidence,
            started_at=finished_at - timedelta(seconds=ended.elapsed_s),
            finished_at=finished_at,
            attempt=self._attempts.get((planned.slot, planned.case.key), 0) + 1,
        )
        row = self.writer.record(record)
        if summary is not None:
            for name, value in base_figure(planned.case, summary):
                self._figures.enter(BaseKey(info.uid, info.backend, name), value, _is_undisturbed(measurement, summary))
        return row

    def log(self, slot: int, text: str) -> None:
        """Keep what a worker printed."""
        info: DeviceInfo = self._places[slot].row.info
        if text:
            self.writer.log(f"worker {info.backend} device {info.index}", text, slot)


def _is_undisturbed(measurement: Measurement, summary: Summary) -> bool:
    resolved = is_resolved(summary.interval_low_s, summary.interval_high_s, summary.p50_s)
    return measurement.contended is not True and resolved


def base_figure(case: Case, summary: Summary) -> Iterator[tuple[str, float]]:
    """The figure of ``Calibration`` that a result is, with its value; none for a case of any other job."""
    if case.workload.job != CalibrationJob.name:
        return
    op = case.workload.param("op")
    name = base_name(op, case.regime.dispatch)
    if name is not None:
        yield name, summary.p50_s if op == "empty" else summary.bytes_s
