from itertools import pairwise

import pytest

from suite.report.palette import INKS
from suite.report.timeline import timeline
from suite.report.timeline_figure import timeline_figure
from tests.report.recordings import burst, sustained, untimed

LAUNCH = "time of one launch"


def by_channel(figure):
    return {trace.meta: trace for trace in figure.data}


def test_clock_and_power_stand_under_the_samples_on_one_axis():
    figure = timeline_figure(timeline(sustained(1e-3)), 700.0)
    traces = by_channel(figure)
    assert list(traces)[:3] == [LAUNCH, "device_clock", "sm_clock"]
    assert traces[LAUNCH].yaxis == "y"
    assert traces["device_clock"].yaxis == traces["sm_clock"].yaxis == "y2"
    assert traces["power"].yaxis == "y3"
    domains = [figure.layout[name].domain for name in ("yaxis", "yaxis2", "yaxis3")]
    assert all(upper[0] > lower[1] for upper, lower in pairwise(domains))
    assert all(0 <= value <= 1 for trace in figure.data for value in trace.x if value is not None)
    (limit,) = (shape for shape in figure.layout.shapes if shape.type == "line")
    assert (limit.yref, limit.y0) == ("y3", 700.0)


def test_samples_are_points_and_readings_lines():
    traces = by_channel(timeline_figure(timeline(sustained(1e-3)), None))
    assert traces[LAUNCH].mode == "markers"
    assert {traces[name].mode for name in ("device_clock", "power")} == {"lines"}


def test_no_line_crosses_an_idle_time_and_the_axis_shows_where_it_was():
    figure = timeline_figure(timeline(burst(1e-3)), None)
    traces = by_channel(figure)
    assert list(traces["power"].y).count(None) == 4  # five windows
    assert len([shape for shape in figure.layout.shapes if shape.type == "rect"]) == 4
    assert "idle" in figure.layout.xaxis.title.text


def test_without_times_samples_stand_in_their_order_and_alone():
    figure = timeline_figure(timeline(untimed(sustained(1e-3))), 700.0)
    (trace,) = figure.data
    assert list(trace.x)[:3] == [0.0, 1.0, 2.0]
    assert figure.layout.xaxis.title.text == "Samples in their order"
    assert not figure.layout.shapes


def test_a_long_recording_is_thinned_evenly():
    found = timeline(sustained(1e-5))
    (trace, *_) = timeline_figure(found, None).data
    assert len(found.launches.values) > 2_000
    assert len(trace.y) <= 2_000
    assert trace.y[1] == found.launches.values[-(-len(found.launches.values) // 2_000)] / 1e-6


@pytest.mark.parametrize(
    ("launch_s", "unit_s", "unit"), [(2.0, 1, "s"), (0.05, 1e-3, "ms"), (3e-5, 1e-6, "µs"), (4e-8, 1e-9, "ns")]
)
def test_an_axis_of_seconds_has_its_unit_as_a_word_and_no_prefix_that_reads_as_minutes(launch_s, unit_s, unit):
    """Launches of 30 to 70 ms stood at ``30m`` to ``70m`` under ``One launch (s)``."""
    found = timeline(untimed(sustained(launch_s, max(0.003, 10 * launch_s))))
    figure = timeline_figure(found, None)
    assert figure.layout.yaxis.title.text == f"One launch ({unit})"
    assert figure.layout.yaxis.tickformat is None
    assert figure.data[0].y[0] == pytest.approx(found.launches.values[0] / unit_s)
    assert unit in figure.data[0].hovertext[0]


@pytest.mark.parametrize("theme", INKS)
def test_a_throttle_reason_that_was_set_has_a_pane(theme):
    figure = timeline_figure(timeline(sustained(1e-3)), None, theme)
    assert by_channel(figure)["sw_power_cap"].line.shape == "hv"
    assert figure.layout.paper_bgcolor == INKS[theme].background
