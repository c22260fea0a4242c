import html
from dataclasses import replace

import pytest

from backends.telemetry.amdsmi import DIE_RESIDENCY
from backends.telemetry.reasons import AMD, NVIDIA
from suite.report.document import build
from suite.report.glossary import GLOSSARY
from suite.report.hover import EXPLAINED, explained, hover_text
from suite.report.html import render_html
from suite.report.words import (
    common_unit,
    counted,
    cycles,
    doubtful,
    duration,
    energy,
    half_width_percent,
    marks,
    moment,
    per_joule,
    percent,
    rate_unit,
    short_marks,
    si,
    tera_rates,
    timing,
)
from tests.report.builders import FakeReader, result
from tests.report.pages import Page


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (9.89e14, "989 TFLOP/s"),
        (9.996e11, "1.00 TFLOP/s"),
        (1.979e15, "1.98 PFLOP/s"),
        (0.5, "0.500 FLOP/s"),
        (0.0, "0 FLOP/s"),
        (123.4, "123 FLOP/s"),
        (float("inf"), "inf PFLOP/s"),
        (None, "n/a"),
    ],
)
def test_si_keeps_three_digits_across_prefixes(value, text):
    assert si(value, "FLOP/s") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.6321e-3, "1.632 ms"),
        (0.99999, "1.000 s"),
        (3.4e-6, "3.400 µs"),
        (2e-10, "0.2000 ns"),
        (75.0, "75.00 s"),
        (-4.637331e-3, "-4.637 ms"),
    ],
)
def test_duration_uses_the_largest_unit_that_fits(seconds, text):
    assert duration(seconds) == text


def test_a_fraction_above_one_is_not_clipped():
    assert percent(1.034) == "103.4 %"


def test_timing_names_half_the_interval_and_leaves_it_out_where_there_is_none():
    row = result(p50_s=2e-3, interval_s=(1.99e-3, 2.03e-3))
    assert timing(row) == "2.000 ms ± 1.0 %"
    assert timing(result(p50_s=2e-3, interval_s=None)) == "2.000 ms"
    assert timing(result(p50_s=2e-3, interval_s=(1e-3, 9.4e-3))) == "2.000 ms ± not resolved"


def test_an_interval_wider_than_the_median_is_marked_with_its_reason():
    row = result(p50_s=2e-3, interval_s=(1e-3, 9.4e-3), count=1)
    assert marks(row) == ("± not resolved: 1.000 ms to 9.400 ms from 1 sample",)
    assert marks(result(p50_s=2e-3, interval_s=(0.1e-3, 4.0e-3))) == ()


def test_a_median_that_is_known_better_in_cycles_is_marked_with_them():
    held = {"p50_s": 2e-3, "p50_cycles": 2.7e6, "interval_cycles": (2.6946e6, 2.7054e6), "converged": True}
    row = result(**held, interval_s=(1.96e-3, 2.04e-3))
    assert cycles(row) == "2,700,000 ± 0.20 %"
    assert marks(row) == ("in cycles ± 0.20 %",)
    assert marks(result(**held, interval_s=(1.999e-3, 2.001e-3))) == (), "the time is known as well"
    assert marks(result(**{**held, "converged": False}, interval_s=(1.96e-3, 2.04e-3))) == ("not converged",)
    assert cycles(result(p50_s=2e-3)) == ""


def test_energy_is_of_one_launch_and_says_what_a_joule_gives():
    row = result(4096, 4096, 4096, energy_j=0.2)
    assert energy(row) == "0.2 J, 687 GFLOP/J"
    assert energy(replace(row, energy_j=2.0, format="int8", pipe="int8")) == "2.00 J, 68.7 GOP/J"
    of_a_cache = replace(row, job="decode", energy_j=2.0, format="int8")  # products are of the queries' type
    assert energy(of_a_cache) == "2.00 J, 68.7 GFLOP/J"
    assert energy(replace(row, flops=0)) == "0.2 J"
    assert energy(replace(row, energy_j=None)) == per_joule(replace(row, energy_j=None)) == "n/a"


def test_one_is_not_said_in_the_plural():
    assert [counted(1, "batch", "batches"), counted(2, "batch", "batches"), counted(1, "run"), counted(2048, "run")] == [
        "1 batch",
        "2 batches",
        "1 run",
        "2,048 runs",
    ]


def test_marks_start_with_what_puts_the_number_in_doubt():
    row = result(
        converged=False, steady=False, contended=True, throttle="power cap 60 %", execution="emulated", evidence="simulated"
    )
    found = marks(row)
    assert found[:3] == ("not converged", "not steady", "contended")
    assert {"throttled: power cap 60 %", "emulated", "simulated"} <= set(found)
    assert marks(result()) == ()


def test_unknown_is_not_bad():
    assert marks(result(converged=None, steady=None, contended=None, throttle=None)) == ()


def test_integer_rates_are_operations_not_flops():
    assert rate_unit("int8") == "OP/s"
    assert rate_unit("fp8", "int8") == "FLOP/s"


def test_a_time_that_is_none_is_shown_as_it_is():
    assert moment("2031-05-06T07:08:09Z") == "2031-05-06 07:08 UTC"
    assert moment("yesterday") == "yesterday"


def test_a_median_without_an_interval_is_in_doubt_and_says_how_many_samples_it_is_of():
    alone = result(interval_s=None, count=1)
    assert marks(alone) == ("one sample: no interval",)
    assert doubtful(alone)
    assert marks(result(interval_s=None, count=3)) == ("no interval from 3 samples",)
    assert not doubtful(result(count=1, p50_s=None, interval_s=None))


def test_a_column_of_rates_is_headed_by_the_unit_of_its_formats():
    assert [tera_rates(formats) for formats in (["int8", "int8"], ["bf16", "w8a16"], ["int8", "bf16"])] == [
        "TOP/s",
        "TFLOP/s",
        "TFLOP/s, TOP/s",
    ]


@pytest.mark.parametrize(
    ("times_s", "unit"),
    [
        ((9e-5, 3e-2, 0.2), "ms"),
        ((7e-7, 1e-5, 2e-2), "µs"),
        ((None, 3e-9), "ns"),
        ((2.0, 2.0), "s"),
        ((None,), "µs"),
        ((), "µs"),
    ],
)
def test_a_column_of_times_is_in_the_unit_of_the_middle_one(times_s, unit):
    assert common_unit(times_s)[1] == unit


def test_marks_are_short_where_there_is_little_room():
    row = result(interval_s=(1e-9, 1.0), converged=False, contended=True, throttle="sw_power_cap 37%")
    assert short_marks(row) == "not resolved, not converged, contended, throttled"
    assert marks(row)[-1] == "throttled: sw_power_cap 37 %"
    assert short_marks(result(interval_s=None, count=1)) == "one sample"
    assert short_marks(result()) == ""


@pytest.mark.parametrize(("half_width", "said"), [(0.002, "0.20 %"), (0.63, "63 %"), (0.999, "100 %"), (1.01, "not resolved")])
def test_half_widths_are_percentages_like_all_others(half_width, said):
    assert half_width_percent(half_width) == said


IN_DOUBT = {
    "± not resolved": {"interval_s": (0.0, 8e-4), "p50_s": 2e-4},
    "one sample": {"interval_s": None, "count": 1},
    "no interval": {"interval_s": None, "count": 4},
    "in cycles": {"p50_s": 1e-3, "interval_s": (0.9e-3, 1.1e-3), "p50_cycles": 1e6, "interval_cycles": (9.99e5, 1.001e6)},
    "not converged": {"converged": False},
    "not steady": {"steady": False},
    "contended": {"contended": True},
    "throttled": {"throttle": "sw_power_cap 37 %"},
    "above the derived peak": {"share": 1.01, "hardware": None},
    "emulated": {"execution": "emulated"},
    "simulated": {"evidence": "simulated"},
    "imported": {"evidence": "imported"},
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_every_mark_is_a_word_of_the_page_and_has_its_meaning_in_the_hover(name):
    row = result(**IN_DOUBT[name])
    mark = next(mark for mark in marks(row) if mark.startswith(name))
    assert explained(mark) != mark
    assert html.escape(explained(mark)) in hover_text(row)
    page = Page(render_html(build(FakeReader((row,)), ["latest"])))
    (glossary,) = page.find("dl", **{"class": "method glossary"})
    assert name.removeprefix("± ") in page.text(glossary).lower()


def test_every_reason_that_a_driver_names_is_told_in_the_glossary():
    told = " ".join(term.text for term in GLOSSARY)
    for reason in (*NVIDIA.values(), *AMD.values(), *DIE_RESIDENCY):
        assert reason in told, reason
