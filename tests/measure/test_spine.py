"""The spine with scripted parts: order of phases, regimes, checks, and what ends up in a measurement."""

import time

import pytest

from suite.case import Case, Regime, Workload, items
from suite.measure.spine import Order, Trial
from suite.outcome import Outcome
from suite.settings import MeasureSettings
from tests.measure.stand_ins import Clock, ScriptedBackend, ScriptedKernel, ScriptedSampler, ScriptedTelemetry

WORKLOAD = Workload("gemm", "fp32", items({"m": 8, "n": 8, "k": 8, "layout": "nt"}))


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


class Rig:
    def __init__(self, clock, load="sustained", rounds=1, duration_ns=lambda i: 1_000_000, launches=1, sm_clock=None, **kernel):
        self.kernel = ScriptedKernel(**kernel)
        self.sampler = ScriptedSampler(self.kernel, duration_ns, clock, launches)
        self.telemetry = ScriptedTelemetry(clock, sm_clock or (lambda t: 1.4e9))
        self.backend = ScriptedBackend(self.kernel, self.sampler, self.telemetry)
        self.phases = []
        case = Case(WORKLOAD, "library", "scripted", Regime("cold", load, "device"))
        order = Order(sets=self.kernel.sets, tolerance=1e-6, seed=5, rounds=rounds)
        self.trial = Trial(self.backend, case, order, MeasureSettings(), self.phases.append)

    def run(self, rounds=1):
        early = self.trial.prepare()
        if early is not None:
            return early
        for index in range(rounds):
            self.trial.measure(index)
        return self.trial.finish()


def test_a_good_case_is_checked_measured_and_checked_again(clock):
    rig = Rig(clock, sets=3)
    result = rig.run()
    assert result.outcome is Outcome.OK
    assert rig.phases == ["compile", "verify", "compile", "measure", "verify"]
    assert result.check_before.passed
    assert result.check_after.passed
    assert result.steady is True
    assert result.converged is True
    assert result.contended is False
    assert result.samples.count == 101  # 0.1 s of 1 ms samples, after the one that told how long they take
    assert result.interval_s == pytest.approx((1e-3, 1e-3))


def test_times_are_per_launch(clock):
    result = Rig(clock, launches=10).run()
    assert result.samples.launches == 10
    assert result.interval_s == pytest.approx((1e-4, 1e-4))


def test_a_kernel_that_is_wrong_at_once_is_never_timed(clock):
    rig = Rig(clock, wrong_from_start=True)
    result = rig.run()
    assert result.outcome is Outcome.INCORRECT
    assert "before timing" in result.reason
    assert rig.sampler.taken == 0
    assert result.samples is None


def test_a_kernel_that_returns_a_remembered_answer_is_caught_after_timing(clock):
    """Caching an output makes 14 of 15 calls free (gpu-mode/reference-kernels issue 104)."""
    result = Rig(clock, wrong_after_refill=True).run()
    assert result.outcome is Outcome.INCORRECT
    assert "after timing" in result.reason
    assert result.samples is None


def test_an_unsupported_case_says_why_and_allocates_nothing(clock):
    rig = Rig(clock)
    rig.backend.refuses = "no fp8 units"
    result = rig.run()
    assert (result.outcome, result.reason) == (Outcome.UNSUPPORTED, "no fp8 units")
    assert rig.kernel.enqueued == []


def test_burst_waits_before_each_window_and_drops_its_first_sample(clock):
    rig = Rig(clock, load="burst", duration_ns=lambda i: 4_000_000)
    rig.trial.prepare()
    rig.trial.measure(0)
    idle_and_windows_s = clock.now_s
    result = rig.trial.finish()
    assert result.samples.count == 5 * 4  # four of 4 ms fit in 20 ms after the dropped one
    assert result.samples.boundaries == (0, 4, 8, 12, 16)
    assert idle_and_windows_s == pytest.approx(5 + 4 * 1 + 5 * 0.02)
    assert result.steady is None


def test_a_launch_longer_than_the_burst_window_still_gives_a_window(clock):
    result = Rig(clock, load="burst", duration_ns=lambda i: 50_000_000).run()
    assert result.samples.count == 5


def test_a_clock_that_keeps_falling_is_reported_as_not_steady(clock):
    result = Rig(clock, sm_clock=lambda t: 2e9 - 8e7 * t).run()
    assert result.outcome is Outcome.OK
    assert result.steady is False


def test_sampling_starts_only_after_the_clock_has_settled(clock):
    rig = Rig(clock, sm_clock=lambda t: 2e9 - 2e8 * min(t, 3.0), duration_ns=lambda i: 1_000_000 if i < 2500 else 1_300_000)
    result = rig.run()
    assert result.steady is True
    assert result.samples.min_ns == 1_300_000


def test_rounds_are_batches_and_give_the_interval(clock):
    drift = [1_000_000, 1_010_000, 990_000, 1_005_000, 995_000]
    rig = Rig(clock, rounds=5)
    rig.sampler.duration_ns = lambda i: drift[rig.telemetry.windows - 1] if rig.telemetry.windows else 1_000_000
    result = rig.run(rounds=5)
    assert len(result.samples.boundaries) == 5
    low, high = result.interval_s
    assert low < 1e-3 < high
    assert (high - low) / 2 / 1e-3 == pytest.approx(2.776 * 0.00790569 / 5**0.5, rel=1e-3)


def test_foreign_processes_mark_the_result_contended(clock):
    rig = Rig(clock)
    rig.telemetry.others = 2
    assert rig.run().contended is True
    rig = Rig(clock)
    rig.telemetry.others = None
    assert rig.run().contended is None


def test_closing_frees_sampler_and_kernel(clock):
    rig = Rig(clock)
    rig.run()
    rig.trial.close()
    assert rig.sampler.closed
    assert rig.kernel.closed


def test_long_recordings_are_thinned_but_counted_exactly(clock):
    rig = Rig(clock, duration_ns=lambda i: 10_000 if i != 5_000 else 7_000)
    rig.trial._settings.steady_window_s = 0.001
    result = rig.run()
    assert result.samples.count > 4096
    assert len(result.samples.durations_ns) <= 4096
    assert result.samples.min_ns == 7_000
    assert result.samples.sum_ns == pytest.approx(result.samples.count * 10_000, abs=3_000)


def test_the_device_clock_is_read_around_the_timed_work_only(clock):
    sustained, burst = Rig(clock), Rig(clock, load="burst")
    sustained.run()
    burst.run()
    assert sustained.telemetry.marks == 2
    assert burst.telemetry.marks == 10


def test_telemetry_can_be_left_off(clock):
    rig = Rig(clock)
    rig.trial._settings.telemetry = False
    result = rig.run()
    assert rig.telemetry.windows == 0
    assert {channel.unavailable for channel in result.telemetry.values()} == {"measure.telemetry is off"}
