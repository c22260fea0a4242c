"""Eight browsers on a store that a sweep writes: neither side waits for the other."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from dashboard import stores
from suite.commands.dashboard import command
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.dashboard.serving import free_port, unexpected, wait_for
from tests.patience import PATIENCE_S
from tests.report.browsing import chromium, looking, until
from tests.store.material import case, planned, record, run_start

BROWSERS, RESULTS_S, SECONDS = 8, 20, 30
COMMIT_P99_S = 0.05
PAGES = ("", "roofline", "gemm", "run")


@pytest.mark.thorough
@pytest.mark.browser
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_sweep_keeps_its_rate_while_eight_browsers_read(tmp_path: Path) -> None:
    path, results = tmp_path / "growing.db", RESULTS_S * SECONDS
    with Store.open(str(path)) as store, store.start_run(run_start()) as run:
        run.record(record(planned(case(10_000))))
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": str(Path(stores.__file__).parent.parent), "PYTHONSAFEPATH": "1"}
    words = command("127.0.0.1", port, [str(path)], browser=False)
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server)
        with chromium() as browser, ExitStack() as open_pages:
            looks = [open_pages.enter_context(looking(browser)) for _ in range(BROWSERS)]
            for number, (page, _) in enumerate(looks):
                page.goto(f"http://127.0.0.1:{port}/{PAGES[number % len(PAGES)]}")
                page.wait_for_selector("[data-testid=stDataFrame]")
            sweep = [sys.executable, "-m", "tests.dashboard.steady_sweep", str(path), str(results), str(RESULTS_S)]
            writer = subprocess.Popen(sweep, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            said, complained = writer.communicate(timeout=10 * SECONDS)
            assert writer.returncode == 0, complained.decode()
            page, _ = looks[0]
            until(page, f"document.body.innerText.includes('{results + 1} results in 2 runs')")
            for page, complaints in looks:
                assert page.locator("[data-testid=stException]").count() == 0
                assert "locked" not in page.inner_text("body")
                assert unexpected(complaints) == []
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_S)
    found = json.loads(said)
    commits_s = sorted(found["commits_s"])
    p99_s = commits_s[int(0.99 * len(commits_s))]
    p50_s = commits_s[len(commits_s) // 2]
    print(f"{found['stored'] / found['took_s']:.1f} results/s, commit p50 {p50_s:.4f} s, p99 {p99_s:.4f} s")
    assert "locked" not in (tmp_path / "log").read_text()
    assert complained == b""
    assert found["took_s"] < 1.02 * SECONDS
    assert p99_s < COMMIT_P99_S
    with Reader.open(str(path)) as reader:
        assert len(reader.results()) == results + 1
