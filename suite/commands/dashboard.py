"""``roofbench dashboard``: the results in a browser."""

import argparse
import ipaddress
import os
import socket
import subprocess
import sys
from functools import partial
from importlib import resources
from pathlib import Path

from suite.errors import RoofbenchError, UsageError
from suite.interrupts import leave, on_interrupt
from suite.worker.lifeline import bind_to_parent

SUMMARY = "Open the results in a browser: rooflines, tables, comparisons."
DETAIL = """\
Serves on this machine only (127.0.0.1) and opens stores read-only, also while a run is writing them. To look from elsewhere,
forward the port: ssh -L 8501:127.0.0.1:8501 NODE."""
EXAMPLES = """\
roofbench dashboard                       ./roofbench.db
roofbench dashboard h200.db mi300x.db     several stores side by side
roofbench dashboard --port 9000           on another port"""

LOOPBACK = "127.0.0.1"
LARGEST_PORT = 65535
GRACE_S = 5.0  # what a server that is told to end may take


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("stores", nargs="*", metavar="STORE", help="stores to show (default: roofbench.db)")
    parser.add_argument("--port", type=int, default=8501, help="the port to listen on (default: 8501)")
    parser.add_argument("--address", default=LOOPBACK, help="a loopback address to listen on (default: 127.0.0.1)")
    parser.add_argument("--open", action="store_true", help="open a browser here")


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted; the exit status is the server's."""
    stores = args.stores or ["roofbench.db"]
    for store in stores:
        if not Path(store).is_file():
            raise UsageError(f"no store at {store}; run `roofbench run` first, or name one: roofbench dashboard PATH")
    refuse_address(args.address)
    refuse_port(args.address, args.port)
    return serve(command(args.address, args.port, stores, args.open))


def serve(words: list[str]) -> int:
    """Run the server until it ends, or until this process is told to: then it is told too, and killed if it does not listen.

    Being told a second time ends this process at once, and the server with it, as whatever else ends it does.
    """
    bind = partial(bind_to_parent, os.getpid())
    with on_interrupt(leave):
        server = subprocess.Popen(words, env={**os.environ, "PYTHONSAFEPATH": "1"}, preexec_fn=bind)  # no threads here
        try:
            return server.wait()
        except KeyboardInterrupt:  # how a server is meant to be stopped
            _end(server)
            return 0


def _end(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def command(address: str, port: int, stores: list[str], browser: bool) -> list[str]:
    """The server's command line; it reports nothing to anybody and watches no files."""
    app = str(resources.files("dashboard") / "app.py")
    options = {
        "server.address": address,
        "server.port": str(port),
        "server.headless": str(not browser).lower(),
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "viewer",  # no button that offers to publish the page elsewhere
        "theme.primaryColor": "#0a5fb4",  # the default red reads as a warning beside results
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    return [sys.executable, "-m", "streamlit", "run", app, *flags, "--", *stores]


def refuse_address(address: str) -> None:
    """Only loopback: the page has no login, and shows host details that a report leaves out."""
    try:
        loopback = address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise UsageError(
            f"--address {address} is not a loopback address; the dashboard has no login, so listen on {LOOPBACK} "
            "and forward the port with ssh -L"
        )


def refuse_port(address: str, port: int) -> None:
    """A port that is taken is found out here, in one line."""
    if not 1 <= port <= LARGEST_PORT:
        raise UsageError(f"--port {port} is not between 1 and {LARGEST_PORT}")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address, port))
        except OSError as error:
            raise RoofbenchError(f"port {port} on {address} cannot be used: {error.strerror}; choose another --port") from error
