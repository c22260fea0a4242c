"""The ranks of one world: children of the worker, started together, told together, and given up together."""

import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import torch.distributed as dist

from backends.failures import Classified
from backends.torch.collective.naming import Names, order_words
from backends.torch.collective.orders import Broke, CloseGroup, Discard, Leave, Make, OpenGroup, Order, Waits
from backends.torch.collective.starting import Handle, JoinedRanks, OwnRanks, Started, Starter, World
from backends.torch.collective.watch import SILENCE_S, Watch
from suite.backend import Failure
from suite.collectives.log.reader import DebugLog
from suite.jobs.collective import Task
from suite.oom_kills import oom_kill_count
from suite.outcome import Outcome
from suite.ranks.ending import ended
from suite.ranks.keeper import RANK_MODULE
from suite.ranks.places import Place, Places

GRACE_S = 2.0  # between what the others notice of a rank's death and the end of its process
LEAVE_S = 5.0
LOOK_EVERY_S = 0.02
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
    the worker's process group; those that others have answered without, or wait for, are named in the worker's log before that.
    """

    def __init__(self, world: World, module: str = RANK_MODULE) -> None:
        self.world = world
        self._count = 0
        self._groups: dict[Environment, Group] = {}
        self._logs: dict[Environment, DebugLog] = {}  # of groups that are closed too
        self._tasks: dict[int, Task] = {}
        self._oom_kills = oom_kill_count()
        self._starter = _starter(world)
        self._store = _store(self._starter.host)
        self._ranks: list[Started] = []
        try:
            self._ranks = self._starter.start(world, self._store.port, module)
        except BaseException:
            self._starter.close()
            raise
        self._names = Names([rank.handle.pid for rank in self._ranks], _places(world))

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the ranks that are children of this process."""
        return tuple(rank.handle.pid for rank in self._ranks if rank.handle.pid)

    @property
    def alive(self) -> bool:
        """Whether it can be told anything."""
        return bool(self._ranks)

    @property
    def lost(self) -> str:
        """Which rank has ended while nobody asked anything, and how; empty where none has."""
        ends = ((number, rank.handle.poll()) for number, rank in enumerate(self._ranks))
        return next((f"{self._names.of([number])} {how}" for number, how in ends if how is not None), "")

    def number(self) -> int:
        """A number that no other collective or group of this crew has."""
        self._count += 1
        return self._count

    def group(self, backend: str, environment: Environment) -> Group:
        """A process group that was made with these variables: the one that is there, or a new one in place of unused ones."""
        if environment not in self._groups:
            self._close_unused()
            number = self.number()
            log = self._logs[environment] = self.ask(OpenGroup(number, backend, dict(environment)))[0]
            self._groups[environment] = Group(number, environment, log)
        return self._groups[environment]

    def log(self, backend: str, environment: Environment) -> DebugLog:
        """What the library logged when such a group was made, which is done for that where there has been none."""
        if environment not in self._logs:
            self.group(backend, environment)
        return self._logs[environment]

    def ask(self, order: Order) -> list[Any]:
        """Have every rank carry out ``order``; return what each answers, in their order."""
        assert self._ranks, "this crew was given up"
        asked = self._noted(order)
        for number, (_, connection) in enumerate(self._ranks):
            try:
                connection.send(order)
            except ConnectionError:
                self._give_up(number, None, asked)
        return self._answers(asked)

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

    def _noted(self, order: Order) -> str:
        """What an order is called where it is the last thing that a rank was told."""
        if isinstance(order, Make):
            self._tasks[order.ticket] = order.task
        asked = order_words(order, self._tasks)
        if isinstance(order, Discard):
            self._tasks.pop(order.ticket, None)
        return asked

    def _answers(self, asked: str) -> list[Any]:
        """Wait for all: whoever fails first ends it, as the others may be waiting for that rank."""
        values: dict[int, Any] = {}
        watch = Watch([rank.handle for rank in self._ranks], asked, self._names.of)
        numbers = {connection: number for number, (_, connection) in enumerate(self._ranks)}
        silent_since = time.monotonic()
        while len(values) < len(self._ranks):
            waiting = [connection for connection, number in numbers.items() if number not in values]
            for connection in wait(waiting, max(0.0, silent_since + SILENCE_S - time.monotonic())):
                assert isinstance(connection, Connection)
                number = numbers[connection]
                answer = self._received(connection)
                if isinstance(answer, Waits):
                    watch.heard(number, answer)
                    continue
                if answer is None or isinstance(answer, Broke):
                    self._give_up(number, answer, asked)
                values[number] = answer.value
                silent_since = time.monotonic()
            if len(values) < len(self._ranks) and time.monotonic() >= silent_since + SILENCE_S:
                silent_since = time.monotonic()
                if stopped := watch.look(values):
                    self.kill()
                    raise Classified(Failure(Outcome.TIMEOUT, stopped, fatal=False))
        return [values[number] for number in range(len(self._ranks))]

    @staticmethod
    def _received(connection: Connection) -> Any:
        try:
            return connection.recv()
        except (EOFError, ConnectionError):
            return None

    def _give_up(self, number: int, broke: Broke | None, asked: str) -> None:
        """Kill all and say what it was: a rank's death rather than what another noticed of it."""
        dead = _first_dead([rank.handle for rank in self._ranks], number if broke is None else None)
        self.kill()
        if dead is not None:
            raise Classified(self._lost(*dead, asked))
        assert broke is not None, "a rank whose connection is closed has ended"
        ranks = self.world.ranks
        raise Classified(Failure(broke.outcome, f"rank {number} of {ranks}: {broke.reason}", fatal=False))

    def _lost(self, number: int, how: str, asked: str) -> Failure:
        """A rank's death, by the kernel where that has killed for want of memory since these ranks were started here."""
        reason = f"{self._names.of([number])} {how} before it answered {asked}"
        if how == ended(-signal.SIGKILL) and self._is_here(number) and oom_kill_count() > self._oom_kills:
            return Failure(Outcome.OUT_OF_MEMORY, f"{reason}: the kernel killed it for lack of host memory", fatal=False)
        return Failure(Outcome.CRASHED, reason, fatal=False)

    def _is_here(self, number: int) -> bool:
        places = _places(self.world)
        return not places or places[number].host == places[0].host


def _starter(world: World) -> Starter:
    if not world.joined:
        return OwnRanks()
    places = Places.told()
    assert places is not None, "such a case is refused where there is no launcher"
    return JoinedRanks(places)


def _places(world: World) -> tuple[Place, ...]:
    """Where the ranks of a launcher are; empty for children of this process."""
    places = Places.told() if world.joined else None
    return () if places is None else places.ranks[: world.ranks]


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
