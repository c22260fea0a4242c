"""Stores that several tests of the dashboard look at; nothing here is written after it was made."""

from contextlib import ExitStack

import pytest

from suite.rows import NO_FRACTIONS
from tests.dashboard.builders import attention, collective, decode, grouped, measured, other_device, step
from tests.dashboard.serving import ME, served, settled
from tests.dashboard.stores import STORES, write_stores
from tests.report.browsing import INTERPRETED, chromium, looking, until
from tests.report.builders import failed, result, run_info, sweep
from tests.report.stores import write_store


@pytest.fixture(autouse=True, scope="session")
def _no_components_of_other_packages():
    """Streamlit's own tests look through every package there is for components, each time that they start: here are none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.components.v2.manifest_scanner.scan_component_manifests", lambda *_: [])
        yield


@pytest.fixture(scope="session")
def one_store(tmp_path_factory):
    """A run of one device: every format, several regimes, a case that failed, one in doubt."""
    path = tmp_path_factory.mktemp("one") / "one.db"
    rows = [*sweep(), result(format="w8a16", fractions=NO_FRACTIONS)]
    write_store(path, rows, info=run_info(experiment="standard", note="after the update"), measured=measured)
    return path


@pytest.fixture(scope="session")
def two_stores(one_store, tmp_path_factory):
    """The same, and a store with an older run of another device that is slower and has simulated results too."""
    path = tmp_path_factory.mktemp("two") / "two.db"
    slower = [result(m, format=name, share=0.4) for m in (512, 4096) for name in ("bf16", "fp16")]
    slower += [result(1024, evidence="simulated", share=0.9), failed("unsupported", "no unit for fp8", format="fp8_e4m3")]
    write_store(path, slower, devices=(other_device(),), info=run_info(experiment="quick"))
    return one_store, path


@pytest.fixture(scope="session")
def jobs_store(tmp_path_factory):
    """A little of every job."""
    path = tmp_path_factory.mktemp("jobs") / "jobs.db"
    rows = [attention(n, 4096 // n, implementation=by) for n in (512, 1024, 2048) for by in ("library_flash", "triton")]
    rows += [grouped(n, 8 * m, implementation=by) for n in (64, 256) for m in (512, 2048) for by in ("library", "triton")]
    rows += [decode(n, batch, page) for n in (1024, 4096) for batch in (1, 8) for page in (16, 64)]
    rows += [step(batch, length) for batch in (1, 8, 64) for length in (1024, 4096)]
    times = {"ring": lambda size: 10e-6 + size / 100e9, "tree": lambda size: 5e-6 + size / 50e9}
    rows += [collective(2**power, algo, p50_s=time_s(2**power)) for power in range(3, 28, 4) for algo, time_s in times.items()]
    rows += [result(m, 4096, 4096, share=0.1 + m / 10_000) for m in (16, 512, 4096)]
    write_store(path, rows, info=run_info(experiment="everything"))
    return path


@pytest.fixture(scope="package")
def browser():
    with chromium(INTERPRETED) as found:
        yield found


@pytest.fixture(scope="package")
def folder(tmp_path_factory):
    """Stores of every kind, which the dashboard serves."""
    place = tmp_path_factory.mktemp("dashboard")
    write_stores(place)
    return place


@pytest.fixture(scope="package")
def address(folder):
    yield from served(folder, *STORES)


@pytest.fixture(scope="package")
def roofline(browser, address):
    """A roofline in a dark window of a width: opened once, for tests that leave it as it was, or by one of its links."""
    with ExitStack() as open_pages:
        looks = {}

        def look(width, link=""):
            if width not in looks:
                looks[width] = open_pages.enter_context(looking(browser, width=width, scheme="dark"))
                link = link or f"{address}/roofline?{ME}"
            page = looks[width].page
            page.set_viewport_size({"width": width, "height": 900})
            if link:
                page.goto(link)
            settled(page)
            page.mouse.move(0, 0)  # what is pointed at, or was clicked last, has another colour
            page.evaluate("document.activeElement.blur()")
            until(page, "document.getAnimations().every(({ playState }) => playState !== 'running')")
            return looks[width]

        yield look
