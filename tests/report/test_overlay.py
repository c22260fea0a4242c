from dataclasses import replace

import pytest

from suite.report.overlay import Seat, overlay_figure
from suite.report.palette import INKS
from suite.report.roofs import KINDS, EmpiricalKey, Roof, RoofSet, clocked_roofs, roof_set
from suite.roofline import Ceilings
from tests.report.builders import BANDWIDTH, PEAKS, RUN, SPEC, device, failed, result, sweep

EVIL = "<b>Testium</b>"
PER_CLOCK = 4096.0  # operations of one unit in a clock
CLOCKED = replace(
    SPEC,
    units=replace(SPEC.units, value=100.0),
    ops_per_clock={"bf16": replace(SPEC.units, value=PER_CLOCK)},
)


def seat(name, colour, rows, lines=()):
    return Seat(name, colour, tuple(rows), RoofSet(tuple(lines), ()))


def test_devices_are_told_by_colour_regimes_by_symbol_and_points_lead_to_their_result():
    one, other = result(), result(regime="cold/burst/device")
    figure = overlay_figure([seat("T1", "#0099fe", [one]), seat("T2", "#a64621", [other])])
    points = [trace for trace in figure.data if trace.meta == "points"]
    assert [(trace.marker.color, trace.marker.symbol) for trace in points] == [
        ("#0099fe", "circle"),
        ("#a64621", "triangle-up"),
    ]
    assert [list(trace.customdata[0]) for trace in points] == [[RUN, one.case_key, 0], [RUN, other.case_key, 0]]
    assert [trace.name for trace in figure.data if trace.meta == "key"] == ["T1", "T2"]


def test_roofs_of_one_kind_are_one_trace_with_holes_between_them():
    lines = roof_set([result(), result(format="fp64")], SPEC, 4e12, {EmpiricalKey("bf16", "sustained"): 7e14}).lines
    figure = overlay_figure([seat("T1", "#0099fe", [result()], lines)])
    spec, empirical = (trace for trace in figure.data if trace.meta == "roof")
    assert (spec.line.dash, empirical.line.dash) == ("solid", "dash")
    assert list(spec.y).count(None) == 2
    assert max(value for value in spec.y if value) == PEAKS["bf16"]
    assert len(spec.hovertext) == len(spec.x)
    assert PEAKS["bf16"] / BANDWIDTH in list(spec.x)  # the corner itself


def test_roofs_are_labelled_with_their_pipes_and_formats_told_by_symbol_without_hover():
    rows = [result(), result(format="fp64"), result(2048, regime="warm/burst/call")]
    lines = roof_set(rows, SPEC, 4e12, {EmpiricalKey("bf16", "sustained"): 7e14}).lines
    figure = overlay_figure([seat("T1", "#0099fe", rows, lines), seat("T2", "#a64621", rows[:2], lines)])
    labels = [note for note in figure.layout.annotations if note.bgcolor]
    assert [note.text for note in labels] == ["fp64 60.0 TFLOP/s", "bf16 960 TFLOP/s"]
    points = [trace for trace in figure.data if trace.meta == "points"]
    assert {trace.marker.symbol for trace in points} == {"circle", "triangle-up"}
    rimmed = [trace for trace in points if trace.marker.line.color == INKS["light"].text]
    assert [list(trace.x) for trace in rimmed] == [[rows[2].arithmetic_intensity]]
    key = figure.layout.annotations[0].text.replace("\xa0", " ")
    assert [part for part in ("● bf16", "▲ fp64", "rimmed: not cold/sustained/device") if part not in key] == []


def test_many_roofs_at_one_height_share_a_label_that_a_telephone_shows():
    peaks = {name: 9e14 * (1 + place / 1000) for place, name in enumerate(("fp16", "bf16", "tf32", "fp32"))}
    lines = tuple(Roof("spec", (name,), None, peak, 4e12, name) for name, peak in peaks.items())
    figure = overlay_figure([seat("T1", "#0099fe", [result()], lines)])
    assert [note.text for note in figure.layout.annotations if note.bgcolor] == ["fp16, bf16, tf32, fp32"]


def test_what_has_no_place_is_counted():
    figure = overlay_figure([seat("T1", "#0099fe", [result(), failed("timeout", "over 120 s")])])
    assert "not drawn: 1 that failed or do no arithmetic" in figure.layout.annotations[0].text


def test_a_figure_without_points_or_roofs_is_empty_and_no_error():
    assert not [trace for trace in overlay_figure([seat("T1", "#0099fe", [])]).data if trace.meta == "points"]


def test_names_are_text():
    figure = overlay_figure([seat(EVIL, "#0099fe", sweep())])
    shown = [text for trace in figure.data for text in (trace.name, *(trace.hovertext or ())) if text]
    assert shown
    assert not [text for text in shown if EVIL in text]


def test_boost_is_at_the_maximum_clock_and_at_clock_at_the_median_of_what_arithmetic_bounds():
    info = replace(device().info, max_clock_hz=2e9)
    rows = [
        *(result(clock_hz=clock) for clock in (1.2e9, 1.4e9, 1.5e9)),
        result(1, clock_hz=1.9e9, bound="memory"),
        result(regime="cold/burst/device", clock_hz=1.8e9),
        result(clock_hz=None),
    ]
    found = clocked_roofs(rows, Ceilings(info, CLOCKED))
    assert [(roof.kind, roof.load, roof.peak_flop_s, roof.clock_hz) for roof in found] == [
        ("boost", None, 100 * PER_CLOCK * 2e9, 2e9),
        ("at clock", "sustained", 100 * PER_CLOCK * 1.4e9, 1.4e9),
        ("at clock", "burst", 100 * PER_CLOCK * 1.8e9, 1.8e9),
    ]
    assert {roof.bandwidth_bytes_s for roof in found} == {BANDWIDTH}
    assert found[1].label == "bf16 573 TFLOP/s at 1.40 GHz"


@pytest.mark.parametrize("spec", [None, SPEC])
def test_without_operations_a_clock_no_roof_follows_from_one(spec):
    assert clocked_roofs([result()], Ceilings(device().info, spec)) == ()


def test_only_the_chosen_kinds_stay():
    found = RoofSet(tuple(Roof(kind, ("bf16",), None, 1e12, None) for kind in KINDS), ("a note",))
    assert [roof.kind for roof in found.only(["boost", "empirical"]).lines] == ["boost", "empirical"]
    assert found.only([]).notes == ("a note",)
