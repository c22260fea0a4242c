"""Results of several backends, or native and emulated, in one figure: each is told from the others."""

from dataclasses import replace

import pytest

from suite.report.curves import Quantity
from suite.report.figures import roofline_figure
from suite.report.headlines import headlines
from suite.report.heat import heat_figure
from suite.report.hover import hover_text
from suite.report.key import key_lines
from suite.report.overlay import Seat, overlay_figure
from suite.report.palette import INKS
from suite.report.roofs import RoofSet
from suite.report.sources import sources_of
from suite.report.standings import Column, standings_map
from suite.report.values import SHARES
from tests.report.builders import failed, result

NO_ROOFS = RoofSet((), ())
SHARE: Quantity = SHARES["of spec"]


def xla(*sizes, **fields):
    return result(*sizes, **{"backend": "xla", "execution": "emulated", "pipe": "fp32", **fields})


def words(lines):
    return " ".join(lines).replace("\u00a0", " ")


def test_only_what_differs_is_named_and_what_most_are_of_comes_first():
    assert sources_of([result(), result(512)]).several is False
    assert sources_of([result(), result(512), xla()]).names == ("cuda, native", "xla, emulated")
    assert sources_of([result(), xla(execution="native"), xla(512, execution="native")]).names == ("xla", "cuda")
    emulated = [result(n, execution="emulated") for n in (512, 1024)]
    assert sources_of([result(), *emulated]).names == ("native", "emulated")  # whatever most are


def test_backends_of_two_chips_are_told_apart_by_these_and_failures_are_of_none():
    assert sources_of([result(), result(backend="rocm", device_uid="other")]).several is False
    sources = sources_of([result(), xla(), failed("crashed", "gone", backend="jax")])
    assert sources.names == ("cuda, native", "xla, emulated")
    assert sources.of(failed("crashed", "gone")) == ""


def test_a_heat_map_of_two_backends_marks_the_cells_of_the_rarer_one():
    rows = {(0, 0): result(), (0, 1): result(format="fp16"), (0, 2): xla(format="fp32")}
    columns = [Column("gemm", row.format) for row in rows.values()]
    figure = heat_figure(standings_map(["T1"], columns, rows, SHARE))
    (cells,) = (trace for trace in figure.data if trace.meta == "cells")
    assert list(cells.text) == ["70.0 %", "70.0 %", "70.0 %ᵃ"]
    key = figure.layout.annotations[0].text.replace("\u00a0", " ")
    assert "without a letter: cuda, native" in key
    assert "ᵃ xla, emulated" in key
    plain = heat_figure(standings_map(["T1"], columns[:2], dict(list(rows.items())[:2]), SHARE))
    assert "letter" not in plain.layout.annotations[0].text


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_points_of_two_backends_are_two_traces_the_rarer_rimmed(theme):
    rows = [result(), result(512), xla()]
    points = [trace for trace in roofline_figure(rows, NO_ROOFS, theme).data if trace.meta == "points"]
    rims = {trace.marker.line.color: len(trace.x) for trace in points}
    assert rims == {INKS[theme].background: 2, INKS[theme].text: 1}
    key = words(key_lines(rows, NO_ROOFS))
    assert "no rim: cuda, native" in key
    assert "rimmed: xla, emulated" in key
    assert "rim" not in words(key_lines(rows[:2], NO_ROOFS))


def test_more_sources_than_rims_share_the_last_one_and_all_are_named():
    rows = [result(n, backend=name) for n, name in ((1, "a"), (2, "b"), (4, "c"), (8, "d"), (16, "e"))]
    assert "rimmed red: d; e" in words(key_lines(rows, NO_ROOFS))
    assert len([trace for trace in roofline_figure(rows, NO_ROOFS).data if trace.meta == "points"]) == 5


def test_of_several_devices_the_key_says_which_has_results_of_two_backends():
    seats = [Seat("one", "#0099fe", (result(), xla()), NO_ROOFS), Seat("two", "#a64621", (result(),), NO_ROOFS)]
    text = overlay_figure(seats).layout.annotations[0].text
    assert "one: cuda, native and xla, emulated, hover says" in text
    assert "two: " not in text


def test_every_point_says_on_hover_who_computed_it():
    assert "compute bound, emulated by library, xla" in hover_text(xla())


def test_headlines_of_two_backends_say_whose_they_are():
    rows = [result(), xla(format="fp32", share=0.9), replace(xla(format="fp32"), load="burst")]
    found = {each.format: each for each in headlines(rows)}
    assert found["bf16"].source == "cuda, native"
    assert found["fp32"].source == "xla, emulated"
    assert "xla, emulated" in found["fp32"].second
    assert [each.source for each in headlines([result(), result(format="fp16")])] == ["", ""]
