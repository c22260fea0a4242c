"""A device slot's worker: started, asked, and started again when it dies."""

import itertools
from collections.abc import Callable

from suite.backend import DeviceInfo
from suite.events import WorkerRestarted
from suite.launcher.death import Death
from suite.launcher.happenings import Happening, WorkerLog
from suite.launcher.process import Birth, WorkerLost, WorkerProcess, WorkerRefused
from suite.outcome import Outcome
from suite.planned import PlannedCase
from suite.protocol import CaseReply, CaseRequest, Failed, Ready

START_TRIES = 3


class CannotStart(Exception):
    """No worker can be started for this slot; ``death`` is what becomes of its cases."""

    def __init__(self, death: Death) -> None:
        super().__init__(death.reason)
        self.death = death


class Seat:
    """One slot, served by one worker at a time."""

    def __init__(self, birth: Birth, tell: Callable[[Happening], None]) -> None:
        self._birth = birth
        self._tell = tell
        self._count = itertools.count()
        self._tickets = itertools.count()
        self._process: WorkerProcess | None = None
        self._ready: Ready | None = None
        self._dead: Death | None = None

    @property
    def slot(self) -> int:
        return self._birth.slot.slot

    def ticket(self) -> int:
        """Return a number that no other case on this seat has, so that no answer can be taken for another case's."""
        return next(self._tickets)

    def spawn(self) -> None:
        """Start a worker without waiting for it, so that several load their frameworks at the same time."""
        mark = f"{self._birth.mark}.{self.slot}.{next(self._count)}"
        self._process = WorkerProcess(self._birth._replace(mark=mark))

    def ready(self) -> Ready:
        """Return what the present worker said when it was ready, starting one if need be.

        Raises ``CannotStart`` after ``START_TRIES`` tries in a row, or at once when the worker says that it cannot
        serve; from then on every call does.
        """
        if self._ready is not None:
            return self._ready
        tries = 0
        while self._dead is None:
            if self._process is None:
                self.spawn()
            tries += 1
            ready = self._started(tries)
            if ready is not None:
                self._ready = ready
                return ready
        raise CannotStart(self._dead)

    def ask(self, request: CaseRequest, phase: str, planned: PlannedCase, announce: Callable[[str], None]) -> CaseReply:
        """Ask the present worker; a fatal answer or ``WorkerLost`` empties the seat."""
        assert self._process is not None, "ready() comes first"
        try:
            answer = self._process.ask(request, phase, planned, announce)
        except WorkerLost as lost:
            self._emptied(lost.death.reason)
            raise
        if isinstance(answer, Failed) and answer.fatal:
            self._process.stop()
            self._emptied(answer.reason)
        return answer

    @property
    def occupied(self) -> bool:
        """Whether a worker is there that has not been lost."""
        return self._process is not None

    def close(self) -> None:
        """Let the worker leave, and hand over its log."""
        if self._process is not None:
            self._process.stop()
            self._forget()

    def kill(self) -> None:
        """Kill the worker from another thread; whoever waits for it sees it lost."""
        process = self._process
        if process is not None:
            process.kill()

    def _started(self, tries: int) -> Ready | None:
        """Wait for the worker; on failure empty the seat, and give the slot up when there is no use in trying again."""
        assert self._process is not None
        try:
            ready = self._process.ready()
        except WorkerLost as lost:
            self._forget()
            death = lost.death
            if isinstance(lost, WorkerRefused):
                self._dead = death
            elif tries >= START_TRIES:
                self._dead = Death(death.outcome, f"worker could not be started {tries} times: {death.reason}")
            return None
        return self._checked(ready)

    def _checked(self, ready: Ready) -> Ready | None:
        """Refuse a device that is not the planned one: device numbers can change under a running sweep."""
        planned = self._birth.slot.info
        if planned is None or planned.uid == ready.device.uid:
            return ready
        self.close()
        self._dead = Death(
            Outcome.ERROR,
            f"{planned.backend} device {planned.index} is now {_identity(ready.device)}, not {_identity(planned)} as planned: "
            "it was exchanged or partitioned anew; start again",
        )
        return None

    def _emptied(self, reason: str) -> None:
        self._forget()
        self._tell(WorkerRestarted(self.slot, reason))

    def _forget(self) -> None:
        assert self._process is not None
        self._tell(WorkerLog(self.slot, self._process.log))
        self._process.close()
        self._process = self._ready = None


def _identity(device: DeviceInfo) -> str:
    """What tells two devices of one index apart: partition and chip, where the names are the same."""
    return f"{device.name} ({', '.join(filter(None, (device.partition, device.uid)))})"
