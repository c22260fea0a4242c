"""The ranks of one world: children of the worker, started together, told together, and given up together."""

import socket
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import torch.distributed as dist

from backends.failures import Classified
from backends.torch.collective.orders import Broke, CloseGroup, Leave, OpenGroup, Order
from backends.torch.collective.starting import Handle, JoinedRanks, OwnRanks, Started, Starter, World
from suite.backend import Failure
from suite.collectives.log.reader import DebugLog
from suite.outcome import Outcome
from suite.ranks.keeper import RANK_MODULE
from suite.ranks.places import Places

GRACE_S = 2.0  # between what the others notice of a rank's death and the end of its process
LEAVE_S = 5.0
LOOK_EVERY_S = 0.02
SILENCE_S, LOOKS = 1.0, 3  # of all ranks before they are looked at, and how often in a row one is to be seen stopped
Environment = tuple[tuple[str, str | None], ...]


@dataclass(slots=True)
class Group:
    """A process group of all ranks, with the library's log of its making; ``users`` are the collectives that are made on it."""

    number: int
    environment: Environment
    log: DebugLog
    users: int = 0


class Crew:
    """``ask`` raises ``Classified`` when a rank dies or raises: then the others may wait for it for ever, and all are killed.

    One that a signal has stopped is named and ends it too.  A rank that hangs is left to the deadline of the phase, which kills
    the worker's process group; those that others have answered without are named in the worker's log before that.
    """

    def __init__(self, world: World, module: str = RANK_MODULE) -> None:
        self.world = world
        self._count = 0
        self._groups: dict[Environment, Group] = {}
        self._starter = _starter(world)
        self._store = _store(self._starter.host)
        self._ranks: list[Started] = []
        try:
            self._ranks = self._starter.start(world, self._store.port, module)
        except BaseException:
            self._starter.close()
            raise

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the ranks that are children of this process."""
        return tuple(rank.handle.pid for rank in self._ranks if rank.handle.pid)

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
        return self._answers(type(order).__name__)

    def close(self) -> None:
        """Let the ranks leave, and kill those that do not."""
        for _, connection in self._ranks:
            try:
                connection.send(Leave())
            except ConnectionError:
                continue
        until = time.monotonic() + LEAVE_S
        while time.monotonic() < until and any(rank.handle.poll() is None for rank in self._ranks):
            time.sleep(LOOK_EVERY_S)
        self.kill()

    def kill(self) -> None:
        """Kill every rank."""
        for handle, connection in self._ranks:
            handle.kill()
            connection.close()
        self._starter.close()
        self._ranks = []
        self._groups.clear()

    def _close_unused(self) -> None:
        """Destroy groups that nothing is made on: communicators hold memory of the device."""
        for environment, group in list(self._groups.items()):
            if not group.users:
                del self._groups[environment]
                self.ask(CloseGroup(group.number))

    def _answers(self, asked: str) -> list[Any]:
        """Wait for all: whoever fails first ends it, as the others may be waiting for that rank."""
        values: dict[int, Any] = {}
        watch = Watch([rank.handle for rank in self._ranks], asked)
        numbers = {connection: number for number, (_, connection) in enumerate(self._ranks)}
        while len(values) < len(self._ranks):
            waiting = [connection for connection, number in numbers.items() if number not in values]
            found = wait(waiting, SILENCE_S)
            if not found and (stopped := watch.look(values)):
                self.kill()
                raise Classified(Failure(Outcome.TIMEOUT, stopped, fatal=False))
            for connection in found:
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
        dead = _first_dead([rank.handle for rank in self._ranks], number if broke is None else None)
        ranks = self.world.ranks
        self.kill()
        if dead is not None:
            raise Classified(Failure(Outcome.CRASHED, f"rank {dead[0]} of {ranks} {dead[1]}", fatal=False))
        assert broke is not None, "a rank whose connection is closed has ended"
        raise Classified(Failure(broke.outcome, f"rank {number} of {ranks}: {broke.reason}", fatal=False))


class Watch:
    """Looks at ranks that have been silent: one that is stopped has all others wait, and none of them answers."""

    def __init__(self, handles: Sequence[Handle], asked: str) -> None:
        self._handles, self._asked = handles, asked
        self._looks: dict[int, int] = {}  # how often in a row a rank was seen stopped
        self._silences = 0

    def look(self, answered: Collection[int]) -> str:
        """Which ranks stood still, where it was seen ``LOOKS`` times in a row; empty where none did, or not yet.

        Times are no guide: whoever stops all ranks stops this process too, and continues them one by one.
        """
        silent = [number for number in range(len(self._handles)) if number not in answered]
        self._looks = {number: self._looks.get(number, 0) + 1 for number in silent if self._handles[number].is_stopped()}
        self._silences += 1
        if self._silences == LOOKS and answered:
            late_s = LOOKS * SILENCE_S
            sys.stderr.write(f"{self._named(silent)} did not answer {self._asked} within {late_s:g} s, others did\n")
            sys.stderr.flush()
        stopped = [number for number, looks in self._looks.items() if looks >= LOOKS]
        return f"{self._named(stopped)} stood still: stopped by a signal, and did not answer {self._asked}" if stopped else ""

    def _named(self, numbers: Sequence[int]) -> str:
        return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))} of {len(self._handles)}"


def _starter(world: World) -> Starter:
    if not world.joined:
        return OwnRanks()
    places = Places.told()
    assert places is not None, "such a case is refused where there is no launcher"
    return JoinedRanks(places)


def _store(host: str) -> dist.TCPStore:
    """Where the ranks meet.  Left to itself it listens on every interface, to whoever asks."""
    listening = socket.create_server((host, 0))
    port = listening.getsockname()[1]
    descriptor = listening.detach()  # the store's from here on
    return dist.TCPStore(host, port, is_master=True, wait_for_workers=False, master_listen_fd=descriptor, use_libuv=True)


def _first_dead(handles: Sequence[Handle], known: int | None) -> tuple[int, str] | None:
    """The number of a rank that has ended, or ends within the grace, and how; ``known`` has closed its connection."""
    until = time.monotonic() + GRACE_S
    while time.monotonic() < until:
        for number, handle in enumerate(handles):
            how = handle.poll()
            if how is not None:
                return number, how
        time.sleep(LOOK_EVERY_S)
    if known is None:
        return None
    handles[known].kill()
    return known, handles[known].poll() or "closed its connection"
