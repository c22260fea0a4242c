"""Rank 0's hub and the keepers of the others: who is let in, who is told what, and that no rank outlives its crew."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from suite.collectives.cores import Host
from suite.errors import UsageError
from suite.ranks.hub import Hub, RanksMissing, meeting_ports
from suite.ranks.keeper import HubNotFound, Keeper, environment, find_hub
from suite.ranks.launched import Launched
from suite.ranks.lines import Line, Lost
from suite.ranks.places import Places, ranks_words
from tests.patience import PATIENCE_S
from tests.processes.bench import gone_within

STILL = "tests.ranks.still_rank"


def launch(rank: int, world: int = 2, port: int = 0, job: str = "job") -> Launched:
    return Launched("torchrun", rank, world, rank, "127.0.0.1", port, job)


@pytest.fixture
def port() -> int:
    """One above which others are free."""
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1]) % 60_000


class Kept:
    """A keeper in a thread of this process."""

    def __init__(self, launched: Launched, record: Path) -> None:
        self.record = record
        self.left: bool | None = None
        self.keeper = Keeper(find_hub(launched, "here", PATIENCE_S), str(record), STILL)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        self.left = self.keeper.serve()

    def ended(self) -> bool:
        self._thread.join(PATIENCE_S)
        return not self._thread.is_alive()

    def told(self) -> dict[str, Any]:
        patience_ends = time.monotonic() + PATIENCE_S
        while not self.record.exists() and time.monotonic() < patience_ends:
            time.sleep(0.01)
        return dict(json.loads(self.record.read_text()))


@pytest.fixture
def hub(port: int) -> Iterator[Hub]:
    with Hub(launch(0, port=port)) as made:
        yield made


@pytest.fixture
def kept(hub: Hub, port: int, tmp_path: Path) -> Kept:
    return Kept(launch(1, port=port), tmp_path / "record")


def crew(hub: Hub, places: Places) -> Line:
    line = Line.to(hub.address, hub.port, PATIENCE_S)
    line.send({"secret": places.secret})
    return line


def start(line: Line, birth: int, **also: Any) -> None:
    said = {"start": birth, "rank": 1, "ranks": 2, "port": 5, "meet": 6, "threads": 1, "host": "127.0.0.1", "key": "secret"}
    line.send({**said, "device": "cpu", "environment": {"NCCL_ALGO": "Ring", "LD_PRELOAD": "/evil.so"}, **also})


def test_a_rank_is_started_as_the_crew_says_and_killed_when_the_crew_is_gone(hub: Hub, kept: Kept) -> None:
    places = hub.wait(PATIENCE_S, "here")
    assert [place.host for place in places.ranks] == ["here", "here"]
    assert (places.hosts, places.beside(1), places.launcher) == (1, 2, "torchrun")
    line = crew(hub, places)
    start(line, 41)
    told = kept.told()
    assert told["words"]["rank"] == "1"
    assert told["words"]["meet"] == "6"
    assert "key" not in told["words"]  # other users can read a command line
    assert told["environment"]["ROOFBENCH_KEY"] == "secret"
    assert told["environment"]["NCCL_ALGO"] == "Ring"
    assert told["environment"]["GLOO_SOCKET_IFNAME"] == "lo"
    assert told["environment"]["LD_PRELOAD"] is None  # a crew sets nothing but the libraries' own variables
    line.close()
    assert gone_within(told["pid"], PATIENCE_S)


def test_the_crew_hears_how_a_rank_ended_and_can_start_it_anew(hub: Hub, kept: Kept) -> None:
    line = crew(hub, hub.wait(PATIENCE_S, "here"))
    line.limit(PATIENCE_S)
    start(line, 41)
    first = kept.told()["pid"]
    line.send({"kill": 41, "rank": 1})
    assert line.receive() == {"ended": 41, "rank": 1, "status": -9}
    kept.record.unlink()
    start(line, 42)
    assert kept.told()["pid"] != first
    line.send({"kill": 41, "rank": 1})  # of a rank that is gone already
    start(line, 43, ranks=4, rank=1)
    assert line.receive() == {"ended": 42, "rank": 1, "status": -9}
    line.close()


def test_keepers_leave_with_the_hub(port: int, tmp_path: Path) -> None:
    with Hub(launch(0, port=port)) as hub:
        kept = Kept(launch(1, port=port), tmp_path / "record")
        hub.wait(PATIENCE_S, "here")
    assert kept.ended()
    assert kept.left is True


def test_a_keeper_that_is_gone_is_told_of_and_a_crew_that_wants_it_is_not_answered(port: int) -> None:
    """An answer would end the case, and then each that is left."""
    missed: SimpleQueue[int] = SimpleQueue()
    with (
        Hub(launch(0, port=port), missed.put) as hub,
        closing(find_hub(launch(1, port=port), "here", PATIENCE_S)) as line,
        closing(crew(hub, hub.wait(PATIENCE_S, "here"))) as crew_line,
    ):
        crew_line.limit(PATIENCE_S)
        start(crew_line, 41)
        assert line.receive()["start"] == 41
        line.close()
        assert crew_line.receive() == {"gone": 1}
        crew_line.send({"kill": 41, "rank": 1})
        assert crew_line.receive() == {"gone": 1}
        assert missed.empty(), "the case that it died in has yet to end"
        start(crew_line, 42)
        assert missed.get(timeout=PATIENCE_S) == 1
        start(crew_line, 43)
        crew_line.limit(0.2)
        with pytest.raises(Lost, match="timed out"):
            crew_line.receive()
    assert missed.empty(), "once is enough"


@pytest.mark.parametrize(
    "hello",
    [
        {"job": "another", "world": 2, "rank": 1, "local_rank": 0, "host": "x"},
        {"job": "job", "world": 3, "rank": 1, "local_rank": 0, "host": "x"},
        {"job": "job", "world": 2, "rank": 0, "local_rank": 0, "host": "x"},
        {"job": "job", "world": 2, "rank": 2, "local_rank": 0, "host": "x"},
        {"job": "job", "world": 2, "rank": "1", "local_rank": 0, "host": "x"},
        {"secret": "guessed"},
        {"secret": "gu\u00e9ss\u00e9"},
        {},
    ],
)
def test_strangers_are_sent_away(hub: Hub, hello: dict[str, Any]) -> None:
    with closing(Line.to(hub.address, hub.port, PATIENCE_S)) as line:
        line.send(hello)
        with pytest.raises(Lost):
            line.receive()


def test_a_second_process_of_one_rank_is_sent_away(hub: Hub, port: int) -> None:
    first = find_hub(launch(1, port=port), "here", PATIENCE_S)
    with pytest.raises(HubNotFound, match="rank 1 of 2 did not find rank 0"):
        find_hub(launch(1, port=port), "here", 0.3)
    first.close()


def test_a_rank_that_does_not_come_is_named(hub: Hub) -> None:
    with pytest.raises(RanksMissing, match=r"of 2 ranks that torchrun starts, rank 1 did not reach .* within 0.05 s"):
        hub.wait(0.05, "here")


def test_many_ranks_that_do_not_come_are_one_line(port: int) -> None:
    with (
        Hub(launch(0, port=port)._replace(world=1000)) as hub,
        pytest.raises(RanksMissing, match=r"starts, ranks 1 to 999 did"),
    ):
        hub.wait(0.05, "here")
    assert ranks_words(range(0, 200, 2)).endswith(", 62 and 68 more")


def test_a_hub_takes_the_next_port_where_one_is_taken(port: int) -> None:
    with Hub(launch(0, port=port)) as first, Hub(launch(0, port=port, job="another")) as second:
        assert {first.port, second.port} <= set(meeting_ports(port))
        found = find_hub(launch(1, port=port, job="another"), "here", PATIENCE_S)
        assert second.wait(PATIENCE_S, "here").port == second.port
        found.close()


def test_an_address_of_another_host_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1 above port 100"):
        Hub(Launched("torchrun", 0, 2, 0, "192.0.2.1", 100, "job"))  # an address for documentation, nobody's


@pytest.mark.parametrize("sent", [b"\xff\n", b"[1]\n", b"{\n", b"x" * 100, b""])
def test_nonsense_ends_a_line(sent: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        line = Line.to("127.0.0.1", listening.getsockname()[1], PATIENCE_S)
        with closing(line), listening.accept()[0] as other:
            other.sendall(sent)
            other.shutdown(socket.SHUT_WR)
            with pytest.raises(Lost):
                line.receive()


def test_an_interface_that_the_user_names_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "ib0")
    assert environment({"key": "k"}, "127.0.0.1")["GLOO_SOCKET_IFNAME"] == "ib0"


def test_the_hub_tells_how_many_cores_the_ranks_of_a_host_have_together(
    hub: Hub, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher may have bound each to cores of its own, or several to one."""
    bound = {1: {"0,8"}, 2: {"0,8"}, 3: {"1,9"}}
    hub._launched = launch(0, 4, port)
    lines = []
    for rank, host in ((1, "here"), (2, "there"), (3, "there")):
        monkeypatch.setattr("suite.ranks.keeper.usable_cores", lambda rank=rank: frozenset(bound[rank]))
        lines.append(find_hub(launch(rank, 4, port), host, PATIENCE_S))
    monkeypatch.setattr("suite.ranks.hub.usable_cores", lambda: frozenset({"0,8"}))
    places = hub.wait(PATIENCE_S, "here")
    assert [place.cores for place in places.ranks] == [1, 1, 2, 2]
    assert places.hosts_of(4) == (Host(2, 1), Host(2, 2))
    assert places.hosts_of(1) == (Host(1, 1),)
    for line in lines:
        line.close()
