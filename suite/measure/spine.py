"""The measuring spine: one case from buffers to raw samples, inside a worker.

prepare   support -> compile -> check before timing -> a sampler for the regime
measure   settle -> sample, under the stopping rule, telemetry beside
finish    check after timing, on data the kernel has not seen, through the path that was timed
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from suite.backend import Backend, Channel, Kernel, Sampler, Spanning, Telemetry
from suite.case import Case
from suite.measure.collected import Collected, take
from suite.measure.load import Window, burst_windows, settle, watched
from suite.measure.others import TELEMETRY_OFF
from suite.measure.regimes import energy_window_s
from suite.measure.rounds import RoundRule
from suite.measure.statistics import Interval, batch_interval, median, median_interval
from suite.measure.stopping import IntervalRule, narrow_enough
from suite.measure.verify import Expected, check, expect, probe
from suite.measurement import Check, Measurement
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
        self._expected: Expected | None = None
        self._before: Check | None = None
        self._collected = Collected()
        self._rule: IntervalRule | None = None
        self._steady: bool | None = None
        self._clock_moves = False
        self._telemetry: Mapping[str, Channel] = {}
        self._opened_s: float | None = None
        self._others: list[int | None] = []  # of each round
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
        self._expected = self._expect(self._order.seed)
        self._before = self._check(self._expected, self._launch_every_set)
        if not self._before.passed:
            return self._end(Outcome.INCORRECT, f"before timing: {self._before.reason}")
        self._enter("compile")
        self._sampler = self._backend.sampler(self._kernel, self._case, self._settings.sample_s)
        self._leave()
        return None

    def measure(self, round_index: int) -> None:
        """Take one round: alone until the stopping rule ends it, or one batch of an alternating measurement.

        What brings the device into its state, idle times included, is the phase ``settle``; its deadline is that of
        ``measure``, the phase that is announced.
        """
        self._enter("measure", kept_as="settle")
        telemetry = self._backend.telemetry() if self._settings.telemetry else NoTelemetry(TELEMETRY_OFF)
        if self._case.regime.load == "burst":
            self._sample_bursts(telemetry)
        else:
            self._sample_sustained(telemetry, first=round_index == 0)
        self._others.append(telemetry.other_processes())
        self._leave()

    def finish(self) -> Measurement:
        """Check again through the timed path, and hand everything over.

        Once on the data that was timed: a kernel that remembers its inputs does nothing in a timed launch, and everything
        as soon as they are new.  Once on fresh data: one that remembers its output is wrong there.
        """
        self._enter("verify")
        kernel, sampler, expected = self._ready_kernel(), self._ready_sampler(), self._expected
        assert expected is not None, "prepare() comes first"
        timed = self._check(expected, sampler.replay)
        if not timed.passed:
            return self._end(Outcome.INCORRECT, f"after timing, on the data that was timed: {timed.reason}", timed)
        kernel.refill(self._order.seed ^ SEED_AFTER)
        after = self._check(self._expect(self._order.seed ^ SEED_AFTER), sampler.replay)
        if not after.passed:
            return self._end(Outcome.INCORRECT, f"after timing: {after.reason}", after)
        return self._end(Outcome.OK, "", after)

    def close(self) -> None:
        """Free the sampler's and the kernel's memory."""
        for part in (self._sampler, self._kernel):
            if part is not None:
                part.close()
        self._sampler = self._kernel = None

    def _sample_bursts(self, telemetry: Telemetry) -> None:
        for taken, window in burst_windows(self._ready_sampler(), telemetry, self._settings):
            self._time("measure", window.opened_s)
            self._collected.begin_batch()
            self._collected.add(taken)
            self._keep(window)
            self._time("settle", time.monotonic())

    def _sample_sustained(self, telemetry: Telemetry, first: bool) -> None:
        settled = settle(self._ready_sampler(), telemetry, self._settings, briefly=not first)
        self._steady, self._clock_moves = settled.steady and self._steady is not False, settled.clock_moves
        self._time("measure", time.monotonic())
        with watched(telemetry) as window:
            self._sample_round(telemetry.others_span_s if isinstance(telemetry, Spanning) else 0.0)
        self._keep(window)

    def _sample_round(self, others_span_s: float) -> None:
        sampler, rule = self._ready_sampler(), self._new_rule(others_span_s)
        self._collected.begin_batch()
        while not rule.done():
            taken = take(sampler, rule.next_count())
            rule.feed([duration * NS for duration in taken.durations_ns], taken.elapsed_s, taken.cycles)
            self._collected.add(taken)

    def _new_rule(self, others_span_s: float) -> IntervalRule | RoundRule:
        """What ends a round.  Where energy is asked for, no window is shorter than its counter needs.

        Nor is it shorter than it takes to tell whether others were at work, as far as ``max_time_s`` allows: beside them a
        CPU's scheduler gives turns of 4 ms, of which 0.16 s can be as even as a product that has the machine to itself.
        """
        settings, energy_s = self._settings, energy_window_s(self._settings)
        most_s = max(settings.max_time_s, energy_s)
        window_s = max(energy_s, min(others_span_s, most_s))
        if self._order.rounds > 1:
            return RoundRule(settings.min_time_s, window_s, most_s)
        least_s = max(settings.min_time_s, window_s)
        resolution_s = self._ready_sampler().resolution_s
        self._rule = IntervalRule(settings.target, settings.min_batches, least_s, most_s, resolution_s, self._clock_moves)
        return self._rule

    def _keep(self, window: Window) -> None:
        """Join this window's telemetry to that of the windows before it."""
        if self._opened_s is None:
            self._opened_s = window.opened_s
        self._telemetry = joined(self._telemetry, window.telemetry, window.opened_s - self._opened_s)

    def _expect(self, seed: int) -> Expected:
        """What the data of ``seed``, which are in the inputs, should give."""
        kernel = self._ready_kernel()
        looked_at = sorted({0, kernel.sets - 1, seed % kernel.sets})
        tiles = self._settings.verify_tiles
        return expect(kernel, [probe(kernel.output_shape, index, tiles, seed + index) for index in looked_at])

    def _check(self, expected: Expected, run: Callable[[], None]) -> Check:
        def run_alone() -> None:
            self._backend.synchronize()
            run()
            self._backend.synchronize()

        return check(self._ready_kernel(), expected, self._order.tolerance, run_alone)

    def _launch_every_set(self) -> None:
        kernel = self._ready_kernel()
        for index in range(kernel.sets):
            kernel.enqueue(index)

    def _end(self, outcome: Outcome, reason: str, after: Check | None = None) -> Measurement:
        self._leave()
        timed = outcome is Outcome.OK
        interval, in_cycles = (self._interval_s(), self._interval_cycles()) if timed else (None, None)
        return Measurement(
            outcome=outcome,
            reason=reason,
            execution=self._kernel.execution if self._kernel else "native",
            samples=self._collected.sample_set(self._ready_sampler(), self._opened_s or 0.0) if timed else None,
            interval_s=(interval.low, interval.high) if interval else None,
            interval_cycles=(in_cycles.low, in_cycles.high) if in_cycles else None,
            converged=self._converged(interval, in_cycles) if timed else None,
            steady=self._steady,
            contended=self._contended(),
            check_before=self._before,
            check_after=after,
            telemetry=self._telemetry,
            description=dict(self._kernel.describe()) if self._kernel else {},
            phases_s=dict(self._phases_s),
            peak_memory_bytes=self._backend.peak_memory_bytes() if self._kernel else None,
        )

    def _contended(self) -> bool | None:
        """Whether others were at work in any round; not known where one round of no company could not tell."""
        if any(self._others):
            return True
        return False if self._others and None not in self._others else None

    def _interval_s(self) -> Interval | None:
        """Interval of one launch's median, seconds: the stopping rule's, where one decided.  No duration is below zero."""
        sampler = self._ready_sampler()
        of_samples = self._rule.interval if self._rule is not None else self._interval_of_batches(sampler.resolution_s)
        if of_samples is None:
            return None
        # Negative durations are a backend's error, which whoever receives them names.
        positive = of_samples.within(0.0, math.inf) if of_samples.high > 0 else of_samples
        return positive.per_launch(sampler.launches)

    def _interval_of_batches(self, resolution_s: float) -> Interval | None:
        return _interval_between([[duration * NS for duration in batch] for batch in self._collected.batches], resolution_s)

    def _interval_cycles(self) -> Interval | None:
        """Interval of the median cycles of one launch; ``None`` where the clock was not counted over every sample."""
        sampler = self._ready_sampler()
        if self._rule is not None:
            found = self._rule.interval_cycles
        else:
            batches = self._collected.batches_cycles
            found = _interval_between(batches, sampler.resolution_s * _clock_hz(batches, self._collected.batches))
        return found.per_launch(sampler.launches) if found is not None else None

    def _converged(self, in_time: Interval | None, in_cycles: Interval | None) -> bool:
        """The stopping rule's word, or that of batches whose number was fixed: narrow enough in time, or in cycles."""
        if self._rule is not None:
            return self._rule.converged
        sampler, target = self._ready_sampler(), self._settings.target
        resolution_s = sampler.resolution_s / sampler.launches
        seconds = [duration * NS / sampler.launches for batch in self._collected.batches for duration in batch]
        if in_time is not None and narrow_enough(in_time, median(seconds), target, resolution_s):
            return True
        cycles = [each / sampler.launches for batch in self._collected.batches_cycles for each in batch]
        return in_cycles is not None and narrow_enough(in_cycles, median(cycles), target, 0.0)

    def _ready_kernel(self) -> Kernel:
        assert self._kernel is not None, "prepare() comes first"
        return self._kernel

    def _ready_sampler(self) -> Sampler:
        assert self._sampler is not None, "prepare() comes first"
        return self._sampler

    def _enter(self, phase: str, kept_as: str = "") -> None:
        """Announce a phase that the launcher knows, and keep its time under that name or another."""
        self._leave()
        self._announce(phase)
        self._time(kept_as or phase, time.monotonic())

    def _leave(self) -> None:
        self._time("", time.monotonic())

    def _time(self, phase: str, since_s: float) -> None:
        """End the phase under way at a moment, and begin another; none where it has no name."""
        if self._phase_began is not None:
            before, began_s = self._phase_began
            self._phases_s[before] = self._phases_s.get(before, 0.0) + since_s - began_s
        self._phase_began = (phase, since_s) if phase else None


def _interval_between(batches: Sequence[Sequence[float]], resolution: float) -> Interval | None:
    """Of batches whose number was fixed: from how they differ, or of a single one as of any stretch of samples."""
    filled = [batch for batch in batches if batch]
    if len(filled) > 1:
        return batch_interval(filled, resolution)
    return median_interval(filled[0], resolution) if filled and len(filled[0]) > 1 else None


def _clock_hz(batches_cycles: Sequence[Sequence[float]], batches_ns: Sequence[Sequence[int]]) -> float:
    """The mean clock of all samples; 0 where none was counted."""
    spent_ns = sum(map(sum, batches_ns))
    return sum(map(sum, batches_cycles)) / (spent_ns * NS) if spent_ns else 0.0
