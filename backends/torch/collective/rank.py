"""A rank: ``python -m backends.torch.collective.rank``, started for a crew only.

It answers orders one by one, in step with the other ranks.  Its process groups: one of gloo for barriers, which leaves no trace
in the library's log, and those that are measured.
"""

import argparse
import faulthandler
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from backends.failures import classify
from backends.host.heap import give_back
from backends.torch.collective.debug_file import DebugFile
from backends.torch.collective.meeting import greet
from backends.torch.collective.orders import (
    Broke,
    CloseGroup,
    CountWrong,
    Discard,
    Done,
    Expect,
    Fill,
    Launch,
    Leave,
    Make,
    Observe,
    OpenGroup,
    Order,
    Reset,
    Sample,
    TellChoices,
)
from backends.torch.collective.progress import Progress
from backends.torch.collective.record import RankRecord
from backends.torch.collective.share import Share
from suite.collectives.log.reader import DebugLog, read_log
from suite.ranks.keeper import RANK_MODULE
from suite.worker.lifeline import bind_to_parent, leave_no_core
from suite.worker.serve import caught

# A rank that waits for another is ended by the deadline of the case's phase, never by the library.
NEVER = timedelta(days=30)


class Rank:
    """``log_text`` gives what the library has logged since the last call; gloo logs nothing.  ``record`` is its own file."""

    def __init__(
        self, number: int, device: torch.device, log_text: Callable[[], str], record: RankRecord | None = None
    ) -> None:
        self._number, self._device, self._log_text, self._record = number, device, log_text, record
        self._groups: dict[int, Any] = {}
        self._shares: dict[int, Share] = {}
        self._library = DebugLog()
        self.enter: Callable[[int], None] = lambda _: None  # told where this rank waits for the others

    def carry_out(self, order: Order) -> Any:
        """Carry out one order, and keep what the library logged meanwhile with the share that it was for."""
        value = self._answer(order)
        share = self._shares.get(getattr(order, "ticket", -1))
        text = self._log_text()
        if share is not None and text:
            share.note(read_log(text).choices)
        if self._record is not None:
            self._keep(self._record, order, value)
        return value

    @staticmethod
    def _keep(record: RankRecord, order: Order, value: Any) -> None:
        match order:
            case Make(ticket, task):
                record.begin(ticket, task)
            case Sample(ticket):
                record.sampled(ticket, value)
            case Discard(ticket):
                record.end(ticket)

    def _answer(self, order: Order) -> Any:
        match order:
            case OpenGroup(group, backend, environment):
                return self._open(group, backend, environment)
            case CloseGroup(group):
                return dist.destroy_process_group(self._groups.pop(group))
            case Make(ticket, task, group):
                share = Share(task, self._number, self._groups[group], self._device, self._wait, dist.barrier, self.enter)
                self._shares[ticket] = share
                return share.moves
            case Discard(ticket):
                return self._discard(ticket)
            case Fill(ticket, kind, seed):
                return self._shares[ticket].fill(kind, seed)
            case Reset(ticket):
                return self._shares[ticket].reset()
            case Launch(ticket):
                return self._shares[ticket].launch()
            case Sample(ticket, iterations):
                return self._shares[ticket].sample(iterations)
            case Observe(ticket, slices, seed):
                return self._shares[ticket].observe(slices, seed)
            case Expect(ticket, slices, seed):
                return self._shares[ticket].expect(slices, seed)
            case CountWrong(ticket):
                return self._shares[ticket].count_wrong()
            case TellChoices(ticket):
                return self._shares[ticket].choices

    def _open(self, number: int, backend: str, environment: Mapping[str, str | None]) -> DebugLog:
        """A group with its communicator, which is made by the first collective: one of three bytes, which nobody measures."""
        for name, value in environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self.enter(0)
        group = dist.new_group(backend=backend, timeout=NEVER)
        dist.all_reduce(torch.zeros(3, dtype=torch.uint8, device=self._device), group=group)
        self._wait()
        self._groups[number] = group
        return self._made(read_log(self._log_text()))

    def _discard(self, ticket: int) -> None:
        self._shares.pop(ticket, None)
        give_back()  # what was freed is kept for the next case otherwise, and other processes want it
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _made(self, log: DebugLog) -> DebugLog:
        """The log of a new communicator, with what the library says of itself once only."""
        if log.version is not None:
            self._library = log
        said = self._library
        plugin = log.tuner_plugin or said.tuner_plugin
        return replace(log, library=said.library, version=said.version, build=said.build, tuner_plugin=plugin)

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def serve(connection: Connection, rank: Rank, progress: Progress) -> None:
    """Answer until the crew says ``Leave`` or is gone."""
    rank.enter = progress.enter
    with suppress(EOFError, ConnectionError):
        while not isinstance(order := connection.recv(), Leave):
            progress.begin()
            progress.answer(_answer(rank, order))


def _answer(rank: Rank, order: Order) -> Done | Broke:
    values: list[Any] = []
    failure = caught(lambda: values.append(rank.carry_out(order)), classify)
    return Broke(failure.outcome, failure.reason) if failure else Done(values[0])


def join(given: argparse.Namespace) -> torch.device:
    """Take the device and join the other ranks."""
    device = torch.device(given.device)
    if device.type == "cuda":  # a launcher may show each rank its own device only, which is then the first
        device = torch.device("cuda", (device.index or 0) % torch.cuda.device_count())
    torch.set_num_threads(given.threads)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    store = dist.TCPStore(given.host, given.port, is_master=False)
    dist.init_process_group("gloo", store=store, rank=given.rank, world_size=given.ranks, timeout=NEVER)
    return device


def main(make: Callable[[int, torch.device, Callable[[], str], RankRecord | None], Rank] = Rank) -> int:
    """Bind to the parent first, then join and serve."""
    given = _arguments()
    bind_to_parent(given.parent)
    leave_no_core()
    faulthandler.enable()
    with ExitStack() as ending:
        log_text: Callable[[], str] = str
        if given.device.startswith("cuda"):
            log_text = ending.enter_context(closing(DebugFile())).new_text  # before NCCL is first asked for anything
        connection = _connected(given)
        record = RankRecord(given.record, given.rank) if given.record else None
        progress = ending.enter_context(Progress(connection))
        progress.begin()
        progress.enter(0)  # to join is the first thing that ranks do together
        serve(connection, make(given.rank, join(given), log_text, record), progress)
        dist.destroy_process_group()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {RANK_MODULE}")
    for name in ("parent", "rank", "ranks", "port", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    told = parser.add_mutually_exclusive_group(required=True)
    told.add_argument("--fd", type=int, help="the inherited end of the crew's socket pair")
    told.add_argument("--meet", type=int, help="the port of HOST where the crew waits for this rank")
    parser.add_argument("--host", required=True, help="where the ranks meet")
    parser.add_argument("--device", required=True)
    parser.add_argument("--record", type=Path, help="the file of this rank")
    return parser.parse_args()


def _connected(given: argparse.Namespace) -> Connection:
    if given.meet is not None:
        return greet(given.host, given.meet, given.rank)
    os.set_inheritable(given.fd, False)
    return Connection(given.fd)


if __name__ == "__main__":
    sys.exit(main())
