"""Roofbench's side of every comparison: cases planned, measured and judged by the code that a run uses."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from suite.case import Regime, items
from suite.jobs.calibration import CalibrationJob
from suite.jobs.gemm import GemmSettings
from suite.measure.spine import Order, Trial
from suite.measurement import Measurement, SampleSet
from suite.outcome import Outcome
from suite.plan import ceilings, data_seed, parse_regime, plan
from suite.planned import DeviceSlot, PlannedCase
from suite.roofline import Summary, judge, launch_times_s, summarize
from suite.rows import Calibration
from suite.settings import JobSettings, MeasureSettings, RunConfig
from suite.worker.serve import caught
from tests.peers.device import selected
from tests.peers.gemms import Gemm

T = TypeVar("T")

COLD = parse_regime("cold/sustained/device")
WARM = parse_regime("warm/sustained/device")
BURST = parse_regime("cold/burst/device")

# Everything short enough to try the whole chain on a laptop; its figures mean nothing.
TINY = MeasureSettings(
    min_batches=5,
    min_time_s=0.002,
    max_time_s=0.2,
    sample_s=2e-4,
    burst_windows=2,
    burst_window_s=0.005,
    burst_first_idle_s=0.01,
    burst_idle_s=0.01,
    steady_window_s=0.01,
    steady_timeout_s=0.02,
    verify_tiles=1,
)


NO_TIME = "no time was left"


class Measured(NamedTuple):
    """One case: its raw measurement and derived numbers, or why there are none."""

    planned: PlannedCase
    measurement: Measurement | None
    summary: Summary | None
    reason: str = ""

    @property
    def cycles(self) -> float | None:
        """Cycles of one launch by the device's own counter; ``None`` where nothing counts them."""
        return self.summary.p50_s * self.summary.clock_hz if self.summary and self.summary.clock_hz else None

    def figures(self) -> dict[str, Any]:
        """What the record keeps of it: the summary and how the samples were taken, without the samples."""
        samples = self.measurement.samples if self.measurement else None
        return {
            "case": self.planned.case.title,
            "reason": self.reason,
            "summary": self.summary.to_json() if self.summary else None,
            "method": samples.method if samples else None,
            "launches": samples.launches if samples else None,
            "details": dict(samples.details) if samples else None,
            "steady": self.measurement.steady if self.measurement else None,
            "converged": self.measurement.converged if self.measurement else None,
            "phases_s": dict(self.measurement.phases_s) if self.measurement else None,
        }


class Bench:
    """One selected device.  ``target`` is a backend's name or ``module:Class``; ``tiny`` shortens everything."""

    def __init__(self, target: str, tiny: bool = False, options: dict[str, Any] | None = None) -> None:
        self.tiny = tiny
        self.backend = selected(target, options)
        self.info = self.backend.select(0)
        self.slot = DeviceSlot(0, self.backend.name, target, self.info)
        self.ceilings = ceilings(self.info, RunConfig())

    def settings(self, **changes: Any) -> MeasureSettings:
        """How cases are measured by default, with ``changes``; ``tiny`` takes the lower of a change and its own value."""
        base = TINY if self.tiny else MeasureSettings()
        if self.tiny:
            changes = {name: min(value, getattr(TINY, name)) for name, value in changes.items()}
        return replace(base, **changes)

    def gemm(self, gemm: Gemm, regime: Regime, distribution: str = "normal") -> PlannedCase:
        """Plan one matrix product as ``roofbench run`` would."""
        shape = f"{gemm.m}x{gemm.n}x{gemm.k}"
        return self._plan(GemmSettings(formats=[gemm.format], shapes=[shape], distributions=[distribution]), regime)[0]

    def copy(self, array_bytes: int) -> PlannedCase:
        """Plan a copy of one array, as many bytes read as written, by the line that plans a calibration's."""
        config = RunConfig(jobs={"gemm": GemmSettings(shapes=["16x16x16"])})
        copies = (each for each in plan(config, [self.slot]) if dict(each.case.workload.params).get("op") == "copy")
        planned = next(copies)
        workload = replace(planned.case.workload, params=items({"op": "copy", "bytes": 2 * array_bytes}))
        job = CalibrationJob()
        work, footprint = job.work(workload), job.footprint(workload)
        return planned._replace(
            case=replace(planned.case, workload=workload), work=work, memory_bytes=footprint.total_bytes(planned.sets)
        )

    def trial(self, planned: PlannedCase, settings: MeasureSettings, rounds: int = 1, backend: Any = None) -> Trial:
        """The measuring line of a worker on one planned case; ``backend`` stands in for this one's own."""
        order = Order(planned.sets, planned.tolerance, data_seed(0, planned.case.workload.key), rounds)
        return Trial(backend or self.backend, planned.case, order, settings, lambda phase: None)

    def measure(self, planned: PlannedCase, settings: MeasureSettings | None = None) -> Measured:
        """Prepare, check, measure and check again; whatever a kernel or framework raises is the reason of this case."""
        return self.carry_out(planned, self.trial(planned, settings or self.settings()), rounds=(0,))

    def carry_out(self, planned: PlannedCase, trial: Trial, rounds: Iterable[int]) -> Measured:
        """Take ``trial`` through its rounds; what ``rounds`` does between two numbers happens between two rounds."""
        ended: list[Measurement] = []

        def line() -> None:
            early = trial.prepare()
            if early is not None:
                ended.append(early)
                return
            for number in rounds:
                trial.measure(number)
            ended.append(trial.finish())

        failure = caught(line, self.backend.classify)
        failure = caught(trial.close, self.backend.classify) or failure
        return Measured(planned, None, None, failure.reason) if failure else self._judged(planned, ended[0])

    def _judged(self, planned: PlannedCase, measurement: Measurement) -> Measured:
        case, limits = planned.case, self.ceilings
        assert limits is not None, "a selected device has facts"
        measurement = judge(measurement, planned.work, limits, case.regime)
        summary = summarize(measurement, planned.work, case.regime, limits, Calibration())
        reason = "" if summary else f"{measurement.outcome.value}: {measurement.reason}"
        return Measured(planned, measurement, summary, reason)

    def _plan(self, job: JobSettings, regime: Regime) -> tuple[PlannedCase, ...]:
        measure = replace(MeasureSettings(), regimes=[regime.label])
        return plan(RunConfig(jobs={job.name: job}, measure=measure), [self.slot], calibrated={0})


def batches_s(samples: SampleSet) -> list[list[float]]:
    """Seconds of one launch for each kept sample, batch by batch."""
    return in_batches(launch_times_s(samples), samples)


def in_batches(values: Sequence[T], samples: SampleSet) -> list[list[T]]:
    """One value for each kept sample, batch by batch."""
    return [list(values[first:last]) for first, last in pairwise([*samples.boundaries, len(values)])]


def is_absent(measured: Measured) -> bool:
    """Whether a case has no figure because the device does not offer it, or it was not begun: no failure."""
    unsupported = measured.measurement is not None and measured.measurement.outcome is Outcome.UNSUPPORTED
    return unsupported or measured.reason == NO_TIME
