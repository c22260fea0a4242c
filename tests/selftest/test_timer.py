"""The timer: its step as it shows in durations, against what it declares."""

import random
from dataclasses import replace

import pytest

from suite.selftest import timer
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes, Taken
from tests.selftest.material import altered, passes, with_samples


def of(whole: Passes) -> Finding:
    return timer.finding(whole)


def in_steps(taken: Taken, step_ns: int, sample_ns: int, declared_s: float) -> Taken:
    """The case timed by a clock that only knows multiples of ``step_ns``, in samples of about ``sample_ns``."""
    draw = random.Random(taken.row.case_key)
    durations_ns = tuple(round(sample_ns * (1 + 0.01 * draw.gauss(0, 1)) / step_ns) * step_ns for _ in range(60))
    return with_samples(taken, durations_ns=durations_ns, min_ns=min(durations_ns), resolution_s=declared_s)


def test_a_sound_timer_says_what_it_resolves_and_what_a_launch_costs() -> None:
    finding = of(passes())
    assert finding.status is Status.OK
    assert finding.says == (
        "the graph timer resolves 500 ns: 0.5 % shows on kernels from 100 µs timed one by one; an empty kernel takes "
        "1.2 µs on the device and 6 µs to its caller: under 3.6 µs launching is what is measured"
    )
    assert finding.figures["empty_call_s"] == pytest.approx(6e-6)
    assert finding.figures["graph_shortest_alone_s"] == pytest.approx(1e-4)


def test_steps_of_a_microsecond_on_short_samples_fail() -> None:
    coarse = altered(passes(), lambda taken: in_steps(taken, 1000, 20_000, declared_s=1e-9))
    finding = of(coarse)
    assert finding.status is Status.FAIL
    assert "steps by 1 µs, not the 1 ns it declares" in finding.says
    assert finding.figures["graph_step_s"] == pytest.approx(1e-6)


def test_the_same_steps_on_long_samples_are_a_warning() -> None:
    coarse = altered(passes(), lambda taken: in_steps(taken, 1000, 20_000_000, declared_s=1e-9))
    assert of(coarse).status is Status.WARN


def test_steps_that_are_declared_are_no_fault() -> None:
    honest = altered(passes(), lambda taken: in_steps(taken, 1000, 20_000, declared_s=1e-6))
    finding = of(honest)
    assert finding.status is Status.OK
    assert finding.figures["graph_shortest_alone_s"] == pytest.approx(2e-4)


def test_one_coarse_clock_among_two_is_the_one_that_is_named() -> None:
    def coarse_burst(taken: Taken) -> Taken:
        return with_samples(in_steps(taken, 1000, 20_000, declared_s=1e-9), method="events")

    finding = of(altered(passes(), coarse_burst, ["load"]))
    assert finding.status is Status.FAIL
    assert finding.says.startswith("the events timer steps by")
    assert finding.figures["graph_step_s"] is None or finding.figures["graph_step_s"] < 1e-7


@pytest.mark.parametrize("step", [32, 1000, 41667])
def test_a_step_is_found_in_few_samples(step: int) -> None:
    draw = random.Random(step)
    series = [[step * draw.randrange(1000, 1100) for _ in range(20)] for _ in range(4)]
    assert timer.step_s(series) == pytest.approx(step * 1e-9)


def test_rounding_to_nanoseconds_hides_no_step() -> None:
    draw = random.Random(3)
    series = [[round(1000 / 3 * draw.randrange(3000, 3100)) for _ in range(50)] for _ in range(4)]
    assert timer.step_s(series) == pytest.approx(1e-6 / 3, rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_few_samples_of_a_fine_clock_show_no_step(seed: int) -> None:
    """The smallest difference of a few durations is large by chance; it is no step unless all others are multiples."""
    draw = random.Random(seed)
    series = [[round(2e6 + 2e5 * draw.gauss(0, 1)) for _ in range(12)] for _ in range(2)]
    step_s = timer.step_s(series)
    assert step_s is None or step_s <= 3e-9


def test_two_values_that_share_all_samples_are_a_step() -> None:
    assert timer.step_s([[20_000] * 40 + [21_000] * 20]) == pytest.approx(1e-6)
    assert timer.step_s([[20_000, 21_000]]) is None


def test_durations_that_are_all_the_same_show_no_step() -> None:
    assert timer.step_s([[2000] * 50, [4000] * 50]) is None


def test_without_the_empty_kernel_there_is_no_pass() -> None:
    whole = passes()
    finding = of(replace(whole, first=tuple(taken for taken in whole.first if taken.row.params.get("op") != "empty")))
    assert finding.status is Status.WARN
    assert "the empty kernel was not timed" in finding.says


def test_launches_that_could_not_be_hidden_are_a_warning() -> None:
    shown = altered(passes(), lambda taken: with_samples(taken, details={"hidden": False}), ["first"], "16x3840x3840 bf16 cold")
    finding = of(shown)
    assert finding.status is Status.WARN
    assert "hide the launches of 16x3840x3840 bf16 cold" in finding.says


def test_a_device_time_above_that_of_a_call_says_why_it_can_be() -> None:
    def slow(taken: Taken) -> Taken:
        if taken.row.job != "calibration" or taken.row.dispatch != "device" or taken.row.params["op"] != "empty":
            return taken
        return taken._replace(row=replace(taken.row, p50_s=9e-6))

    assert "a mean over launches in a row" in of(altered(passes(), slow)).says
    assert "a mean over launches" not in of(passes()).says
