"""The dashboard as the command starts it, on a port of its own, and what a browser is to wait for there."""

import os
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from time import monotonic, sleep

import pytest

from dashboard import stores
from suite.commands.dashboard import command
from tests.patience import PATIENCE_S
from tests.report.browsing import until
from tests.report.builders import UID

PROJECT = Path(stores.__file__).parent.parent
PAGES = (
    *("", "roofline", "gemm", "grouped_gemm", "attention", "decode", "decode_step", "collectives"),
    *("compare", "run", "hardware", "targets"),
)
# What Streamlit asks for under the address of a page before it asks for it under the server's own.
PROBES = "Failed to load resource: the server responded with a status of 404 (Not Found)"
ME = f"device={UID}"


def served(folder, *names):
    """The dashboard's address over these stores, and its end."""
    port = free_port()
    words = command("127.0.0.1", port, [str(folder / name) for name in names], browser=False)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONSAFEPATH": "1"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_S)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url, server):
    deadline = monotonic() + PATIENCE_S
    while monotonic() < deadline:
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S):
                return
        except (urllib.error.URLError, ConnectionError):
            sleep(0.2)
    pytest.fail("the server did not start")


def settled(page, figure=True):
    page.wait_for_selector("[data-testid=stDataFrame]")
    if figure:
        page.wait_for_selector(".js-plotly-plot .main-svg", state="attached")
    until(page, "!document.querySelector('[data-testid=stSkeleton], [data-testid=stStatusWidget]')")


def unexpected(complaints):
    return [text for text in complaints if text != PROBES]
