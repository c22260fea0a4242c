"""What people come for, over real runs, in a real browser: each answer in at most four clicks, and its link shows the same."""

import csv
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dashboard import stores
from suite.commands.dashboard import command
from suite.report.words import percent
from suite.store.browsing import Browser
from tests.dashboard.lower_clock import lower_clock
from tests.dashboard.recordings import recorded
from tests.dashboard.serving import free_port, settled, unexpected, wait_for
from tests.patience import PATIENCE_S
from tests.report.browsing import NARROW, WIDE, looking, until

pytestmark = pytest.mark.browser
MOST_CLICKS = 4
PAGES = ("", "roofline", "gemm", "attention", "decode", "collectives", "compare", "run", "hardware", "targets")
CLOCK, MEMORY_CLOCK = 0.85, 0.8
DEVICES = 7


class Served(NamedTuple):
    """A dashboard over real stores and copies of them, by its address; ``folder`` has the stores."""

    address: str
    folder: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An H200 and two CPUs as they were measured; two of them again as simulated nodes, one with a lower clock planted."""
    folder = tmp_path_factory.mktemp("tasks")
    h200, cpu, *more = (recorded(name, folder) for name in ("h200", "cpu", "h200-decode", "epyc"))
    paths = [cpu, h200, *more]
    for name, clock in (("node-a", 1.0), ("node-b", CLOCK)):
        paths.append(lower_clock(h200, folder / f"{name}.db", name, clock))
    for name, clock in (("host-a", 1.0), ("host-b", MEMORY_CLOCK)):
        paths.append(lower_clock(cpu, folder / f"{name}.db", name, clock, "memory"))
    port = free_port()
    words = command("127.0.0.1", port, [str(path) for path in paths], browser=False)
    environment = {**os.environ, "PYTHONPATH": str(Path(stores.__file__).parent.parent), "PYTHONSAFEPATH": "1"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield Served(f"http://127.0.0.1:{port}", folder)
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_S)


class Person:
    """Clicks, and counts them."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks = page, 0

    def click(self, what: Any) -> None:
        what.click()
        self.clicks += 1

    def click_point(self, point: Any) -> None:
        """Of a figure, whose points lie under what takes the pointer."""
        box = point.bounding_box()
        self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.clicks += 1

    def turn_to(self, title: str) -> None:
        self.click(self.page.get_by_role("link", name=title, exact=True))
        self.page.wait_for_selector(f"h2:has-text('{title}')")
        settled(self.page)

    def choose(self, label: str, option: str | re.Pattern[str]) -> None:
        self.click(self.page.get_by_role("combobox", name=label))
        self.click(self.page.get_by_role("option", name=option))
        settled(self.page)


def follow(browser: Any, link: str, width: int, is_same: Callable[[Any], None]) -> None:
    """Open a copied address elsewhere, on another screen, and see the same."""
    with looking(browser, width=width) as (page, complaints):
        page.goto(link)
        settled(page)
        is_same(page)
        assert unexpected(complaints) == []


@pytest.mark.thorough
def test_the_device_that_decodes_a_70b_model_fastest_is_found(browser, served, tmp_path):
    with looking(browser) as (page, complaints):
        page.goto(served.address)
        settled(page)
        person = Person(page)
        person.turn_to("Decode")
        person.choose("Heads", re.compile("Llama-3.3-70B"))
        page.wait_for_selector("h3:has-text('Devices side by side')")
        with page.expect_download() as download:
            person.click(page.locator(".st-key-decode-devices-CSV").get_by_role("button"))
        download.value.save_as(tmp_path / "d.csv")
        with (tmp_path / "d.csv").open(newline="") as file:
            told = [row for row in csv.DictReader(file) if "64/8x128" in row["Case"]]
        measured, simulated = ([row for row in told if ("simulated" in row["Remarks"]) == planted] for planted in (False, True))
        assert measured
        assert simulated
        assert all("host-a" in row["Fastest"] for row in simulated), simulated
        assert all(row["Fastest"].startswith("NVIDIA H200") for row in measured), measured
        assert person.clicks <= MOST_CLICKS
        link = page.url
        assert unexpected(complaints) == []
    follow(browser, link, NARROW, lambda other: _has_option(other, "64/8x128: Llama-3.3-70B"))


def _has_option(page: Any, text: str) -> None:
    assert text in page.get_by_role("combobox", name="Heads").input_value() or page.get_by_text(text).count()


def test_a_slower_node_is_found_and_the_clock_is_named_for_it(browser, served):
    def answer(page: Any) -> None:
        page.wait_for_selector("text=took longer in B by the clock")
        said = page.inner_text("[data-testid=stMain]")
        assert f"with the clock at {100 * (CLOCK - 1):.1f} %" in said
        assert f"is +{100 * (1 / CLOCK - 1):.1f} %" in said

    with looking(browser) as (page, complaints):
        page.goto(served.address)
        settled(page)
        person = Person(page)
        person.turn_to("Compare")
        person.choose("B, what is", re.compile(r"node-b\.db"))
        answer(page)
        assert person.clicks <= MOST_CLICKS
        link = page.url
        assert unexpected(complaints) == []
    follow(browser, link, NARROW, answer)


@pytest.mark.thorough
def test_the_fraction_of_the_roofline_that_fp8_reaches_is_found(browser, served):
    row = max(Browser.open(str(served.folder / "h200.db")).results(format="fp8_e4m3"), key=lambda row: row.fractions.spec or 0)

    def answer(page: Any) -> None:
        page.wait_for_selector("text=Checks against the reference")
        values = page.locator("[data-testid=stMetricValue]")
        for fraction in (row.fractions.spec, row.fractions.at_clock):
            values.get_by_text(percent(fraction), exact=True).first.wait_for()

    with looking(browser) as (page, complaints):
        page.goto(served.address)
        settled(page)
        person = Person(page)
        person.choose("Formats", "fp8_e4m3")
        person.click_point(_cell_of(page, "h200.db"))
        answer(page)
        assert person.clicks <= MOST_CLICKS
        link = page.url
        assert unexpected(complaints) == []
    follow(browser, link, NARROW, answer)


def _cell_of(page: Any, store: str) -> Any:
    """The only cell of a line of the heat map: cells stand in the order of lines."""
    page.keyboard.press("Escape")  # the open list hides everything else
    until(page, f"document.querySelectorAll('.st-key-standings .trace path.point').length === {DEVICES}")
    names = page.locator(".st-key-standings .annotation-text").all_text_contents()
    lines = [name for name in names if ".db" in name]
    return page.locator(".st-key-standings .trace path.point").nth(next(n for n, name in enumerate(lines) if store in name))


@pytest.mark.thorough
def test_a_figure_is_downloaded(browser, served, tmp_path):
    with looking(browser) as (page, complaints):
        page.goto(served.address)
        settled(page)
        person = Person(page)
        person.turn_to("Roofline")
        with page.expect_download() as download:
            person.click(page.locator(".modebar-btn[data-title*='ownload']").first)
        download.value.save_as(tmp_path / "f.png")
        assert download.value.suggested_filename == "roofbench-rooflines.png"
        assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
        assert person.clicks <= MOST_CLICKS
        assert unexpected(complaints) == []


@pytest.mark.thorough
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_over_real_runs_and_logs_no_error(browser, served, name, width):
    with looking(browser, width=width, scheme="dark" if width == NARROW else "light") as (page, complaints):
        page.goto(f"{served.address}/{name}")
        settled(page, figure=name != "run")
        assert page.locator("[data-testid=stException]").count() == 0
        assert page.get_by_text("results yet").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        widths = page.locator("[data-testid=stMain] [data-testid=stSelectbox]").evaluate_all(
            "boxes => boxes.map(box => box.getBoundingClientRect().width).filter(width => width)"
        )
        assert width == WIDE or min(widths, default=width) > 0.8 * NARROW  # half a line cuts the words of a choice off
        assert unexpected(complaints) == []


def test_the_copy_has_as_many_cycles_at_a_lower_clock(tmp_path):
    h200 = recorded("h200", tmp_path)
    slow = lower_clock(h200, tmp_path / "b.db", "node-b", CLOCK)
    before, after = (Browser.open(str(path)).results(format="fp8_e4m3", outcome="ok") for path in (h200, slow))
    assert {row.evidence for row in after} == {"simulated"}
    assert {row.device_uid for row in before}.isdisjoint(row.device_uid for row in after)
    assert before
    for one, other in zip(before, after, strict=True):
        assert other.case_key == one.case_key
        assert other.p50_s == pytest.approx(one.p50_s / CLOCK, rel=1e-5)
        assert (other.clock_hz or 0.0) == pytest.approx((one.clock_hz or 0.0) * CLOCK, rel=1e-5)
        if one.fractions.at_clock:
            assert other.fractions.at_clock == pytest.approx(one.fractions.at_clock, rel=1e-4)
