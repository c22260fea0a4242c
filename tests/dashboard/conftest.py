"""Stores that several tests of the dashboard look at; nothing here is written after it was made."""

from contextlib import ExitStack
from dataclasses import replace

import pytest

from suite.rows import NO_FRACTIONS
from tests.report.browsing import INTERPRETED, chromium, looking, until
from tests.report.builders import device, failed, result, run_info, sweep
from tests.report.recordings import sustained
from tests.report.stores import write_store

OLD_UID = "beef0000"


@pytest.fixture(autouse=True, scope="session")
def _no_components_of_other_packages():
    """Streamlit's own tests look through every package there is for components, each time that they start: here are none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.components.v2.manifest_scanner.scan_component_manifests", lambda *_: [])
        yield


def other_device():
    return device(info=replace(device().info, uid=OLD_UID, name="Testium T0"))


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


def measured(row):
    return replace(sustained(row.p50_s or 1.0, 40 * (row.p50_s or 1.0)), interval_s=row.interval_s, converged=row.converged)


HEADS = {"num_q_heads": 32, "num_kv_heads": 8, "head_dim": 128, "v_head_dim": 128}


def attention(length, batch=1, **fields):
    params = {**HEADS, "direction": "forward", "batch": batch, "q_len": length, "kv_len": length, "mask": "causal"}
    return result(job="attention", params={**params, **fields.pop("params", {})}, **fields)


def grouped(groups, rows, **fields):
    """Of a mixture: ``rows`` of all groups together."""
    params = {"groups": groups, "m": rows, "n": 4096, "k": 7168, "spread": "balanced", "top_k": 8, **fields.pop("params", {})}
    return result(job="grouped_gemm", params=params, **fields)


def decode(length, batch=1, page=16, **fields):
    pages = {"batch": batch, "kv_len": length, "q_len": 1, "page_size": page, "page_order": "random", "lengths": "equal"}
    return result(job="decode", params={**HEADS, **pages, **fields.pop("params", {})}, bound="memory", **fields)


def step(batch, length=4096, model="llama-3-8b", **fields):
    sizes = {"layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "vocabulary": 128256, "model": model}
    params = {**HEADS, **sizes, "part": "step", "batch": batch, "kv_len": length, "page_size": 16, "q_len": 1}
    return result(job="decode_step", params=params, bound="memory", **fields)


def collective(size, algo="ring", ranks=2, **fields):
    nothing = {"flops": 0, "flop_s": 0.0, "arithmetic_intensity": 0.0, "bound": "link", "fractions": NO_FRACTIONS}
    params = {"op": "all_reduce", "message_bytes": size, "world_size": ranks}
    switches = {"algo": algo, "proto": "library", "in_place": True, "transport": "device_link"}
    nothing |= {"interval_s": (fields["p50_s"] * 0.998, fields["p50_s"] * 1.002)}
    moved = {"compulsory_bytes": size, "bytes_s": size / fields["p50_s"], "pipe": "device_link"}
    regime = "warm/sustained/call"
    return result(job="collective", params=params, switches=switches, regime=regime, **{**nothing, **moved, **fields})


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
    from tests.dashboard.test_browser import write_stores

    place = tmp_path_factory.mktemp("dashboard")
    write_stores(place)
    return place


@pytest.fixture(scope="package")
def address(folder):
    from tests.dashboard.test_browser import STORES, served

    yield from served(folder, *STORES)


@pytest.fixture(scope="package")
def roofline(browser, address):
    """A roofline in a dark window of a width: opened once, for tests that leave it as it was, or by one of its links."""
    from tests.dashboard.test_browser import ME, settled

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
