"""``roofbench dashboard``: the results in a browser."""

import argparse
import getpass
import ipaddress
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import resources
from pathlib import Path

from suite.commands.options import naming_store
from suite.errors import RoofbenchError, StoreUnusable, UsageError
from suite.interrupts import leave, on_interrupt
from suite.killing import end
from suite.passphrase import LONGEST, VARIABLE, refuse_weak, sealed
from suite.paths import for_shell, is_text, shown, without_waiting
from suite.report.palette import INKS
from suite.worker.lifeline import bind_to_parent

SUMMARY = "Open the results in a browser: rooflines, tables, comparisons."
DETAIL = """\
Serves on this machine only (127.0.0.1) and opens stores read-only, also while a run is writing them. To look from elsewhere,
forward the port: ssh -L 8501:127.0.0.1:8501 NODE. For several people, put a reverse proxy with TLS and a login of its own in
front of it, on this machine, and say with --host under which name they come.

Another address is only taken with --remote, and with a passphrase that everybody has to give: from --passphrase-file, from
the variable ROOFBENCH_PASSPHRASE, or asked for here; never as an argument. It crosses the network as it is typed: only a
proxy with TLS keeps it secret. On a machine with other users a passphrase is taken for 127.0.0.1 too."""
EXAMPLES = """\
roofbench dashboard                            ./roofbench.db; Ctrl-C ends it
roofbench dashboard h200.db mi300x.db          several stores side by side
roofbench dashboard --port 9000                on another port
roofbench dashboard --host bench.example.org   behind a reverse proxy on this machine
roofbench dashboard --remote --address 10.0.0.5 --passphrase-file FILE  to others, behind it"""

LOOPBACK = "127.0.0.1"
LARGEST_PORT = 65535
AS_ARGUMENT = {"with store.url=PATH": "with roofbench dashboard PATH", "store.url=": "roofbench dashboard "}
PASSPHRASE = "ROOFBENCH_PASSPHRASE"
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")
GRACE_S = 5.0  # what a server that is told to end may take


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("stores", nargs="*", metavar="STORE", help="stores to show (default: roofbench.db)")
    parser.add_argument(
        "--store", action="append", default=[], metavar="PATH", help="one more store, named as other commands name theirs"
    )
    parser.add_argument("--port", type=int, default=8501, help="the port to listen on (default: 8501)")
    parser.add_argument("--address", default=LOOPBACK, help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--remote", action="store_true", help="let others in: an address that is not this machine's own")
    parser.add_argument(
        "--passphrase-file", type=Path, metavar="FILE", help="a file that only you can read; its first line counts"
    )
    parser.add_argument(
        "--host", action="append", default=[], metavar="NAME", help="a name that browsers use for this server, behind a proxy"
    )
    parser.add_argument("--open", action="store_true", help="open a browser here")


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted; the exit status is the server's."""
    stores = [*args.stores, *args.store] or ["roofbench.db"]
    with suppress(OSError):  # a folder that was removed
        _refuse_no_text(Path.cwd(), "change to another folder")
    for store in stores:
        refuse_store(store)
    if args.remote and is_loopback(args.address):
        raise UsageError(
            f"--remote lets others in, and nobody else reaches --address {args.address}; "
            "give an address of this machine too, such as --address 10.0.0.5, or leave --remote out"
        )
    refuse_address(args.address, args.remote)
    refuse_hosts(args.host)
    refuse_port(args.address, args.port)
    phrase = passphrase(args.passphrase_file, is_needed=not is_loopback(args.address))
    gate = {VARIABLE: sealed(phrase)} if phrase is not None else {}
    status = serve(command(args.address, args.port, stores, args.open, args.host), gate)
    if status:
        refuse_port(args.address, args.port)  # another may have taken it since it was tried
    return status


def refuse_store(store: str) -> None:
    """What the page could not open is refused here, with its words; a file that is empty may be a store about to be filled.

    One that somebody else holds for the moment is not: the page tries again.
    """
    from suite.store.browsing import Browser
    from suite.store.files import locate, refuse_irregular
    from suite.store.schema import look, refuse_unreadable
    from suite.store.sqlite import LOOKING_TIMEOUT_S, is_locked

    with naming_store(AS_ARGUMENT):
        found = locate(store)
        path = found if "://" in store else Path(store)  # as it was given
        refuse_irregular(path)
        if not path.exists():
            raise UsageError(
                f"no store at {shown(Path(store))}; run `roofbench run` first, or name one: roofbench dashboard PATH"
            )
        _refuse_no_text(found, "move or rename it")
        try:
            if look(path).state != "empty":
                refuse_unreadable(path)
                with Browser.open(str(path), busy_timeout_s=LOOKING_TIMEOUT_S) as browser:
                    browser.entries()
        except StoreUnusable as error:
            if not is_locked(error):
                raise


def _refuse_no_text(path: Path, remedy: str) -> None:
    """The server knows stores and its folder by texts: it ends on bytes that stand for no character."""
    if not is_text(str(path)):
        raise UsageError(f"the dashboard cannot serve {shown(path)}, whose name or folder is no UTF-8 text; {remedy}")


def passphrase(file: Path | None, is_needed: bool) -> str | None:
    """The passphrase that is asked for in the page, from a file, the environment or a terminal; ``None`` for none.

    ``UsageError`` for one that is too short, for a file that others can read, and where one is needed and there is none.
    """
    given = _from_file(file) if file is not None else os.environ.get(PASSPHRASE)
    if given is None and is_needed:
        if not sys.stdin.isatty():
            raise UsageError(f"--remote needs a passphrase; give --passphrase-file FILE, or set {PASSPHRASE}")
        given = getpass.getpass("Passphrase that visitors have to give: ")
    if given is not None:
        refuse_weak(given)
    return given


def _from_file(file: Path) -> str:
    try:
        with open(file, encoding="utf-8", opener=without_waiting) as opened:  # Path.open takes no opener
            if os.fstat(opened.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise UsageError(
                    f"--passphrase-file {shown(file)} can be read by others; "
                    f"make it yours alone: chmod 600 {for_shell(str(file))}"
                )
            return opened.readline(LONGEST + 2).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise UsageError(f"--passphrase-file {shown(file)} cannot be read: {reason}; name a text file of yours") from error


def serve(words: list[str], more: Mapping[str, str] | None = None) -> int:
    """Run the server until it ends, or until this process is told to: then it is told too, and killed if it does not listen.

    Being told a second time ends this process at once, and the server with it, as whatever else ends it does.
    """
    bind = partial(bind_to_parent, os.getpid())
    kept = {name: value for name, value in os.environ.items() if name not in (PASSPHRASE, VARIABLE)}
    environment = {**kept, "PYTHONSAFEPATH": "1", **(more or {})}
    with on_interrupt(leave):
        server = subprocess.Popen(words, env=environment, preexec_fn=bind)  # no threads here
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
        end(server)


def command(address: str, port: int, stores: list[str], browser: bool, hosts: Sequence[str] = ()) -> list[str]:
    """The server's command line; it reports nothing to anybody, watches no files, takes none and shows no traceback.

    On a loopback address it answers to that address, to ``localhost`` and to ``hosts`` only: a page elsewhere could else have
    a browser take its own name for this machine (DNS rebinding).
    """
    app = str(resources.files("dashboard") / "app.py")
    options = {
        "server.address": address,
        "server.port": str(port),
        "server.headless": str(not browser).lower(),
        "server.fileWatcherType": "none",
        "server.maxUploadSize": "0",
        "browser.gatherUsageStats": "false",
        "client.showErrorDetails": "none",
        "client.toolbarMode": "viewer",  # no button that offers to publish the page elsewhere
        # The default red reads as a warning beside results; backgrounds are those of the figures.
        "theme.light.primaryColor": INKS["light"].accent,
        "theme.light.backgroundColor": INKS["light"].background,
        "theme.dark.primaryColor": "#2a78c8",
        "theme.dark.backgroundColor": INKS["dark"].background,
        "theme.dark.secondaryBackgroundColor": "#1b222b",
        "theme.dark.textColor": INKS["dark"].text,
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    known = [address, "localhost", LOOPBACK, "::1"] if is_loopback(address) else []
    answered = dict.fromkeys([*known, *hosts]) if known or hosts else {}
    flags += [part for name in answered for part in ("--server.allowedHosts", name)]
    return [sys.executable, "-m", "streamlit", "run", app, *flags, "--", *stores]


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def refuse_address(address: str, is_remote: bool = False) -> None:
    """Loopback, or with ``is_remote`` an address in digits: a page shows host details that a report leaves out."""
    if is_loopback(address):
        return
    try:
        ipaddress.ip_address(address)
    except ValueError as error:
        raise UsageError(f"--address {address} is no address in digits; write for instance {LOOPBACK} or 10.0.0.5") from error
    if not is_remote:
        raise UsageError(
            f"--address {address} is not a loopback address, and others could see this machine's results; listen on {LOOPBACK} "
            "and forward the port with ssh -L, or let them in with --remote and a passphrase"
        )


def refuse_hosts(hosts: Sequence[str]) -> None:
    """Names as a browser has them in its address bar."""
    for name in hosts:
        if not _HOST.fullmatch(name):
            raise UsageError(f"--host {name!r} is no name of a server; write for instance --host bench.example.org")


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
