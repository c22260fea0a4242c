"""The ranks of one world: children of the worker, started together, told together, and given up together."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from backends.failures import Classified
from backends.torch.collective.forced import start_environment
from backends.torch.collective.orders import Broke, CloseGroup, Leave, OpenGroup, Order
from backends.torch.collective.rank import HOST
from suite.backend import Failure
from suite.collectives.log.reader import DebugLog
from suite.collectives.transport import Transport
from suite.outcome import Outcome

RANK_MODULE = "backends.torch.collective.rank"
GRACE_S = 2.0  # between what the others notice of a rank's death and the end of its process
LEAVE_S = 5.0
Environment = tuple[tuple[str, str | None], ...]


class World(NamedTuple):
    """How many ranks, over what, and the device of each as torch names it."""

    transport: Transport
    devices: tuple[str, ...]

    @property
    def ranks(self) -> int:
        return len(self.devices)


@dataclass(slots=True)
class Group:
    """A process group of all ranks, with the library's log of its making; ``users`` are the collectives that are made on it."""

    number: int
    environment: Environment
    log: DebugLog
    users: int = 0


class Crew:
    """``ask`` raises ``Classified`` when a rank dies or raises: then the others may wait for it for ever, and all are killed.

    A rank that hangs is left to the deadline of the phase, which kills the worker's process group.
    """

    def __init__(self, world: World, module: str = RANK_MODULE) -> None:
        self.world = world
        self._count = 0
        self._groups: dict[Environment, Group] = {}
        self._store = _store()
        self._ranks = [self._start(rank, module) for rank in range(world.ranks)]

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process, _ in self._ranks)

    @property
    def alive(self) -> bool:
        """Whether it can be told anything."""
        return bool(self._ranks)

    def number(self) -> int:
        """A number that no other collective or group of this crew has."""
        self._count += 1
        return self._count

    def group(self, backend: str, environment: Environment) -> Group:
        """A process group that was made with these variables: the one that is there, or a new one in place of unused ones."""
        if environment not in self._groups:
            self._close_unused()
            number = self.number()
            log = self.ask(OpenGroup(number, backend, dict(environment)))[0]
            self._groups[environment] = Group(number, environment, log)
        return self._groups[environment]

    def ask(self, order: Order) -> list[Any]:
        """Have every rank carry out ``order``; return what each answers, in their order."""
        assert self._ranks, "this crew was given up"
        for number, (_, connection) in enumerate(self._ranks):
            try:
                connection.send(order)
            except ConnectionError:
                self._give_up(number, None)
        return self._answers()

    def close(self) -> None:
        """Let the ranks leave, and kill those that do not."""
        for _, connection in self._ranks:
            try:
                connection.send(Leave())
            except ConnectionError:
                continue
        until = time.monotonic() + LEAVE_S
        for process, _ in self._ranks:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                break
        self.kill()

    def kill(self) -> None:
        """Kill every rank."""
        for process, connection in self._ranks:
            process.kill()
            process.wait()
            connection.close()
        self._ranks = []
        self._groups.clear()

    def _close_unused(self) -> None:
        """Destroy groups that nothing is made on: communicators hold memory of the device."""
        for environment, group in list(self._groups.items()):
            if not group.users:
                del self._groups[environment]
                self.ask(CloseGroup(group.number))

    def _start(self, rank: int, module: str) -> tuple["subprocess.Popen[bytes]", Connection]:
        ours, theirs = socket.socketpair()
        told = {"fd": theirs.fileno(), "parent": os.getpid(), "rank": rank, "ranks": self.world.ranks}
        told |= {"port": self._store.port, "threads": max(1, torch.get_num_threads() // self.world.ranks)}
        command = [sys.executable, "-m", module, "--device", self.world.devices[rank]]
        command += [word for name, value in told.items() for word in (f"--{name}", str(value))]
        with theirs:
            process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={**os.environ, **start_environment(self.world.transport, rank)},
            )
        return process, Connection(ours.detach())

    def _answers(self) -> list[Any]:
        """Wait for all: whoever fails first ends it, as the others may be waiting for that rank."""
        values: dict[int, Any] = {}
        numbers = {connection: number for number, (_, connection) in enumerate(self._ranks)}
        while len(values) < len(self._ranks):
            waiting = [connection for connection, number in numbers.items() if number not in values]
            for connection in wait(waiting):
                assert isinstance(connection, Connection)
                number = numbers[connection]
                try:
                    answer = connection.recv()
                except (EOFError, ConnectionError):
                    answer = None
                if answer is None or isinstance(answer, Broke):
                    self._give_up(number, answer)
                values[number] = answer.value
        return [values[number] for number in range(len(self._ranks))]

    def _give_up(self, number: int, broke: Broke | None) -> None:
        """Kill all and say what it was: a rank's death rather than what another noticed of it."""
        dead = _first_dead([process for process, _ in self._ranks], number if broke is None else None)
        ranks = self.world.ranks
        self.kill()
        if dead is not None:
            raise Classified(Failure(Outcome.CRASHED, f"rank {dead[0]} of {ranks} {_ended(dead[1])}", fatal=False))
        assert broke is not None, "a rank whose connection is closed has ended"
        raise Classified(Failure(broke.outcome, f"rank {number} of {ranks}: {broke.reason}", fatal=False))


def _store() -> dist.TCPStore:
    """Where the ranks meet.  Left to itself it listens on every interface, to whoever asks."""
    listening = socket.create_server((HOST, 0))
    port = listening.getsockname()[1]
    descriptor = listening.detach()  # the store's from here on
    return dist.TCPStore(HOST, port, is_master=True, wait_for_workers=False, master_listen_fd=descriptor, use_libuv=True)


def _first_dead(processes: Sequence["subprocess.Popen[bytes]"], known: int | None) -> tuple[int, int] | None:
    """The number and status of a rank that has ended, or ends within the grace; ``known`` has closed its connection."""
    until = time.monotonic() + GRACE_S
    while time.monotonic() < until:
        for number, process in enumerate(processes):
            status = process.poll()
            if status is not None:
                return number, status
        time.sleep(0.02)
    if known is None:
        return None
    processes[known].kill()
    return known, processes[known].wait()


def _ended(status: int) -> str:
    if status < 0:
        return f"died with {signal.Signals(-status).name}"
    return f"left with status {status}"
