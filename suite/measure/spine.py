"""The measuring spine: one case from buffers to raw samples, inside a worker.

prepare   support -> compile -> check before timing -> a sampler for the regime
measure   settle -> sample, under the stopping rule, telemetry beside
finish    check after timing, on data the kernel has not seen, through the path that was timed
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from suite.backend import Backend, Channel, Kernel, Sampler
from suite.case import Case
from suite.measure.load import burst_windows, settle
from suite.measure.samples import thin
from suite.measure.statistics import Interval, batch_interval, median, median_interval
from suite.measure.stopping import IntervalRule
from suite.measure.verify import check, probe
from suite.measurement import Check, Measurement, SampleSet
from suite.outcome import Outcome
from suite.settings import MeasureSettings
from suite.telemetry import NoTelemetry, joined

NS = 1e-9
SEED_AFTER = 0x5EED  # the second check draws other data than the first


class Order(NamedTuple):
    """What the plan decided for one case: rotating input sets, tolerance of the check, data seed, alternating rounds."""

    sets: int
    tolerance: float
    seed: int
    rounds: int


class Trial:
    """One case being measured.  ``announce`` is told each phase as it begins, so that a deadline can be kept on it."""

    def __init__(
        self, backend: Backend, case: Case, order: Order, settings: MeasureSettings, announce: Callable[[str], None]
    ) -> None:
        self._backend, self._case, self._order, self._settings = backend, case, order, settings
        self._announce = announce
        self._kernel: Kernel | None = None
        self._sampler: Sampler | None = None
        self._before: Check | None = None
        self._batches: list[list[int]] = []
        self._rule: IntervalRule | None = None
        self._steady: bool | None = None
        self._telemetry: Mapping[str, Channel] = {}
        self._first_window_s = 0.0
        self._contended: bool | None = None
        self._phases_s: dict[str, float] = {}
        self._phase_began: tuple[str, float] | None = None

    def prepare(self) -> Measurement | None:
        """Make the case ready and check it once; a measurement is returned when it ends here."""
        self._enter("compile")
        reason = self._backend.supports(self._case)
        if reason is not None:
            return self._end(Outcome.UNSUPPORTED, reason)
        self._backend.peak_memory_bytes()  # from here on it is this case's
        self._kernel = self._backend.prepare(self._case, self._order.sets, self._order.seed)
        self._enter("verify")
        self._before = self._check(self._order.seed, self._launch_every_set)
        if not self._before.passed:
            return self._end(Outcome.INCORRECT, f"before timing: {self._before.reason}")
        self._enter("compile")
        self._sampler = self._backend.sampler(self._kernel, self._case, self._settings.sample_s)
        self._leave()
        return None

    def measure(self, round_index: int) -> None:
        """Take one round: alone until the stopping rule ends it, or one batch of an alternating measurement."""
        self._enter("measure")
        began_s = time.monotonic()
        telemetry = self._backend.telemetry() if self._settings.telemetry else NoTelemetry("measure.telemetry is off")
        if self._case.regime.load == "burst":
            for batch, window, at_s in burst_windows(self._ready_sampler(), telemetry, self._settings):
                self._batches.append(batch)
                self._keep(window, at_s)
        else:
            first = round_index == 0
            self._steady = (
                settle(self._ready_sampler(), telemetry, self._settings, briefly=not first) and self._steady is not False
            )
            telemetry.start()
            telemetry.mark()
            self._sample_round()
            telemetry.mark()
            self._keep(telemetry.stop(), began_s)
        others = telemetry.other_processes()
        self._contended = None if others is None else bool(others) or bool(self._contended)
        self._leave()

    def finish(self) -> Measurement:
        """Check again on fresh data through the timed path, and hand everything over."""
        self._enter("verify")
        kernel, sampler = self._ready_kernel(), self._ready_sampler()
        kernel.refill(self._order.seed ^ SEED_AFTER)
        after = self._check(self._order.seed ^ SEED_AFTER, sampler.replay)
        if not after.passed:
            return self._end(Outcome.INCORRECT, f"after timing: {after.reason}", after)
        return self._end(Outcome.OK, "", after)

    def close(self) -> None:
        """Free the sampler's and the kernel's memory."""
        for part in (self._sampler, self._kernel):
            if part is not None:
                part.close()
        self._sampler = self._kernel = None

    def _sample_round(self) -> None:
        sampler, settings = self._ready_sampler(), self._settings
        if self._order.rounds > 1:
            self._batches.append(_for_at_least(sampler, settings.min_time_s))
            return
        self._rule = IntervalRule(
            settings.target, settings.min_batches, settings.min_time_s, settings.max_time_s, sampler.resolution_s
        )
        batch: list[int] = []
        while not self._rule.done():
            began = time.monotonic()
            taken = sampler.sample(self._rule.next_count())
            self._rule.feed([duration * NS for duration in taken], time.monotonic() - began)
            batch.extend(taken)
        self._batches.append(batch)

    def _keep(self, window: Mapping[str, Channel], began_s: float) -> None:
        """Join this round's telemetry to that of the rounds before it."""
        if not self._telemetry:
            self._first_window_s = began_s
        self._telemetry = joined(self._telemetry, window, began_s - self._first_window_s)

    def _check(self, seed: int, run: Callable[[], None]) -> Check:
        kernel = self._ready_kernel()
        looked_at = sorted({0, kernel.sets - 1, seed % kernel.sets})
        probes = [probe(kernel.output_shape, index, self._settings.verify_tiles, seed + index) for index in looked_at]

        def run_alone() -> None:
            self._backend.synchronize()
            run()
            self._backend.synchronize()

        return check(kernel, probes, self._order.tolerance, run_alone)

    def _launch_every_set(self) -> None:
        kernel = self._ready_kernel()
        for index in range(kernel.sets):
            kernel.enqueue(index)

    def _end(self, outcome: Outcome, reason: str, after: Check | None = None) -> Measurement:
        self._leave()
        timed = outcome is Outcome.OK
        interval = self._interval_s() if timed else None
        return Measurement(
            outcome=outcome,
            reason=reason,
            execution=self._kernel.execution if self._kernel else "native",
            samples=self._sample_set() if timed else None,
            interval_s=(interval.low, interval.high) if interval else None,
            converged=self._converged(interval) if timed else None,
            steady=self._steady,
            contended=self._contended,
            check_before=self._before,
            check_after=after,
            telemetry=self._telemetry,
            description=dict(self._kernel.describe()) if self._kernel else {},
            phases_s=dict(self._phases_s),
            peak_memory_bytes=self._backend.peak_memory_bytes() if self._kernel else None,
        )

    def _interval_s(self) -> Interval | None:
        """Interval of one launch's median, seconds."""
        launches = self._ready_sampler().launches
        per_launch = [[duration * NS / launches for duration in batch] for batch in self._batches if batch]
        if len(per_launch) > 1:
            return batch_interval(per_launch)
        return median_interval(per_launch[0]) if per_launch and len(per_launch[0]) > 1 else None

    def _converged(self, interval: Interval | None) -> bool:
        if self._rule is not None:
            return self._rule.converged
        launches = self._ready_sampler().launches
        center = median(duration * NS / launches for batch in self._batches for duration in batch)
        return interval is not None and interval.relative_half_width(center) <= self._settings.target

    def _sample_set(self) -> SampleSet:
        sampler = self._ready_sampler()
        durations = [duration for batch in self._batches for duration in batch]
        kept, stride = thin(durations)
        return SampleSet(
            durations_ns=tuple(kept),
            launches=sampler.launches,
            method=sampler.method,
            resolution_s=sampler.resolution_s,
            count=len(durations),
            sum_ns=sum(durations),
            min_ns=min(durations),
            stride=stride,
            boundaries=_boundaries(self._batches, stride),
            details=dict(sampler.details),
        )

    def _ready_kernel(self) -> Kernel:
        assert self._kernel is not None, "prepare() comes first"
        return self._kernel

    def _ready_sampler(self) -> Sampler:
        assert self._sampler is not None, "prepare() comes first"
        return self._sampler

    def _enter(self, phase: str) -> None:
        self._leave()
        self._announce(phase)
        self._phase_began = (phase, time.monotonic())

    def _leave(self) -> None:
        if self._phase_began is not None:
            phase, began = self._phase_began
            self._phases_s[phase] = self._phases_s.get(phase, 0.0) + time.monotonic() - began
            self._phase_began = None


def _for_at_least(sampler: Sampler, seconds: float, least: int = 3) -> list[int]:
    """One batch: samples until their own durations cover ``seconds``, at least ``least`` of them."""
    taken = list(sampler.sample(least))
    missing_s = seconds - sum(taken) * NS
    if missing_s > 0:
        taken += sampler.sample(max(1, round(missing_s / max(median(taken) * NS, 1e-9))))
    return taken


def _boundaries(batches: Sequence[Sequence[int]], stride: int) -> tuple[int, ...]:
    starts, position = [], 0
    for batch in batches:
        starts.append(-(-position // stride))
        position += len(batch)
    return tuple(starts) or (0,)
