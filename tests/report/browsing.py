"""A real Chromium for the tests that look at a page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, NamedTuple

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = 1280, 390


class Look(NamedTuple):
    """An open page and what it complained of."""

    page: Any
    complaints: list[str]


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser of this machine; skips where there is none."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def looking(browser: Any, *, width: int = WIDE, scheme: str = "light", offline: bool = False) -> Iterator[Look]:
    """A page of its own, and the errors it logs."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_offline(offline)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        yield Look(page, complaints)
    finally:
        context.close()


def points_drawn(page: Any) -> list[int]:
    """How many points each roofline on the page really shows, counted in its SVG."""
    counts: list[int] = page.evaluate(
        """() => [...document.querySelectorAll('.js-plotly-plot')]
            .filter(gd => gd._fullData.some(trace => trace.meta === 'points')).map(gd => gd._fullData
            .filter(trace => trace.meta === 'points')
            .reduce((sum, trace) => sum + gd.querySelectorAll(`.trace${trace.uid} path.point`).length, 0))"""
    )
    return counts


def until(page: Any, expression: str, timeout_s: float = 20.0) -> None:
    """Wait for a JavaScript expression to hold; Playwright's own way needs an ``eval`` that the page's policy forbids."""
    deadline = monotonic() + timeout_s
    while not page.evaluate(expression):
        assert monotonic() < deadline, f"never true: {expression}"
        sleep(0.1)
