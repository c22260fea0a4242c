"""A store of a million results over fifty devices: no question looks at all of it, and a browser does not wait for it."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from dashboard import stores
from suite.commands.dashboard import command
from suite.outcome import Evidence
from suite.store.browsing import Browser
from suite.store.check import problems
from suite.store.scopes import Scope
from tests.dashboard.big_store import build
from tests.dashboard.serving import free_port, wait_for
from tests.pace import REFERENCE_S, WORK
from tests.patience import PATIENCE_S
from tests.report.browsing import chromium, looking
from tests.store.steps import QUESTION_STEPS, ROW_STEPS, counted_steps

RESULTS, DEVICES, RUNS = 12_000, 4, 12  # of the store that is small enough for every day: 1,000 results a run
ENTRY_STEPS = 60  # of SQLite's virtual machine, for one entry of an index or one row that is passed over

VIEW_S, FILTER_S, MEMORY_BYTES = 2.0, 1.0, 2**30


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("small") / "small.db", RESULTS, DEVICES, RUNS)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    return counted_steps(monkeypatch)


def test_no_question_of_the_dashboard_looks_at_more_than_it_is_about(small: Path, steps: Callable[[], int]) -> None:
    browser = Browser.open(str(small))
    runs = [entry.run for entry in browser.entries()]
    of_run, of_device = RESULTS // RUNS, RESULTS // DEVICES
    run, device = Scope(runs=(runs[5],)), Scope(devices=("imagined0001",))
    some = [each.workload_id for each in browser.workloads(device._replace(jobs=("decode",)))[:10]]
    ids = browser.newest(device._replace(jobs=("decode",)), some)
    questions: dict[str, tuple[Callable[[], Any], int]] = {
        "entries": (browser.entries, 0),
        "groups of a run": (lambda: browser.groups(runs[5]), 2 * of_run),  # in four tables
        "names of devices": (browser.device_names, 0),
        "a device": (lambda: [browser.device("imagined0001")], 0),
        "its roofs": (lambda: [browser.roofs_of("imagined0001", Evidence.MEASURED)], of_device),
        "its workloads": (lambda: browser.workloads(device._replace(jobs=("gemm",))), of_device),
        "its newest": (lambda: browser.newest(device._replace(jobs=("gemm",))), of_device),
        "its newest of some workloads": (lambda: browser.newest(device, some), of_device),
        "newest of some workloads on every device": (lambda: browser.newest(Scope(jobs=("decode",)), some), 2 * 10 * RUNS),
        "rows": (lambda: browser.rows(ids), of_device),  # by the index of the device's roofs
        "a page of an old run": (lambda: browser.page(Scope(runs=(runs[-1],)), 100), of_run + of_device),
        "a filtered page": (lambda: browser.page(run._replace(jobs=("decode",), formats=(("bf16", "{}"),)), 50), 3 * of_run),
        "a page in order": (lambda: browser.page(run, 100, order="longest"), 2 * of_run + of_device),
    }
    steps()
    for name, (ask, looked_at) in questions.items():
        rows = len(ask())
        assert rows > 0
        assert steps() <= QUESTION_STEPS + ROW_STEPS * rows + ENTRY_STEPS * looked_at, name
        assert looked_at < RESULTS, name


def pace() -> float:
    """How many times as long as on the stated machine, left to itself, things take here and now: by the clock, which is what
    a person at a browser waits by, and what other programs on the machine make longer.
    """
    began_s = time.monotonic()
    subprocess.run([sys.executable, "-c", WORK], check=True, stdout=subprocess.DEVNULL)
    return (time.monotonic() - began_s) / REFERENCE_S


def median_s(act: Callable[[], float], runs: int = 5) -> float:
    """Of several tries, each at the pace of its moment."""
    return statistics.median(act() / max(1.0, pace()) for _ in range(runs))


IDLE = """!document.querySelector('[data-testid=stSkeleton], [data-testid=stStatusWidget], [data-stale=true]')
    && document.querySelector('[data-testid=stDataFrame] canvas') && document.querySelector('.js-plotly-plot .main-svg')"""


@pytest.mark.thorough
@pytest.mark.browser
@pytest.mark.timeout(1800)
def test_a_million_results_are_browsed_without_waiting(tmp_path: Path) -> None:
    """The server has read every run before the clock starts; the first page of a cold server is printed apart."""
    path = build(tmp_path / "big.db")
    port = free_port()
    words = command("127.0.0.1", port, [str(path)], browser=False)
    environment = {**os.environ, "PYTHONPATH": str(Path(stores.__file__).parent.parent), "PYTHONSAFEPATH": "1"}
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server)
        with chromium() as browser, looking(browser) as (page, _):
            address = f"http://127.0.0.1:{port}/"

            def view() -> float:
                began_s = time.monotonic()
                page.goto(address)
                page.wait_for_function(IDLE, timeout=PATIENCE_S * 1000, polling=20)
                return time.monotonic() - began_s

            cold_s = view()
            page.wait_for_function("!document.body.innerText.includes('Still reading')", timeout=600_000)
            view_s = median_s(view)
            formats = iter(("bf16", "fp16", "fp32", "fp64", "int8"))

            def choose() -> float:
                name = next(formats)
                page.get_by_test_id("stSidebar").get_by_role("combobox", name="Formats").click()
                option = page.get_by_role("option", name=name, exact=True)
                option.wait_for()
                began_s = time.monotonic()
                option.click()
                page.wait_for_function(f"location.search.includes('format={name}')", timeout=PATIENCE_S * 1000, polling=20)
                page.wait_for_function(IDLE, timeout=PATIENCE_S * 1000, polling=20)
                taken_s = time.monotonic() - began_s
                page.keyboard.press("Escape")
                return taken_s

            filter_s = median_s(choose)
            memory_bytes = psutil.Process(server.pid).memory_info().rss
        print(f"cold {cold_s:.2f} s, view {view_s:.2f} s, filter {filter_s:.2f} s, {memory_bytes / 2**20:.0f} MiB")
        assert view_s < VIEW_S
        assert filter_s < FILTER_S
        assert memory_bytes < MEMORY_BYTES
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_S)


def test_the_generated_store_is_one_that_nothing_is_wrong_with(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", 600, 2, 3)
    assert list(problems(path)) == []
