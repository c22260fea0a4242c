"""The dashboard's server: on this machine only, on a free port, over stores that are there."""

import argparse
import io
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from suite.commands import dashboard
from suite.commands.dashboard import command, passphrase, refuse_address, refuse_hosts, refuse_port, serve
from suite.errors import RoofbenchError, UsageError
from suite.passphrase import VARIABLE, sealed
from suite.store.writer import Store
from tests.patience import PATIENCE_S
from tests.store import material


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_is_taken(address: str) -> None:
    refuse_address(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.1"])
def test_every_other_address_needs_to_be_asked_for(address: str) -> None:
    with pytest.raises(UsageError, match=r"127\.0\.0\.1 and forward the port with ssh -L, or let them in with --remote"):
        refuse_address(address)
    refuse_address(address, is_remote=True)


@pytest.mark.parametrize("address", ["example.org", ""])
def test_a_name_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match="is no address in digits"):
        refuse_address(address, is_remote=True)


def test_others_are_let_in_only_behind_a_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROOFBENCH_PASSPHRASE", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO("a piped passphrase\n"))
    assert passphrase(None, is_needed=False) is None
    with pytest.raises(UsageError, match="give --passphrase-file FILE, or set ROOFBENCH_PASSPHRASE"):
        passphrase(None, is_needed=True)
    monkeypatch.setenv("ROOFBENCH_PASSPHRASE", "of the environment")
    assert passphrase(None, is_needed=True) == "of the environment"
    file = tmp_path / "phrase"
    file.write_text("four random words here\nand more\n")
    file.chmod(0o600)
    assert passphrase(file, is_needed=False) == "four random words here"
    file.chmod(0o640)
    with pytest.raises(UsageError, match="can be read by others; make it yours alone: chmod 600"):
        passphrase(file, is_needed=True)
    with pytest.raises(UsageError, match="cannot be read"):
        passphrase(tmp_path / "none", is_needed=True)
    monkeypatch.setenv("ROOFBENCH_PASSPHRASE", "short")
    with pytest.raises(UsageError, match="has 5 characters; give at least 12"):
        passphrase(None, is_needed=True)


def test_the_server_learns_a_digest_and_neither_it_nor_the_command_line_the_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFBENCH_PASSPHRASE", "four random words")
    spy = "import os, sys; sys.exit('four random words' in str((os.environ, sys.argv)) or not os.environ['" + VARIABLE + "'])"
    assert serve([sys.executable, "-c", spy], {VARIABLE: sealed("four random words")}) == 0


@pytest.mark.parametrize("name", ["a b", "http://x", "x/y", "-x", ""])
def test_a_host_is_a_name(name: str) -> None:
    refuse_hosts(["bench.example.org", "*.example.org"])
    with pytest.raises(UsageError, match="is no name of a server"):
        refuse_hosts([name])


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(RoofbenchError, match=rf"^port {port} on 127\.0\.0\.1 cannot be used: .*; choose another --port$"):
            refuse_port("127.0.0.1", port)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_ports_have_a_range(port: int) -> None:
    with pytest.raises(UsageError, match="is not between 1 and 65535"):
        refuse_port("127.0.0.1", port)


def test_the_server_listens_where_it_was_told_and_reports_to_nobody() -> None:
    words = command("127.0.0.1", 8600, ["a.db", "b c.db"], browser=False, hosts=["bench.example.org"])
    options = dict(zip(words[5::2], words[6::2], strict=False))
    hosts = [value for name, value in pairwise(words) if name == "--server.allowedHosts"]
    assert words[1:4] == ["-m", "streamlit", "run"]
    assert words[4].endswith("dashboard/app.py")
    assert (options["--server.address"], options["--server.port"]) == ("127.0.0.1", "8600")
    assert (options["--browser.gatherUsageStats"], options["--server.headless"]) == ("false", "true")
    assert (options["--server.maxUploadSize"], options["--client.showErrorDetails"]) == ("0", "none")
    assert hosts == ["127.0.0.1", "localhost", "::1", "bench.example.org"]
    assert words[-3:] == ["--", "a.db", "b c.db"]


def test_a_server_for_others_answers_to_any_name_but_where_names_are_given() -> None:
    assert "--server.allowedHosts" not in command("10.0.0.5", 8600, ["a.db"], browser=False)
    words = command("10.0.0.5", 8600, ["a.db"], browser=False, hosts=["bench.example.org"])
    assert words[words.index("--server.allowedHosts") + 1] == "bench.example.org"


OBEDIENT = "import signal, time; open('up', 'w').close(); time.sleep(600)"
DEAF = (
    "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]; "
    "open('up', 'w').close(); time.sleep(600)"
)
SERVE = """
import os, sys
from suite.commands import dashboard
dashboard.GRACE_S = 0.3
word = sys.argv[1]
sys.exit(dashboard.serve([sys.executable, "-c", f"import os; open('pid', 'w').write(str(os.getpid())); {word}"]))
"""


def gone(pid: int) -> bool:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent death signal is Linux's")
@pytest.mark.parametrize("server", [OBEDIENT, DEAF], ids=["obedient", "deaf"])
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_server_ends_with_the_command_whatever_ends_that(
    number: signal.Signals, status: int, server: str, tmp_path: Path
) -> None:
    """Only the command itself is told; no terminal tells the server."""
    with subprocess.Popen([sys.executable, "-c", SERVE, server], cwd=tmp_path) as command_of_ours:
        until = time.monotonic() + PATIENCE_S
        while not (tmp_path / "up").exists():
            assert time.monotonic() < until
            assert command_of_ours.poll() is None
            time.sleep(0.02)
        os.kill(command_of_ours.pid, number)
        assert command_of_ours.wait(timeout=PATIENCE_S) == status
    assert gone(int((tmp_path / "pid").read_text()))


def test_stores_are_named_by_place_or_as_other_commands_name_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    first.touch()
    second.touch()
    served: list[list[str]] = []
    monkeypatch.setattr(dashboard, "refuse_port", lambda *_: None)  # another server may be on it
    monkeypatch.setattr(dashboard, "serve", lambda words, _more: served.append(words) or 0)
    parser = argparse.ArgumentParser()
    dashboard.arguments(parser)
    assert dashboard.run(parser.parse_args([str(first), "--store", str(second)])) == 0
    assert [word for word in served[0] if word.endswith(".db")] == [str(first), str(second)]
    with pytest.raises(UsageError, match=r"no store at .*c\.db"):
        dashboard.run(parser.parse_args(["--store", str(tmp_path / "c.db")]))


def refused(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What the command says instead of serving."""
    monkeypatch.setattr(dashboard, "serve", lambda *_: pytest.fail("it was served"))
    monkeypatch.setattr(dashboard, "refuse_port", lambda *_: None)
    parser = argparse.ArgumentParser()
    dashboard.arguments(parser)
    with pytest.raises(RoofbenchError) as said:
        dashboard.run(parser.parse_args(arguments))
    return str(said.value)


def test_a_store_that_the_page_would_refuse_is_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        run.finish("complete")
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create view v as select 1")
    said = refused(monkeypatch, str(path))
    assert said == (
        f"store {path} has 1 views, triggers or virtual tables, which no store of roofbench has: ask for another copy of it"
    )
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update run set started_at = 'yesterday'")
    assert refused(monkeypatch, str(path)).startswith(f"{path} is damaged: ")
    path.write_bytes(whole[: len(whole) // 4])
    assert "is damaged" in refused(monkeypatch, str(path))


def test_what_is_no_file_is_named_for_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(monkeypatch, str(tmp_path)).startswith(f"store {tmp_path} is a directory: ")
    said = refused(monkeypatch, str(tmp_path / "pipe"))
    assert said == f"store {tmp_path / 'pipe'} is not a regular file: choose another with roofbench dashboard PATH"


def test_letting_others_in_takes_an_address_that_they_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.db").touch()
    said = refused(monkeypatch, "--remote", str(tmp_path / "a.db"))
    assert said.startswith(
        "--remote lets others in, and nobody else reaches --address 127.0.0.1; give an address of this machine"
    )


def test_a_port_that_was_taken_in_the_meantime_is_said_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.db").touch()
    parser = argparse.ArgumentParser()
    dashboard.arguments(parser)
    with socket.socket() as other:

        def take(*_: object) -> int:
            other.listen()
            return 1

        other.bind(("127.0.0.1", 0))
        args = parser.parse_args([str(tmp_path / "a.db"), "--port", str(other.getsockname()[1])])
        tried = dashboard.refuse_port
        looks: list[int] = []

        def look(address: str, port: int) -> None:
            looks.append(port)
            if len(looks) > 1:
                tried(address, port)

        monkeypatch.setattr(dashboard, "refuse_port", look)
        monkeypatch.setattr(dashboard, "serve", take)
        with pytest.raises(RoofbenchError, match="cannot be used: Address already in use; choose another --port"):
            dashboard.run(args)
