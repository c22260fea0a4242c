"""The dashboard as it is started, on a real store, in a real browser."""

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from time import monotonic, sleep

import pytest

from dashboard import data
from suite.rows import NO_FRACTIONS
from tests.report.browsing import NARROW, WIDE, chromium, looking, points_drawn
from tests.report.builders import result, sweep
from tests.report.stores import write_store

pytestmark = pytest.mark.browser
APP = Path(data.__file__).with_name("app.py")
START_S = 60


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def rows():
    return [*sweep(), result(format="w8a16", fractions=NO_FRACTIONS)]


@pytest.fixture(scope="module")
def address(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dashboard")
    write_store(folder / "results.db", rows)
    port = free_port()
    options = ("--server.headless=true", "--server.fileWatcherType=none", "--browser.gatherUsageStats=false")
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(APP),
        "--server.address=127.0.0.1",
        f"--server.port={port}",
        *options,
    ]
    environment = {**os.environ, "PYTHONPATH": str(APP.parent.parent), "PYTHONSAFEPATH": "1"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--", str(folder / "results.db")], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=20)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url, server):
    deadline = monotonic() + START_S
    while monotonic() < deadline:
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            sleep(0.2)
    pytest.fail("the server did not start")


def settled(page):
    page.wait_for_selector(".js-plotly-plot path.point", state="attached", timeout=30_000)
    page.wait_for_selector("[data-testid=stDataFrame]", timeout=30_000)


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_the_page_shows_every_point_and_logs_no_error(browser, address, rows, width, scheme):
    with looking(browser, width=width, scheme=scheme) as (page, complaints):
        page.goto(address)
        settled(page)
        assert points_drawn(page) == [sum(row.outcome == "ok" for row in rows)]
        assert page.get_by_role("heading", name="Testium T1").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []


def test_a_link_with_choices_shows_the_same_view(browser, address, rows):
    with looking(browser) as (page, complaints):
        page.goto(f"{address}/?format=tf32&format=fp64&regime=cold%2Fsustained%2Fdevice")
        settled(page)
        wanted = [row for row in rows if row.format in ("tf32", "fp64") and row.regime == "cold/sustained/device"]
        assert points_drawn(page) == [len(wanted)]
        assert "format=tf32" in page.url
        assert complaints == []


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_card_shows_its_whole_value_be_it_a_share_or_a_rate(browser, address, width):
    with looking(browser, width=width) as (page, _):
        page.goto(address)
        settled(page)
        values = page.locator("[data-testid=stMetricValue]")
        assert any("FLOP/s" in text for text in values.all_inner_texts())
        cut = """values => values.flatMap(value => [value, ...value.querySelectorAll('*')])
            .filter(part => part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflow !== 'visible')
            .map(part => part.textContent)"""
        card = """values => values.map(value => value.closest('[data-testid=stVerticalBlock]').getBoundingClientRect().right
            - Math.max(...[...value.querySelectorAll('*')].map(part => {
                const range = document.createRange(); range.selectNodeContents(part);
                return range.getBoundingClientRect().right; })))"""
        assert values.evaluate_all(cut) == []
        assert min(values.evaluate_all(card)) >= 0
