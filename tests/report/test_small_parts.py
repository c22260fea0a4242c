"""Progress, worth and the spec sheet as lines."""

import math
from dataclasses import replace

import pytest

from suite.backend import DeviceInfo
from suite.errors import UsageError
from suite.hardware.catalogue import all_specs, load
from suite.hardware.cpu import derive
from suite.hardware.figure import NOT_FOUND
from suite.hardware.fits import fits
from suite.hardware.spec import PIPES
from suite.report.hardware_figure import catalogue_figure
from suite.report.hardware_sheet import cited, documents, fit_lines, sheet_lines
from suite.report.hover import explained, hover_text
from suite.report.palette import DEVICE_COLOURS, FORMAT_COLOURS, device_colours
from suite.report.progress import progress_of
from suite.report.value import parse_prices, worth
from suite.report.words import marks
from tests.report.builders import failed, result


def test_what_is_left_of_a_run_goes_on_as_what_is_done():
    found = progress_of(60, {"ok": 10, "unsupported": 5}, "2031-05-06T07:00:00.000Z", "2031-05-06T07:05:00.000Z")
    assert (found.finished, found.share, found.left) == (15, 0.25, "15 min 00 s")  # 20 s each, 45 to go
    assert progress_of(60, {"ok": 1}, "2031-05-06T07:00:00Z", "2031-05-06T07:05:00Z").left == "4 h 55 min"
    assert progress_of(60, {"ok": 59}, "2031-05-06T07:00:00Z", "2031-05-06T07:05:00Z").left == "5 s"


@pytest.mark.parametrize(
    ("planned", "counts", "now"),
    [(60, {}, "2031-05-06T07:05:00Z"), (0, {"ok": 1}, "2031-05-06T07:05:00Z"), (60, {"ok": 1}, None), (60, {"ok": 1}, "soon"),
     (60, {"ok": 1}, "2031-05-06T06:00:00Z"), (5, {"ok": 9}, "2031-05-06T07:05:00Z")],
)  # fmt: skip
def test_where_nothing_can_be_said_of_the_rest_nothing_is(planned, counts, now):
    found = progress_of(planned, counts, "2031-05-06T07:00:00Z", now)
    assert found.left == ""
    assert 0 <= found.share <= 1


def test_an_hour_buys_its_rate_times_3600_over_its_price():
    assert worth(2.5, 1e15, 4e12) == (1e15 * 3600 / 2.5, 4e12 * 3600 / 2.5)
    assert worth(1.0, None, 4e12) == (None, 1.44e16)


@pytest.mark.parametrize("price", [0.0, -1.0, math.nan, math.inf, 2e9])
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(UsageError, match="not above 0 and at most"):
        worth(price, 1e15, 4e12)


def test_prices_of_an_address_are_read_and_what_is_none_is_passed_over():
    assert parse_prices(["a-1:2.5", "b:x", "c", ":1", "d:-1", "e:nan", "f:g:3"]) == {"a-1": 2.5, "f:g": 3.0}


def test_every_sheet_has_its_figures_with_sources():
    for spec in all_specs():
        lines = sheet_lines(spec)
        assert lines
        assert {line.name for line in lines if line.part == "dense peaks"} == {
            name for name, figure in spec.peaks.items() if figure != NOT_FOUND
        }
        numbers = documents(lines)
        assert all((source in numbers) == (source.kind != "none") for line in lines for source in line.sources)
        assert all((cited(line, numbers) == "not recorded") == (not documents([line])) for line in lines)
        assert sorted(numbers.values()) == list(range(1, len(numbers) + 1))


def test_a_sheet_says_its_figures_with_units_and_why_one_is_missing():
    by_name = {(line.part.split(" ")[0], line.name): line for line in sheet_lines(load("nvidia-h200-sxm5-141gb"))}
    assert by_name["dense", "bf16"].value == "989.5 TFLOP/s"
    assert by_name["sparse", "int8"].value.endswith(" TOP/s")
    assert by_name["sparse", "int8"].remark.startswith("with structured sparsity: no ceiling here")
    assert by_name["clocks", "boost"].value == "1.98 GHz"
    assert by_name["caches", "L2"].value.endswith("MiB")
    assert by_name["memory", "bandwidth"].value == "4.8 TB/s"
    of_cpu = derive(DeviceInfo("cpu", 0, "Two cores", "c", 2**30, llc_bytes=32 * 2**20))
    caches = [(line.name, line.value) for line in sheet_lines(of_cpu) if line.part == "caches"]
    assert caches == [("last-level cache", "32 MiB")]
    unknown = [line for spec in all_specs() for line in sheet_lines(spec) if line.value == "n/a"]
    assert unknown
    assert all(line.remark or line.sources for line in unknown)


def test_what_a_figure_is_of_is_short_and_a_bus_has_its_unit():
    """A column cut ``memory HBM2 4096 bit`` to ``memory HBM2 409``: a size, or a rate?"""
    assert max(len(line.part) for spec in all_specs() for line in sheet_lines(spec)) <= 17
    lines = {(line.part, line.name): line for line in sheet_lines(load("amd-mi100"))}
    assert lines["memory", "capacity"].remark == "HBM2, bus of 4096 bit"
    assert lines["interconnect", "both directions"].remark.startswith("Infinity Fabric (3 links, quad bridge), 3 links; ")
    assert cited(lines["released", "year"], {}) == "not recorded"


def test_what_fits_says_how_far():
    spec = load("nvidia-h200-sxm5-141gb")
    lines = {(line.model, line.format): line for line in fit_lines(fits(spec))}
    small = lines["Llama-3-8B", "bf16"]
    assert (small.weights, small.contexts) == ("16.1 GB", ("yes", "beyond the model", "beyond the model"))
    large = lines["Llama-3.1-405B", "bf16"]
    assert (large.longest, large.contexts) == ("does not fit", ("no", "no", "no"))


@pytest.mark.parametrize("pipe", PIPES)
def test_the_catalogue_is_drawn_for_every_pipe_that_any_sheet_has(pipe):
    specs = all_specs()
    known = [spec.id for spec in specs if spec.peak_flop_s(pipe) and spec.bandwidth_bytes_s]
    figure = catalogue_figure(specs, pipe, {"nvidia-h200-sxm5-141gb"})
    shown = [each for trace in figure.data for each in trace.customdata] if figure is not None else []
    assert sorted(shown) == known
    assert catalogue_figure([], pipe) is None


def test_each_device_keeps_its_colour_and_up_to_eight_are_told_apart():
    known = [f"d{number}" for number in range(50)]
    assert len(set(DEVICE_COLOURS)) == 8
    assert set(DEVICE_COLOURS) == set(FORMAT_COLOURS.values())
    alone = {name: device_colours(known, [name])[name] for name in known}
    assert alone["d0"] == alone["d8"] == DEVICE_COLOURS[0]
    together = device_colours(known, ["d8", "d0", "d3"])
    assert together == {"d0": DEVICE_COLOURS[0], "d3": DEVICE_COLOURS[3], "d8": DEVICE_COLOURS[1]}
    eight = device_colours(known, known[::6][:8])
    assert len(set(eight.values())) == 8
    assert len(device_colours(known, known)) == 50


def test_every_mark_is_explained_on_hover():
    row = result(
        interval_s=(1e-9, 1.0), converged=False, steady=False, contended=True, throttle="hw_slowdown 30%",
        execution="emulated", evidence="simulated",
    )  # fmt: skip
    text = hover_text(row)
    for mark in marks(row):
        assert explained(mark) != mark
        assert mark in text
    assert "the driver held the clock down" in text
    assert explained("unheard of") == "unheard of"


def test_a_case_that_failed_says_how_and_why_and_no_number():
    text = hover_text(failed("impossible", "1.2e15 FLOP/s is above the limit"))
    assert "impossible: faster than the physical limit allows" in text
    assert "1.2e15 FLOP/s is above the limit" in text
    assert "n/a" not in text


def test_a_hover_of_megabytes_ends():
    row = replace(result(), params={"m" * 10_000: "x" * 1_000_000}, implementation="y" * 1_000_000)
    assert len(hover_text(row)) < 2_000
