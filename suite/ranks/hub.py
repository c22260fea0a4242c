"""Where the processes of a launch meet: rank 0's hub, which passes on what its worker's crew wants of the keepers.

    keeper -> hub   {"job": ..., "world": ..., "rank": 1, "host": ..., "local_rank": 1,
                     "cores": [...]}                                                          once
                    {"ended": birth, "status": -9}                                            its rank has ended
    crew -> hub     {"secret": ...}                                                           once
                    {"start": birth, "rank": 1, ...}   {"kill": birth}
    hub -> crew     {"ended": birth, "rank": 1, "status": -9}   {"gone": 1}                   of its ranks

What a keeper is told is passed on as it is.  When a crew is gone its ranks are killed; when the hub is gone keepers leave.
A crew that wants a rank whose keeper is gone is not answered: an answer would use up its case, and every one after it.
"""

import secrets
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

from suite.errors import RoofbenchError, UsageError
from suite.ranks.cores import usable_cores
from suite.ranks.launched import Launched
from suite.ranks.lines import Line, Lost, Said
from suite.ranks.places import Place, Places, ranks_words

PORTS = 16  # that are tried above the launcher's own
HELLO_S = 10.0
NAME = "roofbench"


def meeting_ports(port: int) -> range:
    """Where a hub may listen: the launcher itself may hold its own port."""
    return range(port + 1, min(port + 1 + PORTS, 2**16))


class _Keeper(NamedTuple):
    """A keeper's connection, where it is, and the cores that its rank may use there, by names of that host."""

    line: Line
    place: Place
    cores: frozenset[str]


class RanksMissing(RoofbenchError):
    """Some ranks of a launch have not come."""


class Hub:
    """Listens as soon as it is made; as a context manager it ends every connection.

    ``missed`` is called once, in a thread of its own, with the first rank that a crew wants and whose process is gone.
    """

    def __init__(self, launched: Launched, missed: Callable[[int], None] = lambda rank: None) -> None:
        self._launched, self._missed = launched, missed
        self._has_missed = False
        self._listening = _listen(launched)
        self._keepers: dict[int, _Keeper] = {}
        self._crew: Line | None = None
        self._changed = threading.Condition()
        self._secret = secrets.token_hex(16)
        self._lines: set[Line] = set()
        self._threads: list[threading.Thread] = []
        self._thread(self._accept)

    def wait(self, limit_s: float, host: str, tell: Callable[[str], None] = lambda line: None) -> Places:
        """Wait for every keeper; ``host`` is rank 0's name.  Raises ``RanksMissing`` after the limit."""
        world, until = self._launched.world, time.monotonic() + limit_s
        with self._changed:
            if len(self._keepers) < world - 1:
                tell(f"waiting for the other {world - 1} of {world} ranks that {self._launched.launcher} starts")
            if not self._changed.wait_for(lambda: len(self._keepers) == world - 1, max(0.0, until - time.monotonic())):
                missing = ranks_words([rank for rank in range(1, world) if rank not in self._keepers])
                raise RanksMissing(
                    f"of {world} ranks that {self._launched.launcher} starts, {missing} did not reach {self.address} within "
                    f"{limit_s:g} s (measure.deadlines.start_s); all must be given the same command"
                )
            own = Place(host, self.address, self._launched.local_rank)
            others = [self._keepers[rank] for rank in range(1, world)]
            cores = _cores_of_hosts([(host, usable_cores()), *((kept.place.host, kept.cores) for kept in others)])
            places = (place._replace(cores=len(cores[place.host])) for place in (own, *(kept.place for kept in others)))
            return Places(self._launched.launcher, self.address, self.port, self._secret, tuple(places))

    @property
    def address(self) -> str:
        return str(self._listening.getsockname()[0])

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # ends the waiting of the thread that accepts
        self._listening.close()
        with self._changed:
            keepers, every = [kept.line for kept in self._keepers.values()], list(self._lines)
        for line in keepers:
            with suppress(Lost):
                line.send({"leave": True})
        for line in every:
            line.close()
        for thread in self._threads:
            thread.join(HELLO_S)

    def _thread(self, target: Callable[..., None], *given: Line | int) -> None:
        thread = threading.Thread(target=target, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listening.accept()
            except OSError:  # closed
                return
            self._thread(self._serve, Line(connected))

    def _serve(self, line: Line) -> None:
        with self._changed:
            self._lines.add(line)
        try:
            line.limit(HELLO_S)
            hello = line.receive()
            line.limit(None)
            if secrets.compare_digest(str(hello.get("secret", "")).encode(), self._secret.encode()):
                self._serve_crew(line)
            elif self._greet(line, hello):
                self._serve_keeper(line, int(hello["rank"]))
        except Lost:
            pass
        finally:
            line.close()
            with self._changed:
                self._lines.discard(line)

    def _greet(self, line: Line, hello: Said) -> bool:
        """Answer a keeper of this very launch; anybody else is sent away."""
        rank, launched = hello.get("rank"), self._launched
        same = (hello.get("job"), hello.get("world")) == (launched.job, launched.world)
        if (
            not same
            or not isinstance(rank, int)
            or not 0 < rank < launched.world
            or not isinstance(hello.get("local_rank"), int)
        ):
            return False
        place = Place(str(hello.get("host")), line.other_address, hello["local_rank"])
        cores = hello.get("cores")
        cores = cores if isinstance(cores, list) else []
        with self._changed:
            if rank in self._keepers:
                return False
            line.send({"hub": NAME, "job": launched.job})
            self._keepers[rank] = _Keeper(line, place, frozenset(map(str, cores)))
            self._changed.notify_all()
        return True

    def _serve_keeper(self, line: Line, rank: int) -> None:
        try:
            while True:
                said = line.receive()
                if "ended" in said:
                    self._tell_crew({"ended": said["ended"], "rank": rank, "status": said.get("status")})
        finally:
            with self._changed:
                del self._keepers[rank]
            self._tell_crew({"gone": rank})

    def _serve_crew(self, line: Line) -> None:
        """One crew at a time: the one before is a dead worker's, whose end may not have been seen yet."""
        with self._changed:
            before, self._crew = self._crew, line
        if before is not None:
            before.close()
        mine: dict[int, int] = {}
        try:
            while True:
                said = line.receive()
                rank = int(said.get("rank", 0))
                if "start" in said:
                    mine[rank] = said["start"]
                if not self._tell_keeper(rank, said):
                    self._miss(rank, line, said)
        finally:
            for rank, birth in mine.items():
                self._tell_keeper(rank, {"kill": birth, "rank": rank})
            with self._changed:
                if self._crew is line:
                    self._crew = None

    def _miss(self, rank: int, crew: Line, said: Said) -> None:
        if "start" not in said:
            crew.send({"gone": rank})
            return
        with self._changed:
            is_first, self._has_missed = not self._has_missed, True
        if is_first:
            self._thread(self._missed, rank)

    def _tell_crew(self, said: Said) -> None:
        with self._changed:
            crew = self._crew
        if crew is not None:
            with suppress(Lost):
                crew.send(said)

    def _tell_keeper(self, rank: int, said: Said) -> bool:
        with self._changed:
            found = self._keepers.get(rank)
        if found is None:
            return False
        try:
            found.line.send(said)
        except Lost:
            return False
        return True


def _cores_of_hosts(told: Iterable[tuple[str, frozenset[str]]]) -> dict[str, set[str]]:
    """The cores of each host that its ranks may use together: a launcher may have bound each to its own."""
    found: dict[str, set[str]] = defaultdict(set)
    for host, cores in told:
        found[host] |= cores
    return found


def _listen(launched: Launched) -> socket.socket:
    """On rank 0's own address only, which is the one that the others are told."""
    try:
        family, _, _, _, resolved = socket.getaddrinfo(launched.address, 0, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise UsageError(f"MASTER_ADDR={launched.address} cannot be resolved ({error}); set it to rank 0's host") from error
    address = str(resolved[0])
    for port in meeting_ports(launched.port):
        try:
            return socket.create_server((address, port), family=family, backlog=launched.world)
        except OSError as error:
            failed = error
    raise UsageError(
        f"rank 0 cannot listen on {launched.address} above port {launched.port} ({failed.strerror}); MASTER_ADDR must be an "
        "address of rank 0's host, and a port of the next 16 free"
    )
