"""What is marked in a heat map is said under it, and its hover is whole."""

import pytest

from dashboard.whys import MOST_NAMED, lines_of
from tests.dashboard.opened import opened, words
from tests.dashboard.serving import ME, settled
from tests.report.browsing import WIDE, looking, until
from tests.report.builders import failed, result, run_info
from tests.report.stores import write_store


def test_each_reason_has_a_line_with_the_cells_that_it_is_the_reason_of():
    rows = {
        "clean": result(throttle="sw_power_cap 100%"),
        "both": result(converged=False, contended=True),
        "one": result(interval_s=None, count=1),
        "wide": result(interval_s=(1e-9, 1.0)),
        "gone": failed("unsupported", "no unit"),
        "also both": result(converged=False, contended=True),
    }
    assert lines_of({("", name): row for name, row in rows.items()}) == [
        "? not resolved (the interval is wider than twice the median): wide",
        "? one sample (nothing says how far the next would differ): one",
        "? not converged (the interval did not become as narrow as asked in the time allowed): both, also both",
        "? contended (others used the device meanwhile): both, also both",
        "✗ unsupported (the device or backend does not offer it): gone",
    ]
    assert lines_of({("", "clean"): result()}) == []


def test_of_many_cells_the_first_are_named_and_the_others_counted():
    (line,) = lines_of({("", f"c{number}"): result(steady=False) for number in range(MOST_NAMED + 1_000)})
    assert line.endswith(f"c{MOST_NAMED - 1} and 1,000 more")


def test_cells_of_several_devices_are_told_device_by_device():
    cells = {(device, name): result(steady=False) for device in ("T0", "T1") for name in ("bf16", "fp16")}
    (line,) = lines_of(cells)
    assert line.endswith(": T0: bf16, fp16; T1: bf16, fp16")


@pytest.mark.parametrize(("page", "name"), [("", "gemm bf16"), ("gemm", "4096 x 4096 x 4096")])
def test_a_page_says_why_under_its_map(monkeypatch, tmp_path, page, name):
    write_store(tmp_path / "s.db", [result(contended=True)], info=run_info())
    said = words(opened(monkeypatch, tmp_path / "s.db", page=page))
    assert f"? contended (others used the device meanwhile): {name}" in said


@pytest.mark.browser
@pytest.mark.thorough
def test_a_hover_over_a_map_of_few_cells_is_whole_and_the_cells_are_no_wider(browser, address):
    """It was cut off left and right by a figure of 331 px, over the words that told of it."""
    with looking(browser, width=WIDE) as (page, _):
        page.goto(f"{address}/?{ME}&format=bf16&format=fp16&job=gemm")
        settled(page)
        cell, other = (page.locator(".st-key-standings .trace path.point").nth(n).bounding_box() for n in range(2))
        assert abs(other["x"] - cell["x"] - 62) < 2
        page.mouse.move(cell["x"] + cell["width"] / 2, cell["y"] + cell["height"] / 2)
        until(page, "!!document.querySelector('.st-key-standings .hovertext')")
        hover, figure = (page.locator(f".st-key-standings {each}").first.bounding_box() for each in (".hovertext", ".main-svg"))
        assert figure["x"] <= hover["x"]
        assert hover["x"] + hover["width"] <= figure["x"] + figure["width"]
