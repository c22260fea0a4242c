"""What the parts compute from measurements: intervals of pairs, integrals, spreads, ratios."""

from dataclasses import replace

import pytest

from suite.backend import Channel
from suite.measurement import Measurement, SampleSet, Span
from suite.outcome import Outcome
from tests.peers import agreement, clocks, economy, energy, nvbench, repeatability, telemetry_cost
from tests.peers.bench import NO_TIME, WARM, Bench, Measured, batches_s
from tests.peers.child import PeerFailed
from tests.peers.gemms import square
from tests.peers.ncu import Reading
from tests.peers.record import Row, Verdict

FAKE = "tests.fake.backend:FakeBackend"


def samples(durations_ns: tuple[int, ...], **changes: object) -> SampleSet:
    fields = {"launches": 2, "method": "scripted", "resolution_s": 1e-9, "count": len(durations_ns)}
    figures = {"sum_ns": sum(durations_ns), "min_ns": min(durations_ns)}
    return SampleSet(durations_ns, **{**fields, **figures, **changes})  # type: ignore[arg-type]


def timed(power: Channel, counter: Channel) -> Measurement:
    telemetry = {"power": power, "energy": counter}
    return Measurement(Outcome.OK, samples=samples((1000,)), telemetry=telemetry)


@pytest.fixture(scope="module")
def measured() -> Measured:
    bench = Bench(FAKE, tiny=True)
    found = bench.measure(bench.gemm(square("bf16", 64), WARM))
    assert found.summary is not None, found.reason
    return found


def with_clock(measured: Measured, p50_s: float, clock_hz: float | None) -> Measured:
    assert measured.summary is not None
    return measured._replace(summary=replace(measured.summary, p50_s=p50_s, clock_hz=clock_hz))


def test_batches_are_per_launch_and_end_where_the_next_begins() -> None:
    assert batches_s(samples((10, 20, 30, 40, 50), boundaries=(0, 2))) == [
        [pytest.approx(5e-9), pytest.approx(10e-9)],
        [pytest.approx(15e-9), pytest.approx(20e-9), pytest.approx(25e-9)],
    ]


class TestEnergy:
    def test_both_energies_are_of_the_same_window(self) -> None:
        power = Channel("W", tuple(map(float, range(11))), (700.0,) * 11)
        row = energy.row("x", timed(power, Channel("J", (0.0, 10.0), (5.0, 7205.0))))
        assert row.verdict is Verdict.PASS
        assert row.figures["integral_j"] == pytest.approx(7000)
        assert row.figures["counter_j"] == pytest.approx(7200)
        assert energy.row("x", timed(power, Channel("J", (0.0, 10.0), (0.0, 7500.0)))).verdict is Verdict.FAIL

    @pytest.mark.parametrize("counter", [Channel("J", (), (), "no counter"), Channel("J", (0.0,), (1.0,))])
    def test_a_missing_reading_is_absent_with_its_reason(self, counter: Channel) -> None:
        power = Channel("W", (0.0, 1.0), (1.0, 1.0))
        row = energy.row("x", timed(power, counter))
        assert row.verdict is Verdict.ABSENT
        assert row.note.startswith("energy counter: ")
        assert row.note != "energy counter: "


class TestTelemetryCost:
    def test_the_interval_is_of_the_changes_within_pairs(self) -> None:
        drifting = [1.0, 2.0, 4.0, 8.0]
        batches, sides = [], []
        for base, change in zip(drifting, (0.001, 0.003, 0.001, 0.003), strict=True):
            batches += [[base * (1 + change)] * 3, [base] * 3]
            sides += [0, 1]
        found = telemetry_cost.cost(batches, sides)
        assert found.difference == pytest.approx(0.002)
        half = 3.182 * 0.001154700538 / 2  # t of 3 degrees of freedom, standard deviation of the four changes
        assert (found.low, found.high) == (pytest.approx(0.002 - half, abs=1e-6), pytest.approx(0.002 + half, abs=1e-6))

    def test_sides_are_told_apart_in_any_order(self) -> None:
        found = telemetry_cost.cost([[1.0], [2.0], [2.0], [1.0]], [1, 0, 0, 1])
        assert (found.with_, found.without, found.difference) == (2.0, 1.0, 1.0)

    @pytest.mark.parametrize(("low", "high", "verdict"), [(-0.001, 0.004, Verdict.PASS), (-0.006, 0.001, Verdict.FAIL)])
    def test_it_passes_only_with_its_whole_interval(
        self, measured: Measured, low: float, high: float, verdict: Verdict
    ) -> None:
        found = telemetry_cost.Cost(1e-5, 1e-5, (low + high) / 2, low, high)
        assert telemetry_cost.row("x", found, measured).verdict is verdict


class TestClocks:
    def test_a_case_without_a_fraction_leaves_no_spread_of_fractions(self, measured: Measured) -> None:
        assert measured.summary is not None
        slow, fast = (
            measured._replace(summary=replace(measured.summary, flop_s=rate, fraction_at_clock=share))
            for rate, share in ((666e12, 0.922), (892e12, 0.918))
        )
        assert clocks.spreads([slow, fast]) == (pytest.approx(892 / 666 - 1), pytest.approx(0.922 / 0.918 - 1))
        assert clocks.spreads([slow, fast, measured])[1] is None
        assert clocks.spreads([]) == (None, None)


def state(cold_s: float | None, batch_s: float | None, skipped: str = "") -> nvbench.State:
    return nvbench.State(0, skipped, 10, 1e-3, 1e-3, cold_s, None, 10, 1e-3, batch_s)


class TestEconomy:
    def pair(self, measured: Measured, seconds: float, theirs: nvbench.State | str) -> economy.Pair:
        spans = (Span(0, 1.0, 1.0 + seconds / 2), Span(5, 3.0, 3.0 + seconds / 2))
        assert measured.measurement is not None
        measurement = Measurement(Outcome.OK, samples=samples((1000,) * 9, spans=spans), interval_s=(0.99e-6, 1.01e-6))
        return economy.Pair("x", with_clock(measured._replace(measurement=measurement), 1e-6, None), theirs)

    def test_the_ratio_is_of_sampling_times_without_what_lies_between_spans(self, measured: Measured) -> None:
        pair = self.pair(measured, 0.2, state(0.5, 0.5))
        assert pair.ratio == pytest.approx(0.2)
        assert pair.half_width == pytest.approx(0.01)
        assert economy.row(pair).verdict is Verdict.INFO

    @pytest.mark.parametrize("theirs", ["no package", state(None, 0.5, "planted"), state(0.5, None, "planted")])
    def test_a_side_without_a_time_is_absent_with_its_reason(self, measured: Measured, theirs: nvbench.State | str) -> None:
        row = economy.row(self.pair(measured, 0.2, theirs))
        assert (row.verdict, row.figures["ratio"]) == (Verdict.ABSENT, None)
        assert row.note in ("no package", "planted")

    def test_the_median_of_the_ratios_is_judged(self, measured: Measured) -> None:
        pairs = [self.pair(measured, seconds, state(0.5, 0.5)) for seconds in (0.1, 0.4, 2.0)]
        row = economy.conclusion([*pairs, self.pair(measured, 9.0, "lost")])
        assert row.figures["median_ratio"] == pytest.approx(0.4)
        assert (row.verdict, row.note) == (Verdict.PASS, "3 of 4 cases")
        assert economy.conclusion([self.pair(measured, 0.6, state(0.5, 0.5))]).verdict is Verdict.FAIL
        assert economy.conclusion([]).verdict is Verdict.ABSENT

    def test_a_case_that_had_no_time_is_absent_and_one_that_broke_is_failed(self, measured: Measured) -> None:
        lost = measured._replace(measurement=None, summary=None)
        assert economy.row(economy.Pair("x", lost._replace(reason=NO_TIME), "")).verdict is Verdict.ABSENT
        assert economy.row(economy.Pair("x", lost._replace(reason="broke"), "")).verdict is Verdict.FAILED


class TestAgreement:
    def row(self, kind: str, ours: Measured, theirs: Reading | PeerFailed, alone_s: float | None = None) -> Row:
        return agreement.row(agreement.Compared("x", kind, ours.planned), ours, theirs, alone_s)

    def test_long_kernels_are_compared_in_cycles_whatever_the_clock_was(self, measured: Measured) -> None:
        ours = with_clock(measured, 1581e-6, 1.39e9)
        row = self.row("cycles", ours, Reading(2_234_374, 1356e-6, ("k",), 5))
        assert row.figures["difference"] == pytest.approx(1581e-6 * 1.39e9 / 2_234_374 - 1)
        assert row.verdict is Verdict.PASS
        assert self.row("cycles", ours, Reading(2_300_000, 1356e-6, ("k",), 5)).verdict is Verdict.FAIL
        assert self.row("cycles", with_clock(measured, 1e-3, None), Reading(1, 1, ("k",), 5)).verdict is Verdict.ABSENT

    def test_short_kernels_are_compared_in_time_and_the_difference_is_taken_apart(self, measured: Measured) -> None:
        row = self.row("short", with_clock(measured, 3.7e-6, 1.7e9), Reading(8000, 5.0e-6, ("k",), 5), alone_s=4.9e-6)
        assert row.verdict is Verdict.PASS
        assert row.note == "overlap of back-to-back launches 1.20 us, ncu above an isolated launch +0.10 us"
        assert self.row("short", with_clock(measured, 3.7e-6, 1.7e9), Reading(1, 6e-6, ("k",), 5)).verdict is Verdict.FAIL

    def test_a_copy_is_compared_in_time_by_share(self, measured: Measured) -> None:
        ours = with_clock(measured, 500e-6, 1.7e9)
        assert self.row("time", ours, Reading(1, 495e-6, ("k",), 5)).verdict is Verdict.PASS
        assert self.row("time", ours, Reading(1, 480e-6, ("k",), 5)).verdict is Verdict.FAIL

    def test_a_kernel_that_is_another_is_told(self, measured: Measured) -> None:
        assert measured.measurement is not None
        named = Measurement(Outcome.OK, samples=samples((1000,), details={"kernels": ["mine"]}))
        ours = with_clock(measured._replace(measurement=named), 500e-6, 1.7e9)
        assert self.row("time", ours, Reading(1, 500e-6, ("mine",), 5)).note == ""
        assert "another kernel: mine here, yours under ncu" in self.row("time", ours, Reading(1, 500e-6, ("yours",), 5)).note

    def test_a_peer_that_failed_leaves_our_figure_and_its_reason(self, measured: Measured) -> None:
        row = self.row("cycles", measured, PeerFailed("ncu cannot be started"))
        assert (row.verdict, row.note) == (Verdict.ABSENT, "ncu cannot be started")
        assert row.figures["ours"]["summary"]["p50_s"] > 0

    def test_an_isolated_launch_is_less_the_empty_pair(self, measured: Measured) -> None:
        assert measured.summary is not None
        spin = Measurement(Outcome.OK, samples=samples((1000,), details={"empty_pair_s": 1.3e-6}))
        alone = with_clock(measured._replace(measurement=spin), 6.2e-6, None)
        assert agreement.isolated_s(alone) == pytest.approx(4.9e-6)
        assert agreement.isolated_s(measured) is None


class TestRepeatability:
    def test_a_change_is_signed_and_a_missing_time_is_absent(self) -> None:
        assert repeatability.row_of("x", [1e-3, 0.98e-3]).figures["change"] == pytest.approx(-0.02)
        row = repeatability.row_of("x", [1e-3, "no time was left"])
        assert (row.verdict, row.note) == (Verdict.ABSENT, "no time was left")

    def test_the_share_within_a_percent_counts_both_signs(self) -> None:
        row = repeatability.conclusion([0.005, -0.009, 0.02, -0.08])
        assert (row.figures["within"], row.figures["cases"]) == (2, 4)
        assert row.figures["p95"] == pytest.approx(0.071)
        assert repeatability.conclusion([]).figures["p95"] is None
