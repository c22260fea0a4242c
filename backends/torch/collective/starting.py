"""How a crew comes by its ranks: children of its own, or children of the processes that a launcher started."""

import os
import secrets
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple, Protocol

import psutil
import torch

from backends.failures import Classified
from backends.torch.collective.forced import start_environment
from backends.torch.collective.meeting import HOST, REACH_S, greeted
from backends.torch.collective.safe_pickle import NetworkConnection
from suite.backend import Failure
from suite.collectives.transport import Transport
from suite.killing import end
from suite.outcome import Outcome
from suite.ranks.ending import ended
from suite.ranks.keeper import interface_environment
from suite.ranks.lines import Line, Lost, Said
from suite.ranks.places import RECORD_VARIABLE, Places

LOOK_EVERY_S = 0.2


class World(NamedTuple):
    """How many ranks, over what, the device of each as torch names it, and whether a launcher started them."""

    transport: Transport
    devices: tuple[str, ...]
    joined: bool = False

    @property
    def ranks(self) -> int:
        return len(self.devices)


class Handle(Protocol):
    """A rank's process.  ``poll`` says how it ended, in words; ``None`` while it lives.

    ``is_stopped`` says whether a signal has stopped it, as far as this process can see.
    """

    pid: int

    def poll(self) -> str | None: ...

    def is_stopped(self) -> bool: ...

    def kill(self) -> None: ...


class Started(NamedTuple):
    """A rank and the connection over which it is told."""

    handle: Handle
    connection: Connection


class Starter(Protocol):
    """``host`` is where the ranks meet."""

    host: str

    def start(self, world: World, port: int, module: str) -> list[Started]: ...

    def close(self) -> None: ...


class Child:
    """A rank that is a child of this process."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen
        self.pid = popen.pid

    def poll(self) -> str | None:
        status = self._popen.poll()
        return None if status is None else ended(status)

    def is_stopped(self) -> bool:
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
        except psutil.Error:  # it is gone
            return False

    def kill(self) -> None:
        end(self._popen)


class OwnRanks:
    """All ranks are children of this process, and meet on the loopback."""

    host = HOST

    def start(self, world: World, port: int, module: str) -> list[Started]:
        threads = max(1, torch.get_num_threads() // world.ranks)
        told = {"ranks": world.ranks, "port": port, "threads": threads, "host": self.host}
        return [
            child({**told, "rank": rank, "device": world.devices[rank]}, start_environment(world.transport, rank), module)
            for rank in range(world.ranks)
        ]

    def close(self) -> None:
        """Nothing is held."""


class JoinedRanks:
    """Rank 0 is a child of this process, the others are started by their keepers and connect to it."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.host = places.address
        self._line = Line.to(places.address, places.port, REACH_S)
        self._line.limit(None)
        self._line.send({"secret": places.secret})
        self._endings: dict[int, str] = {}  # by birth
        self._gone: set[int] = set()
        self._births: dict[int, int] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, world: World, port: int, module: str) -> list[Started]:
        """Every rank of ``world``, each connected; raises ``Classified`` where one ends instead."""
        key = secrets.token_hex(16)
        with socket.create_server((self.host, 0)) as meeting:
            told = {"ranks": world.ranks, "port": port, "host": self.host, "key": key, "meet": meeting.getsockname()[1]}
            for rank in range(1, world.ranks):
                self._births[rank] = secrets.randbits(48)
                environment = start_environment(world.transport, rank, joined=True)
                also = {"rank": rank, "device": world.devices[rank], "threads": self._threads(rank), "environment": environment}
                self._line.send({"start": self._births[rank], **told, **also})
            first = self._first(world, port, module)
            try:
                found = self._meet(meeting, world.ranks, key)
            except BaseException:
                first.handle.kill()
                raise
        return [first, *(Started(_Kept(self, rank), found[rank]) for rank in range(1, world.ranks))]

    def close(self) -> None:
        """The hub has the keepers kill what is left."""
        self._line.close()

    def ending(self, rank: int) -> str | None:
        """How a rank ended, in words; ``None`` while it lives."""
        if rank in self._gone:
            return "is gone with the process that kept it"
        return self._endings.get(self._births[rank])

    def kill(self, rank: int) -> None:
        """Have its keeper kill a rank."""
        with suppress(Lost):
            self._line.send({"kill": self._births[rank], "rank": rank})

    def _first(self, world: World, port: int, module: str) -> Started:
        told = {"ranks": world.ranks, "port": port, "host": self.host, "threads": self._threads(0), "rank": 0}
        told |= {"device": world.devices[0]}
        if RECORD_VARIABLE in os.environ:
            told |= {"record": os.environ[RECORD_VARIABLE]}
        environment = {**start_environment(world.transport, 0, joined=True), **interface_environment(self.host)}
        return child(told, environment, module)

    def _threads(self, rank: int) -> int:
        threads: int = torch.get_num_threads()
        return max(1, threads // self._places.beside(rank))

    def _meet(self, meeting: socket.socket, ranks: int, key: str) -> dict[int, Connection]:
        """Wait for the ranks; the deadline of the phase ends it where one hangs."""
        found: dict[int, Connection] = {}
        meeting.settimeout(LOOK_EVERY_S)
        while len(found) < ranks - 1:
            for rank in range(1, ranks):
                if how := self.ending(rank):
                    raise Classified(Failure(Outcome.CRASHED, f"rank {rank} of {ranks} {how} before it was there", fatal=False))
            try:
                connected, _ = meeting.accept()
            except TimeoutError:
                continue
            who = greeted(connected, key)
            if who is not None and 0 < who < ranks and who not in found:
                found[who] = NetworkConnection(connected.detach())
            else:
                connected.close()
        return found

    def _listen(self) -> None:
        with suppress(Lost):
            while True:
                self._note(self._line.receive())

    def _note(self, said: Said) -> None:
        if "gone" in said:
            self._gone.add(int(said["gone"]))
        elif "ended" in said:
            status = said.get("status")
            self._endings[int(said["ended"])] = ended(status if isinstance(status, int) else None)


class _Kept:
    """A rank that another process keeps."""

    pid = 0

    def __init__(self, ranks: JoinedRanks, rank: int) -> None:
        self._ranks, self._rank = ranks, rank

    def poll(self) -> str | None:
        return self._ranks.ending(self._rank)

    def is_stopped(self) -> bool:
        """Its keeper sees no more than its end."""
        return False

    def kill(self) -> None:
        self._ranks.kill(self._rank)


def child(told: dict[str, object], environment: dict[str, str], module: str) -> Started:
    """Start a rank of this process's own, told over a socket pair."""
    ours, theirs = socket.socketpair()
    words = {**told, "fd": theirs.fileno(), "parent": os.getpid()}
    command = [sys.executable, "-m", module, *(f"--{name}={value}" for name, value in words.items())]
    with theirs:
        popen = subprocess.Popen(
            command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, env={**os.environ, **environment}
        )
    return Started(Child(popen), Connection(ours.detach()))
