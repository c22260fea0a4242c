"""What the verdicts promise: two runs of the same thing are not said to differ, and 3 % is found where a device is steady.

Recordings are compared with themselves, 200 times each and all of them together as the cases of one comparison: their rounds
dealt out at random, as where two implementations take turns, and as two runs from anywhere in them, with the repeatability that
a selftest would have stored.  ``RATES.md`` has the figures of more runs, and of two runs without a repeatability.
"""

from collections import Counter

import pytest

from suite.compare.verdict import Verdict
from tests.compare import rates
from tests.compare.constructions import CONSTRUCTIONS
from tests.compare.draws import comparisons, dealt, differs, recorded, two_runs
from tests.compare.rates import NAMES
from tests.measure.replays import wander

MOST = 10  # of 200
LEAST = 190
QUICK_RUNS, THOROUGH_RUNS = 24, 200
# Whose seconds wander by less than half of delta, and of these by less than a third of the interval asked for.
STEADY = ("cpu-empty-device", "cpu-fp32-128-call-one-thread", "cuda-bf16-512-warm", "cuda-bf16-8192-cold")
STEADIEST = ("cpu-fp32-128-call-one-thread", "cuda-bf16-512-warm")
HALF_OF_DELTA, THIRD_OF_TARGET = 0.005, 0.0017


def steady(most: float) -> tuple[str, ...]:
    """Recordings whose seconds agree so well, by a timer whose steps are finer than half of delta."""
    known = [(name, recorded(name)) for name in NAMES]
    return tuple(name for name, tape in known if wander(tape) <= most and tape.resolution_s <= HALF_OF_DELTA * tape.truth)


def of_runs(count: int) -> rates.Way:
    return lambda name: two_runs(name, count)


def test_the_recordings_that_count_as_steady():
    assert steady(HALF_OF_DELTA) == STEADY
    assert steady(THIRD_OF_TARGET) == STEADIEST


@pytest.mark.parametrize("name", NAMES)
def test_rounds_of_one_recorded_sample_set_are_not_said_to_differ(name):
    drawn = comparisons(dealt(name))
    assert len(drawn) == 200
    assert sum(map(differs, drawn)) <= MOST


def test_nor_is_any_of_eleven_cases():
    drawn = rates.among_others(dealt)
    assert {len(each) for each in drawn} == {11}
    assert sum(map(differs, drawn)) <= MOST


@pytest.mark.parametrize("name", NAMES)
def test_two_runs_of_a_recorded_device_are_not_said_to_differ(name):
    assert sum(map(differs, comparisons(two_runs(name, QUICK_RUNS)))) <= MOST


def test_nor_is_any_case_of_two_runs_of_eleven():
    assert sum(map(differs, rates.among_others(of_runs(QUICK_RUNS)))) <= MOST


@pytest.mark.parametrize("name", STEADY)
def test_a_kernel_3_percent_slower_is_found_among_others_that_take_turns(name):
    assert sum(rates.only_that(each, NAMES.index(name)) for each in rates.among_others(dealt, name)) >= LEAST


@pytest.mark.parametrize("name", STEADIEST)
def test_it_is_found_between_two_runs_too(name):
    drawn = rates.among_others(of_runs(QUICK_RUNS), name)
    assert sum(rates.only_that(each, NAMES.index(name)) for each in drawn) >= LEAST


@pytest.mark.parametrize("name", ["cpu-bf16-512-warm", "cpu-copy", "cpu-fp32-1024-warm", "cpu-read"])
def test_where_a_device_wanders_undecided_is_the_answer(name):
    assert Counter(each.verdict for each in rates.alone(dealt(name)))[Verdict.UNDECIDED] >= LEAST


def test_what_two_single_runs_cannot_show():
    """Why a repeatability is stored: 3 % lie between seconds of this recording, and 0.4 % within each run."""
    unknown = two_runs("cpu-bf16-512-warm", QUICK_RUNS, known=False)
    assert sum(map(differs, comparisons(unknown))) > 5 * MOST


def test_a_repeatability_is_a_spread_from_run_to_run_and_not_only_a_margin():
    """By definition one case in twenty passes the margin where nothing changed: see ``suite.compare.verdict``."""
    assert rates.of_twenty("cpu-copy", QUICK_RUNS, margin_only=True) > MOST
    assert rates.of_twenty("cpu-copy", QUICK_RUNS, margin_only=False) <= MOST


def test_a_stretch_cut_into_batches_finds_differences_where_there_are_none():
    """Why the noise of one stretch is not that of its batches: see ``suite.compare.noise``."""
    cells = rates.by_chance("rho 0.97, quiet", 30, 500)
    share = {name: float(cell.partition(" and ")[0]) for name, cell in zip(CONSTRUCTIONS, cells, strict=True)}
    assert share["in use"] <= 7.0
    assert min(share["20 batches"], share["bootstrap of 20"]) > 15.0


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_two_of_two_hundred_runs_are_not_said_to_differ(name):
    assert sum(map(differs, comparisons(two_runs(name, THOROUGH_RUNS)))) <= MOST


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_nor_any_case_of_eleven_of_two_hundred_runs():
    assert sum(map(differs, rates.among_others(of_runs(THOROUGH_RUNS)))) <= MOST


@pytest.mark.thorough
@pytest.mark.parametrize("process", rates.MADE_UP)
def test_a_made_up_process_with_one_median_is_seldom_said_to_have_two(process):
    """Of a wander hidden under noise a tenth of a second shows too little: see ``tests/measure/test_coverage.py``."""
    share, small = map(float, rates.by_chance(process, THOROUGH_RUNS)[0].split(" and "))
    assert share <= (12.0 if process == "rho 0.9 under noise" else 7.0)
    assert small <= 1.0
