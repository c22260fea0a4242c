"""The dashboard's server: on this machine only, on a free port, over stores that are there."""

import socket

import pytest

from suite.commands.dashboard import command, refuse_address, refuse_port
from suite.errors import RoofbenchError, UsageError


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_is_taken(address: str) -> None:
    refuse_address(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.1", "example.org", ""])
def test_every_other_address_is_refused_with_the_remedy(address: str) -> None:
    with pytest.raises(UsageError, match=r"no login, so listen on 127\.0\.0\.1 and forward the port with ssh -L"):
        refuse_address(address)


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
    words = command("127.0.0.1", 8600, ["a.db", "b c.db"], browser=False)
    options = dict(zip(words[5::2], words[6::2], strict=False))
    assert words[1:4] == ["-m", "streamlit", "run"]
    assert words[4].endswith("dashboard/app.py")
    assert (options["--server.address"], options["--server.port"]) == ("127.0.0.1", "8600")
    assert (options["--browser.gatherUsageStats"], options["--server.headless"]) == ("false", "true")
    assert words[-3:] == ["--", "a.db", "b c.db"]
