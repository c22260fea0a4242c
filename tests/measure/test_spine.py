"""The spine with scripted parts: order of phases, regimes, checks, and what ends up in a measurement."""

import time

import pytest

from backends.telemetry import nvidia
from suite.case import Case, Regime, Workload, items
from suite.errors import UsageError
from suite.measure.spine import Order, Trial
from suite.measure.stopping import KNOWN_WHILE_STEPPING
from suite.measure.timeline import sample_times_s, sampling_s
from suite.outcome import Outcome
from suite.roofline import ENERGY_WINDOW_S
from suite.settings import MeasureSettings
from tests.measure.stand_ins import Clock, CountedSampler, ScriptedBackend, ScriptedKernel, ScriptedSampler, ScriptedTelemetry

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

    def count(self, clock, clock_khz):
        """Have the device's clock counted over each sample."""
        plain = self.sampler
        self.sampler = CountedSampler(plain.kernel, plain.duration_ns, clock, plain.launches, clock_khz=clock_khz)
        self.backend.parts = (self.kernel, self.sampler, self.telemetry)
        return self

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


def test_an_interval_of_durations_ends_at_zero(clock):
    """Three batches far apart: by the spread of their medians it would begin below nothing."""
    rig = Rig(clock, rounds=3)
    apart = [1_000_000, 40_000_000, 1_100_000]
    rig.sampler.duration_ns = lambda i: apart[rig.telemetry.windows - 1] if rig.telemetry.windows else 1_000_000
    assert rig.run(rounds=3).interval_s[0] == 0.0


def test_foreign_processes_mark_the_result_contended(clock):
    rig = Rig(clock)
    rig.telemetry.others = 2
    assert rig.run().contended is True
    rig = Rig(clock)
    rig.telemetry.others = None
    assert rig.run().contended is None


def needs_a_span(rig, seconds):
    """Telemetry that cannot tell of others before its windows lasted so long, as a CPU's cannot."""
    telemetry, began_s = rig.telemetry, []
    telemetry.others_span_s = seconds
    start, others = telemetry.start, telemetry.others

    def started():
        start()
        began_s.append(telemetry.opened_s)

    telemetry.start = started
    telemetry.other_processes = lambda: others if telemetry.clock() - began_s[0] >= seconds else None
    return rig


@pytest.mark.parametrize("rounds", [1, 4])
def test_sampling_lasts_until_others_can_be_told_of(clock, rounds):
    """A case that converged in 0.16 s was 78 times too slow beside others, and its row did not say that they were there."""
    rig = needs_a_span(Rig(clock, rounds=rounds), 0.2)
    result = rig.run(rounds)
    assert result.contended is False
    assert all(0.2 <= window_s < 0.21 for window_s in rig.telemetry.windows_s)


def test_telling_of_others_takes_no_longer_than_sampling_may(clock):
    rig = needs_a_span(Rig(clock), 0.2)
    rig.trial._settings.max_time_s = 0.15
    result = rig.run()
    assert result.contended is None
    assert rig.telemetry.windows_s == [pytest.approx(0.15, abs=0.002)]


def test_the_windows_of_a_burst_are_one_span(clock):
    assert needs_a_span(Rig(clock, load="burst"), 0.2).run().contended is False


@pytest.mark.parametrize(
    ("seen", "contended"),
    [([0, 0, 0], False), ([2, None, 0], True), ([None, 0, 2], True), ([0, None, 0], None), ([None, 0, 0], None)],
)
def test_what_one_round_saw_no_other_unsees_and_what_one_missed_none_makes_up_for(clock, seen, contended):
    rig = Rig(clock, rounds=3)
    told = iter(seen)
    rig.telemetry.other_processes = lambda: next(told)
    assert rig.run(rounds=3).contended is contended


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
    assert result.contended is None


LOADS = {"sustained": ("sustained", 1), "rounds": ("sustained", 4), "burst": ("burst", 1)}


@pytest.mark.parametrize(("load", "rounds"), LOADS.values(), ids=LOADS)
def test_samples_and_telemetry_count_from_the_opening_of_the_first_window(clock, load, rounds):
    rig = Rig(clock, load=load, rounds=rounds)
    rig.telemetry.opening_s = 0.04
    result = rig.run(rounds)
    now = result.telemetry["now"]
    opened_s = now.values[0]
    assert [value - opened_s for value in now.values] == pytest.approx(now.times_s)
    called = set(rig.sampler.called_at_s)
    for span in result.samples.spans:
        began_s, ended_s = min(called, key=lambda call: abs(call[0] - opened_s - span.began_s))
        assert (span.began_s, span.ended_s) == pytest.approx((began_s - opened_s, ended_s - opened_s), abs=1e-6)
    edges = list(zip(now.times_s[::2], now.times_s[1::2], strict=True))
    assert len(edges) == rig.telemetry.windows
    for at_s in sample_times_s(result.samples):
        assert any(low - 1e-6 < at_s < high for low, high in edges)
    assert sampling_s(result.samples) == pytest.approx(sum(high - low for low, high in edges))


def test_every_call_that_gave_samples_has_its_span(clock):
    rig = Rig(clock, duration_ns=lambda i: 700_000 if i % 3 else 2_000_000)
    rig.sampler.flush_s = 0.005
    result = rig.run()
    samples = result.samples
    ends = [*(span.first for span in samples.spans[1:]), samples.count]
    counts = [end - span.first for span, end in zip(samples.spans, ends, strict=True)]
    assert counts == rig.sampler.calls[-len(counts) :]
    lengths_s = [span.ended_s - span.began_s for span in samples.spans]
    assert lengths_s == pytest.approx([ended_s - began_s for began_s, ended_s in rig.sampler.called_at_s[-len(counts) :]])
    assert sampling_s(samples) > samples.sum_ns * 1e-9 * 4  # flushes are in no duration, and are where they were


def test_a_thinned_recording_says_when_each_kept_sample_was_taken(clock):
    rig = Rig(clock, duration_ns=lambda i: 10_000)
    rig.trial._settings.steady_window_s = 0.001
    samples = rig.run().samples
    assert samples.stride > 1
    times_s = sample_times_s(samples)
    assert len(times_s) == len(samples.durations_ns)
    assert times_s == pytest.approx([index * samples.stride * 1e-5 for index in range(len(times_s))], abs=1e-6)


def test_bringing_the_device_into_its_state_is_a_phase_of_its_own(clock):
    sustained = Rig(clock, sm_clock=lambda t: 2e9 - 2e8 * min(t, 3.0)).run()
    assert list(sustained.phases_s) == ["compile", "verify", "settle", "measure"]
    assert sustained.phases_s["settle"] == pytest.approx(4.0, abs=0.6)
    assert sustained.phases_s["measure"] == pytest.approx(sampling_s(sustained.samples))
    burst = Rig(clock, load="burst", duration_ns=lambda i: 4_000_000).run()
    assert burst.phases_s["settle"] == pytest.approx(5 + 4 * 1 + 5 * 0.004)
    assert burst.phases_s["measure"] == pytest.approx(5 * 0.016)


def test_the_launcher_hears_only_of_phases_that_it_keeps_deadlines_on(clock):
    for load in ("sustained", "burst"):
        rig = Rig(clock, load=load)
        rig.run()
        assert rig.phases == ["compile", "verify", "compile", "measure", "verify"]


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("most_s", [0.5, 10.0])
def test_energy_is_read_over_windows_that_its_counter_resolves(clock, rounds, most_s):
    rig = Rig(clock, rounds=rounds, duration_ns=lambda i: 300_000)
    rig.sampler.flush_s = 0.0007
    rig.trial._settings.max_time_s = most_s
    rig.trial._settings.energy = True
    result = rig.run(rounds)
    assert len(rig.telemetry.windows_s) == rounds
    assert all(window_s > nvidia.ENERGY_WINDOW_S == ENERGY_WINDOW_S for window_s in rig.telemetry.windows_s)
    energy = result.telemetry["energy"]
    assert energy.values[-1] == pytest.approx(energy.times_s[-1]) == pytest.approx(sum(rig.telemetry.windows_s))
    assert max(rig.telemetry.windows_s) < 1.3 * ENERGY_WINDOW_S


def test_windows_are_no_longer_where_energy_is_not_asked_for_or_the_load_is_a_burst(clock):
    plain, burst = Rig(clock), Rig(clock, load="burst")
    burst.trial._settings.energy = True
    plain.run(), burst.run()
    assert max(plain.telemetry.windows_s) == pytest.approx(0.101)
    assert max(burst.telemetry.windows_s) < 0.02


def test_energy_without_telemetry_is_refused():
    with pytest.raises(UsageError, match=r"measure.energy=true .* measure.telemetry=false"):
        MeasureSettings(energy=True, telemetry=False).check()


@pytest.mark.parametrize("load", ["sustained", "burst"])
def test_a_window_is_closed_when_sampling_in_it_fails(clock, load):
    """Threads that poll would go on beside every later case of the worker."""
    rig = Rig(clock, load=load, duration_ns=lambda i: 4_000_000)
    enough = 3

    def fails_in_a_window(count: int) -> list[int]:
        if rig.telemetry.windows and len(rig.sampler.calls) > enough:
            raise MemoryError
        return sample(count)

    sample, rig.sampler.sample = rig.sampler.sample, fails_in_a_window
    with pytest.raises(MemoryError):
        rig.run()
    assert rig.telemetry.windows == len(rig.telemetry.windows_s) > 0


def test_flushes_count_towards_a_bursts_window(clock):
    """Between two launches of half a millisecond 19.5 ms of flushing keep the device busy: one launch a window."""
    rig = Rig(clock, load="burst", duration_ns=lambda i: 500_000)
    rig.sampler.flush_s = 0.0195
    result = rig.run()
    assert result.samples.count == 5
    assert max(rig.telemetry.windows_s) == pytest.approx(0.02)


@pytest.mark.parametrize("rounds", [1, 4])
def test_the_interval_that_is_kept_is_no_narrower_than_the_timers_step(clock, rounds):
    """Equal readings of a timer that steps by a microsecond are not known to the nanosecond."""
    rig = Rig(clock, rounds=rounds, duration_ns=lambda i: 10_000, launches=2)
    rig.sampler.resolution_s = 1e-6
    result = rig.run(rounds)
    assert result.interval_s == pytest.approx((4.75e-6, 5.25e-6))
    assert result.converged is True


def stepping(low, high):
    """Three samples of one kind, then three of the other."""
    return lambda index: (low, high)[index // 3 % 2]


@pytest.mark.parametrize("rounds", [1, 8])
def test_cycles_come_back_with_their_interval_where_the_clock_was_counted(clock, rounds):
    durations_ns, clocks_khz = stepping(1_000_000, 1_100_000), stepping(1_430_000, 1_300_000)
    counted = Rig(clock, rounds=rounds, duration_ns=durations_ns, launches=2).count(clock, clocks_khz).run(rounds)
    assert counted.samples.median_cycles == pytest.approx(1.43e6)
    assert len(counted.samples.clocks_khz) == len(counted.samples.durations_ns)
    for duration_ns, clock_khz in zip(counted.samples.durations_ns, counted.samples.clocks_khz, strict=True):
        assert duration_ns * clock_khz * 1e-6 == pytest.approx(1.43e6)
    assert counted.interval_cycles == pytest.approx((0.715e6, 0.715e6), rel=1e-4)
    assert counted.converged
    uncounted = Rig(clock, rounds=rounds, duration_ns=durations_ns).run(rounds)
    assert uncounted.interval_cycles is None
    assert uncounted.samples.clocks_khz == ()
    assert uncounted.samples.count > 2 * counted.samples.count or rounds > 1


def test_a_thinned_recording_keeps_the_clock_of_each_kept_sample(clock):
    rig = Rig(clock, duration_ns=lambda index: 1_000 + index % 7).count(clock, lambda index: 1_000_000 + index % 7)
    samples = rig.run().samples
    assert samples.stride > 1
    assert len(samples.clocks_khz) == len(samples.durations_ns)
    assert all(khz - 1_000_000 == ns - 1_000 for ns, khz in zip(samples.durations_ns, samples.clocks_khz, strict=True))


def test_a_clock_that_stepped_while_settling_has_the_sampling_go_on_for_longer(clock):
    """A tenth of a second may lie between two steps, and look as quiet as if there were none."""

    def at(index):
        return 1_300_000 if index // 400 % 2 else 1_330_000

    stepping_rig = Rig(clock).count(clock, at)
    assert stepping_rig.run().samples.count == pytest.approx(KNOWN_WHILE_STEPPING * 100, abs=2)
    assert Rig(clock).count(clock, lambda index: 1_300_000).run().samples.count == pytest.approx(101, abs=1)
    assert Rig(clock).run().samples.count == 101
