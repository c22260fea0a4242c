"""All devices of a run: one lane for each, side by side where they do not disturb each other."""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from suite.killing import end
from suite.launcher import reaper
from suite.launcher.death import Death
from suite.launcher.happenings import CaseEnded, Happening, Interrupted, LaneEnded, WorkerLog
from suite.launcher.lane import Lane, Seeds
from suite.launcher.process import Birth
from suite.launcher.quest import Quest
from suite.launcher.seat import Seat
from suite.planned import DeviceSlot, PlannedCase
from suite.protocol import Ready
from suite.settings import BackendSettings, MeasureSettings

REAPER_S = reaper.PATIENCE_S + 5.0  # on top of its patience what a loaded machine takes to start it and to look


class Launcher:
    """Owns every worker of a run; as a context manager it leaves none behind, however the block ends.

    ``holds`` are the descriptors of the device locks by device uid: the workers keep them open too, so that a device
    stays locked until the last of them is gone, even when the launcher was killed.
    """

    def __init__(
        self,
        slots: Sequence[DeviceSlot],
        backends: Mapping[str, BackendSettings],
        settings: MeasureSettings,
        holds: Mapping[str, int],
    ) -> None:
        # A SimpleQueue can be put to from a signal handler that interrupted its own get.
        self._queue: SimpleQueue[Happening] = SimpleQueue()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._mark = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._reaper: _Reaper | None = None
        self._rounds = settings.interleave
        births = [_birth(slot, backends[slot.backend], settings, self._mark, holds) for slot in slots]
        seats = {birth.slot.slot: Seat(birth, self._tell) for birth in births}
        self._waves = [[self._lane(seats, lane) for lane in wave] for wave in waves(slots)]

    def __enter__(self) -> Self:
        self._reaper = _Reaper(self._mark)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        assert self._reaper is not None
        try:
            self._halt()
            for lane in self._lanes:
                lane.close()
        finally:  # a signal may end the waiting: what is left is killed by its mark
            self._reaper.close()

    def start(self) -> dict[int, Ready | Death]:
        """Start a worker on every slot, side by side, and wait for them; where none can be started, say why."""
        for lane in self._lanes:
            for seat in lane.seats.values():
                seat.spawn()
        return {slot: ready for lane in self._lanes for slot, ready in lane.ready().items()}

    def run(
        self, cases: Sequence[PlannedCase], seed_of: Seeds, until: float | None = None, quests: Sequence[Quest] = ()
    ) -> Iterator[Happening]:
        """Measure the cases, go on the quests, and yield what happens, ending early once ``interrupt`` was called.

        ``seed_of`` gives a case's data seed.  No case is begun after ``until`` on the monotonic clock.  Closing the
        iterator kills the workers.
        """
        try:
            for wave in self._waves:
                errands = [partial(lane.run, cases, self._rounds, seed_of, until, quests) for lane in wave]
                self._threads = [self._thread(errand) for errand in errands]
                yield from self._until_wave_ended(len(wave))
                if self._stopping.is_set():
                    return
        finally:
            self._halt()

    def untold(self) -> Iterator[CaseEnded]:
        """The cases that had ended when ``run`` was closed, and were not yielded by it."""
        yield from (happening for happening in self._told_before_halt() if isinstance(happening, CaseEnded))

    def interrupt(self, reason: str) -> None:
        """Make ``run`` end after killing the workers.  Safe in a signal handler."""
        self._queue.put(Interrupted(reason))

    @property
    def _lanes(self) -> list[Lane]:
        return [lane for wave in self._waves for lane in wave]

    def _lane(self, seats: Mapping[int, Seat], slots: Sequence[DeviceSlot]) -> Lane:
        return Lane({slot.slot: seats[slot.slot] for slot in slots}, self._tell, self._stopping)

    @staticmethod
    def _thread(errand: Callable[[], None]) -> threading.Thread:
        # Workers that a lane starts anew die with this thread (PR_SET_PDEATHSIG counts threads), which outlives them.
        thread = threading.Thread(target=errand, daemon=True)
        thread.start()
        return thread

    def _until_wave_ended(self, running: int) -> Iterator[Happening]:
        while running:
            happening = self._queue.get()
            if isinstance(happening, LaneEnded):
                running -= 1
                if happening.error is not None:
                    raise happening.error
            elif isinstance(happening, Interrupted):
                self._halt()
                yield from self._told_before_halt()
                yield happening
                return
            else:
                yield happening

    def _told_before_halt(self) -> Iterator[Happening]:
        """Cases that ended before the workers were killed have a result like any other."""
        with contextlib.suppress(Empty):
            while True:
                happening = self._queue.get_nowait()
                if not isinstance(happening, LaneEnded | Interrupted):
                    yield happening

    def _tell(self, happening: Happening) -> None:
        """A worker that is killed because the run stops says nothing about its case."""
        if not self._stopping.is_set() or isinstance(happening, WorkerLog | LaneEnded):
            self._queue.put(happening)

    def _halt(self) -> None:
        """Kill every worker and wait for the lanes, which may be starting one at this moment."""
        self._stopping.set()
        while True:
            for lane in self._lanes:
                lane.kill()
            if not any(thread.is_alive() for thread in self._threads):
                return
            for thread in self._threads:
                thread.join(0.05)


def waves(slots: Sequence[DeviceSlot]) -> list[list[list[DeviceSlot]]]:
    """Sort slots into waves of lanes: lanes of one wave run side by side, the slots of one lane take turns.

    Slots that name the same PCI address are one physical device, whatever their backend or partition.  A device
    without one is the host itself, or cannot be told from it: it is measured while nothing else runs.
    """
    side_by_side: dict[str, list[DeviceSlot]] = {}
    alone: dict[str, list[DeviceSlot]] = {}
    for slot in slots:
        assert slot.info is not None, "a run knows its devices"
        if slot.info.pci_bus_id is not None:
            side_by_side.setdefault(slot.info.pci_bus_id, []).append(slot)
        else:
            alone.setdefault(slot.info.uid, []).append(slot)
    return [list(side_by_side.values())] * bool(side_by_side) + [[lane] for lane in alone.values()]


def _birth(slot: DeviceSlot, backend: BackendSettings, settings: MeasureSettings, mark: str, holds: Mapping[str, int]) -> Birth:
    assert slot.info is not None, "a run knows its devices"
    held = (holds[slot.info.uid],) if slot.info.uid in holds else ()
    return Birth(slot, slot.info.index, backend.options, settings, mark, held)


class _Reaper:
    """The process that kills what workers left behind once this process is gone; see ``reaper.py``."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        read_fd, self._write_fd = os.pipe()
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(reaper.__file__)), "--fd", str(read_fd), "--mark", mark],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(read_fd,),
            start_new_session=True,
        )
        os.close(read_fd)

    def close(self) -> None:
        """Have it look once more, and wait for its end; one that does not come to it is killed, and its work done here."""
        os.close(self._write_fd)
        self._popen.send_signal(signal.SIGCONT)  # somebody may have stopped it
        try:
            self._popen.wait(REAPER_S)
        except subprocess.TimeoutExpired:
            end(self._popen)
            reaper.kill_marked(self._mark)
