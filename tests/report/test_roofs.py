import math
from dataclasses import replace

import pytest

from suite.hardware.cpu import NOMINAL
from suite.hardware.figure import NOT_FOUND
from suite.report.figures import roofline_figure
from suite.report.key import key_lines
from suite.report.overlay import Seat, overlay_figure
from suite.report.roofs import (
    EmpiricalKey,
    Judged,
    clocked_roofs,
    judged_roof_set,
    lacks_setters,
    roof_set,
    with_setters,
)
from suite.roofline import Ceilings
from tests.report.builders import BANDWIDTH, CALIBRATION, PEAKS, SPEC, base_row, device, failed, result
from tests.report.test_overlay import CLOCKED

MEASURED = CALIBRATION.best_bytes_s
NO_MEMORY = replace(SPEC.memory, bandwidth_bytes_s=NOT_FOUND)


def test_spec_roofs_are_one_per_peak_of_the_pipes_present():
    rows = [result(format=name) for name in ("fp16", "bf16", "tf32")]
    roofs = roof_set(rows, SPEC, MEASURED, {}).of_kind("spec")
    assert [(roof.pipes, roof.peak_flop_s) for roof in roofs] == [(("tf32",), PEAKS["tf32"]), (("bf16", "fp16"), PEAKS["bf16"])]
    assert roofs[1].ridge == PEAKS["bf16"] / BANDWIDTH
    assert roofs[1].values([1.0, roofs[1].ridge, 1e6]) == [BANDWIDTH, PEAKS["bf16"], PEAKS["bf16"]]


def test_empirical_roofs_are_kept_apart_by_load_and_shown_only_where_there_are_points():
    rows = [result(), result(regime="cold/burst/device"), failed("crashed", "gone", format="fp32")]
    best = {
        EmpiricalKey("bf16", "sustained"): 6e14,
        EmpiricalKey("bf16", "burst"): 8e14,
        EmpiricalKey("fp32", "sustained"): 5e13,
    }
    roofs = roof_set(rows, SPEC, MEASURED, best).of_kind("empirical")
    assert {(roof.pipes, roof.load): roof.peak_flop_s for roof in roofs} == {
        (("bf16",), "burst"): 8e14,
        (("bf16",), "sustained"): 6e14,
    }
    assert {roof.bandwidth_bytes_s for roof in roofs} == {MEASURED}


def test_data_that_are_not_the_usual_belong_to_the_case_that_set_a_roof():
    (line,) = named(result(distribution="outliers")).of_kind("empirical")
    assert line.set_by.words == "gemm 4096x4096x4096 outliers data by library"


def named(*rows, bandwidth=MEASURED):
    best = {EmpiricalKey(row.pipe, row.load): row.flop_s for row in rows if row.flop_s}
    return with_setters(roof_set(rows, SPEC, bandwidth, best), rows)


def test_the_case_that_set_an_empirical_roof_is_named_on_hover_and_in_the_key():
    emulated = result(format="fp8_e4m3", pipe="bf16", execution="emulated", steady=False)
    roofs = named(emulated)
    (line,) = roofs.of_kind("empirical")
    assert line.set_by.words == "fp8_e4m3, emulated: gemm 4096x4096x4096 by library; not steady"
    assert lacks_setters(roofs)  # nothing of the memory part
    figure = roofline_figure([emulated], roofs)
    assert [text for text in (str(trace.hovertext) for trace in figure.data) if "set by fp8_e4m3, emulated: gemm" in text]
    key = figure.layout.annotations[0].text.replace("<br>", " ").replace("\xa0", " ")
    assert "empirical bf16 by fp8_e4m3, emulated: gemm 4096x4096x4096 by library; not steady" in key
    assert "may be wrong" in key


def test_a_memory_roof_of_an_unsteady_read_says_so():
    nothing = {"flops": 0, "flop_s": 0.0, "pipe": None, "arithmetic_intensity": 0.0, "bound": "memory"}
    read = result(job="calibration", params={"op": "read"}, format="fp32", bytes_s=4e12, steady=False, **nothing)
    roofs = named(result(), read, bandwidth=4e12)
    assert not lacks_setters(roofs)
    figure = roofline_figure([result(), read], roofs)
    (hover,) = (str(trace.hovertext) for trace in figure.data if "memory" in str(trace.hovertext) and trace.line.dash == "dash")
    assert hover.startswith("empirical roof: memory 4.00 TB/s, set by a read by")
    assert hover.endswith("by library; not steady")


def test_a_contended_result_of_the_same_rate_has_set_nothing():
    row = result()
    roofs = roof_set([row], SPEC, MEASURED, {EmpiricalKey("bf16", "sustained"): row.flop_s})
    assert with_setters(roofs, [replace(row, contended=True)]).of_kind("empirical")[0].set_by is None


def test_clean_roofs_of_one_case_are_named_on_one_line():
    rows = [result(format=name) for name in ("bf16", "fp16")]
    text = " ".join(key_lines(rows, named(*rows)))
    assert "empirical bf16, fp16 by gemm 4096x4096x4096 by library" in text.replace("\xa0", " ")
    assert "may be wrong" not in text


def test_a_load_is_named_only_where_another_case_set_the_roof_of_the_other():
    rows = [
        result(),
        result(regime="cold/burst/device"),
        result(format="fp16"),
        result(1024, format="fp16", regime="cold/burst/device"),
    ]
    text = " ".join(key_lines(rows, named(*rows))).replace("\xa0", " ")
    assert "empirical bf16, fp16 sustained by gemm 4096x4096x4096 by library" in text
    assert "empirical fp16 burst by gemm 1024x4096x4096 by library" in text


def test_an_unknown_device_has_no_spec_roof_and_says_so():
    roofs = roof_set([result()], None, MEASURED, {EmpiricalKey("bf16", "sustained"): 6e14})
    assert roofs.of_kind("spec") == ()
    assert len(roofs.of_kind("empirical")) == 1
    assert any("no spec sheet" in note for note in roofs.notes)


def test_without_calibration_an_empirical_roof_is_its_flat_part():
    (roof,) = roof_set([result()], None, None, {EmpiricalKey("bf16", "sustained"): 6e14}).lines
    assert roof.ridge is None
    assert roof.values([1e-3, 1e3]) == [6e14, 6e14]


@pytest.mark.parametrize("pipe", ["fp4", "a pipe of tomorrow"])
def test_a_pipe_without_a_declared_peak_is_named(pipe):
    roofs = roof_set([result(pipe=pipe)], SPEC, MEASURED, {})
    assert roofs.of_kind("spec") == ()
    assert f"no {pipe} peak in the spec sheet" in roofs.notes


def test_an_emulation_has_a_roof_of_its_own_in_operations_of_what_it_computes():
    rows = [result(format="fp64", pipe="int8x28"), result(format="int8")]
    emulated, native = sorted(roof_set(rows, SPEC, MEASURED, {}).of_kind("spec"), key=lambda line: line.peak_flop_s)
    assert emulated.peak_flop_s == pytest.approx(PEAKS["int8"] / 28)
    assert (emulated.label, native.label) == ("int8x28 68.6 TFLOP/s", "int8 1.92 POP/s")


def test_a_roof_that_nothing_set_is_named_with_why():
    rows = [result(pipe="bf16"), result(pipe="tf32")]
    trusted = "resolved and not contended"
    found = roof_set(rows, None, None, {EmpiricalKey("bf16", rows[0].load): 1e12}).notes
    assert f"no empirical memory roof: no read, copy or triad is {trusted}" in found
    assert f"no empirical roof of tf32: no measured result is {trusted}" in found
    both = {EmpiricalKey(pipe, rows[0].load): 1e12 for pipe in ("bf16", "tf32")}
    assert not [note for note in roof_set(rows, None, 1e12, both).notes if trusted in note]


def test_notes_on_a_derived_device_do_not_speak_of_a_sheet_that_is_not_there():
    derived = replace(SPEC, derived=True, memory=replace(SPEC.memory, bandwidth_bytes_s=NOT_FOUND))
    notes = roof_set([result(pipe="fp4")], derived, None, {}).notes
    assert "no fp4 peak can be derived, and there is no spec sheet" in notes
    assert not any("in the spec sheet" in note for note in notes)


def test_a_memory_roof_without_one_of_arithmetic_is_drawn_by_itself_and_its_case_named():
    read, row = base_row("read_bytes_s", MEASURED), result(1, contended=True)
    for spec, end in ((None, None), (replace(SPEC, memory=NO_MEMORY), PEAKS["bf16"])):
        roofs = with_setters(roof_set([row], spec, MEASURED, {}), [read])
        assert not lacks_setters(roofs)
        figure = roofline_figure([row], roofs)
        (slope,) = (trace for trace in figure.data if trace.meta == "roof" and "memory" in trace.hovertext)
        assert slope.hovertext == "empirical roof: memory 4.20 TB/s, set by a read by library"
        assert [y / x for x, y in zip(slope.x, slope.y, strict=True)] == pytest.approx([MEASURED] * len(slope.x))
        low, high = figure.layout.yaxis.range
        assert low <= math.log10(slope.y[0])
        assert math.log10(row.flop_s) < high
        assert end is None or slope.y[-1] <= end * 1.001
        key = " ".join(key_lines([row], roofs)).replace("\u00a0", " ")
        assert "dashed: empirical memory roof" in key
        assert "empirical memory by a read by library" in key
    assert lacks_setters(roof_set([row], None, MEASURED, {}))
    assert roofs.only(["spec"]).memory_alone is None
    (seat,) = [Seat("one", "#0099fe", (row,), roof_set([row], None, MEASURED, {}))]
    assert [t.hovertext[0] for t in overlay_figure([seat]).data if t.meta == "roof"] == [
        "one: empirical roof: memory 4.20 TB/s"
    ]


def test_results_that_two_sheets_judged_have_the_roofs_of_both_under_their_names():
    other = replace(SPEC, memory=replace(SPEC.memory, bandwidth_bytes_s=replace(NOT_FOUND, value=50e9)))
    rows = ([result()], [result(64), result(format="tf32")])
    found = judged_roof_set([Judged("one", rows[0], SPEC), Judged("two", rows[1], other)], MEASURED, {})
    assert [(roof.sheet, roof.pipes[0], roof.bandwidth_bytes_s) for roof in found.of_kind("spec")] == [
        ("one", "bf16", BANDWIDTH),
        ("two", "tf32", 50e9),
        ("two", "bf16", 50e9),
    ]
    assert found.notes == (
        "judged by 2 sheets, each with roofs of its own: one, two",
        "no empirical roof of bf16, tf32: no measured result is resolved and not contended",
    )
    assert found.lines[0].label == "one: bf16 960 TFLOP/s"
    texts = [trace.hovertext for trace in roofline_figure([*rows[0], *rows[1]], found).data if trace.meta == "roof"]
    slopes = [text for text in texts if "memory" in text]
    assert slopes == [
        "spec roof by one: memory 4.50 TB/s",
        "spec roof by two: memory 50.0 GB/s",
        "empirical roof: memory 4.20 TB/s",
    ]


@pytest.mark.parametrize(("note", "kinds"), [("", ["boost"]), (NOMINAL, [])])
def test_a_nominal_clock_draws_no_roof_at_the_maximum_clock(note, kinds):
    clocks = replace(CLOCKED.clocks, boost_hz=replace(CLOCKED.clocks.boost_hz, note=note))
    ceilings = Ceilings(device().info, replace(CLOCKED, derived=True, clocks=clocks))
    assert [roof.kind for roof in clocked_roofs([result(clock_hz=None)], ceilings)] == kinds
