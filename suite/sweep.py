"""The straight line: planned cases go to the launcher; what ends is judged, summarised, committed, and told."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from suite.backend import DeviceInfo
from suite.environment import Facts, source_state, system_facts
from suite.errors import StoreWriteFailed, WorkerStartFailed
from suite.estimate import Estimate
from suite.events import CaseFinished, Event, PhaseStarted, SweepFinished, SweepStarted, WorkerRestarted
from suite.interrupts import leave, on_interrupt
from suite.jobs.calibration import CalibrationJob
from suite.launcher.death import Death
from suite.launcher.happenings import CaseEnded, Interrupted, SearchEnded, SearchTold, WorkerLog
from suite.launcher.launch import Launcher
from suite.ledger import Ledger, Place, device_row
from suite.locks import Locks, hold
from suite.measurement import Measurement
from suite.outcome import Evidence
from suite.plan import data_seed
from suite.planned import DeviceSlot, PlannedCase
from suite.plugins import used as plugins
from suite.probe import forget
from suite.protocol import Ready
from suite.rows import BaseFigures, BaseKey, Figures
from suite.search.expected import sought, still_sought
from suite.search.search import Search
from suite.search.subject import Subject
from suite.settings import RunConfig

if TYPE_CHECKING:  # SQLAlchemy is loaded by whoever opens the store
    from suite.store.writer import RunWriter, Store

Watch = Callable[[Event], None]


@dataclass(frozen=True)
class Sweep:
    """Everything that a run is.

    ``figures`` are those of stored calibrations, some of them ``disturbed``; what the run measures replaces them.  ``resume``
    is the run to go on with: its cases that have a result are left as they are, but for the calibration of the slots in
    ``recalibrate``, which was another chip's.  ``searches`` come after the cases; theirs are counted in ``planned`` before
    they are known.
    """

    config: RunConfig
    slots: tuple[DeviceSlot, ...]
    cases: tuple[PlannedCase, ...]
    searches: tuple[Subject, ...] = ()
    figures: BaseFigures = field(default_factory=dict)
    disturbed: frozenset[BaseKey] = frozenset()
    argv: Sequence[str] = ()
    overrides: Sequence[str] = ()
    resume: str | None = None
    recalibrate: frozenset[int] = frozenset()

    @property
    def planned(self) -> int:
        """How many cases will have a result, as far as is known before anything is measured."""
        return len(self.cases) + len(sought(self.searches))


@dataclass(frozen=True)
class Workers:
    """Locked devices and their workers: what a run needs before its store.  ``answers`` say how each slot's worker started."""

    locks: Locks
    launcher: Launcher
    answers: Mapping[int, Ready | Death]


@contextmanager
def started(config: RunConfig, slots: Sequence[DeviceSlot], locks: Locks) -> Iterator[Workers]:
    """Start a worker on every slot; none is left when the block ends.

    Raises ``WorkerStartFailed`` when no worker can be started at all.
    """
    with Launcher(slots, config.backends, config.measure, locks.descriptors) as launcher:
        answers = launcher.start()
        failed = {slot: answer for slot, answer in answers.items() if isinstance(answer, Death)}
        for slot in slots:
            if slot.slot in failed:  # what is remembered of that device may be why
                forget(slot.target, config.backends[slot.backend].options)
        if len(failed) == len(answers):
            raise WorkerStartFailed(next(iter(failed.values())).reason)
        yield Workers(locks, launcher, answers)


def sweep(plan: Sweep, store: "Store", watch: Watch) -> SweepFinished:
    """Measure what is planned and not yet stored, telling ``watch`` of everything.

    Raises, before a run is stored, ``DeviceBusy`` when another run holds a device and ``WorkerStartFailed`` when no worker
    can be started at all; ``StoreWriteFailed`` when the store stops taking results; ``KeyboardInterrupt`` for a signal
    before the first case.  No worker is left when this returns or raises.
    """
    with on_interrupt(leave), hold(devices(plan.slots)) as locks, started(plan.config, plan.slots, locks) as workers:
        return carry_out(plan, workers, store, watch)


def carry_out(plan: Sweep, workers: Workers, store: "Store", watch: Watch) -> SweepFinished:
    """``sweep`` with workers that were started before the store was opened, so that a run that cannot be leaves no file."""
    places = {slot.slot: device_row(slot, workers.answers[slot.slot], plan.config) for slot in plan.slots}
    with _open_run(plan, store, places, _environment(plan, workers.answers)) as writer:
        workers.locks.name(writer.run)
        ledger = Ledger(writer, places, Figures(_comparable(plan, places), plan.disturbed))
        return _measure(plan, workers.launcher, ledger, _saying_why(watch, writer))


def _saying_why(watch: Watch, writer: "RunWriter") -> Watch:
    """Whoever watches only prints: when that fails, the run did not."""

    def tell(event: Event) -> None:
        try:
            watch(event)
        except BrokenPipeError:
            writer.stop_for("the reader of the output went away")
            raise
        except OSError as error:
            writer.stop_for(f"the output could not be written: {error.strerror or error}")
            raise

    return tell


def devices(slots: Sequence[DeviceSlot]) -> list[DeviceInfo]:
    """The devices that a run locks."""
    return [slot.info for slot in slots if slot.info is not None]


def left(cases: Sequence[PlannedCase], done: Collection[tuple[int, str]], recalibrate: Collection[int]) -> list[PlannedCase]:
    """The cases that have no result yet, and the calibration of slots whose stored one was another chip's."""

    def is_stale(planned: PlannedCase) -> bool:
        return planned.slot in recalibrate and planned.case.workload.job == CalibrationJob.name

    return [planned for planned in cases if (planned.slot, planned.case.key) not in done or is_stale(planned)]


def _measure(plan: Sweep, launcher: Launcher, ledger: Ledger, watch: Watch) -> SweepFinished:
    """The line itself.  Cases whose end is known without running are stored first."""
    config, run = plan.config, ledger.writer.run
    todo = left(plan.cases, ledger.writer.finished, plan.recalibrate)
    quests = _Quests(plan, ledger.writer)
    estimate = Estimate(plan.slots, [*todo, *quests.waiting], plan.planned, quests.hunting_s)
    devices = {slot.slot: slot.distinction for slot in plan.slots} if len(plan.slots) > 1 else {}
    watch(SweepStarted(run, estimate.total, estimate.done, devices))

    def finished(ended: CaseEnded) -> None:
        row = ledger.enter(ended)
        estimate.ended(ended)
        watch(CaseFinished(row, estimate.done, estimate.total, estimate.remaining_s))

    for planned in todo:
        if planned.verdict is not None:
            finished(CaseEnded(planned, Measurement(planned.verdict, planned.reason), None, 0.0))
    to_run = [planned for planned in todo if planned.verdict is None]
    until = None if config.max_time_s is None else time.monotonic() + config.max_time_s
    signals: list[str] = []

    def interrupt(name: str) -> None:
        signals.append(name)
        ledger.writer.stop_waiting()
        launcher.interrupt(name)

    def seed_of(planned: PlannedCase) -> int:
        return data_seed(config.seed, planned.case.workload.key)

    with on_interrupt(interrupt), _keeping_what_ended(launcher, ledger):
        for happening in launcher.run(to_run, seed_of, until, quests.searches):
            match happening:
                case CaseEnded():
                    finished(happening)
                case SearchTold():
                    ledger.writer.artifact(happening.key, json.dumps(happening.state).encode())
                    if happening.round is not None:
                        watch(happening.round)
                    estimate.passed(happening.slot, happening.passed_s)
                case SearchEnded():
                    estimate.total += quests.ended(happening)
                case WorkerLog(slot, text):
                    ledger.log(slot, text)
                case PhaseStarted() | WorkerRestarted():
                    watch(happening)
                case Interrupted():
                    pass  # a signal that comes after the last happening is never told: ``signals`` has them all
    waiting = max(estimate.total - estimate.done, quests.left)
    return _finish(plan, ledger, waiting, estimate.total, next(iter(signals), ""), watch)


@contextmanager
def _keeping_what_ended(launcher: Launcher, ledger: Ledger) -> Iterator[None]:
    """Where a locked store ends the run, cases that ended while it was waited for are kept with the one that was."""
    try:
        yield
    except StoreWriteFailed as error:
        failed = error
        for ended in launcher.untold() if ledger.writer.is_locked_out else ():
            try:
                ledger.enter(ended)
            except StoreWriteFailed as later:  # it says where they are kept, which one about a log does not
                failed = later
        raise failed from failed.__cause__


class _Quests:
    """The searches of a sweep, each where an earlier part of the run has left it."""

    def __init__(self, plan: Sweep, writer: "RunWriter") -> None:
        outcomes = writer.outcomes if plan.searches else {}
        kept = {subject.key: writer.kept_artifact(subject.key) for subject in plan.searches}
        self._expected = {subject.key: len(subject.outline.stand_ins) for subject in plan.searches}
        self.searches = tuple(Search(subject, _state(kept[subject.key]), outcomes) for subject in plan.searches)
        self.left = len(self.searches)
        self.waiting = still_sought(plan.searches, plan.cases, outcomes)
        self.hunting_s: defaultdict[int, float] = defaultdict(float)
        for search in self.searches:
            self.hunting_s[search.slot] += search.hunting_s

    def ended(self, search: SearchEnded) -> int:
        """One search less; by how many its cases are more than were expected."""
        self.left -= 1
        return search.cases - self._expected[search.key]


def _state(kept: bytes | None) -> dict[str, Any] | None:
    """What a search has left; ``None`` where it has to begin anew."""
    try:
        return None if kept is None else dict(json.loads(kept))
    except ValueError:
        return None


def _finish(plan: Sweep, ledger: Ledger, waiting: int, total: int, signal: str, watch: Watch) -> SweepFinished:
    run = ledger.writer.run
    status, reason = "complete", ""
    if waiting:
        cause = f"{signal} received" if signal else f"max_time_s={plan.config.max_time_s:g} reached"
        status, reason = "interrupted", f"{cause}, {waiting} case{'s' * (waiting != 1)} left"
    ledger.writer.finish(status, reason, None if waiting else total)
    end = SweepFinished(run, status, reason, by_signal=bool(signal))
    watch(end)
    return end


def _open_run(plan: Sweep, store: "Store", places: Mapping[int, Place], environment: Mapping[str, Facts]) -> "RunWriter":
    """Store what the run is and stands on, before anything is measured."""
    from suite import __version__
    from suite.store.writer import RunStart

    devices = [place.row for place in places.values()]
    if plan.resume is not None:
        writer = store.resume_run(plan.resume)
        writer.register(devices, environment)
        return writer
    config, source = plan.config, source_state()
    return store.start_run(
        RunStart(
            experiment=config.experiment,
            config=asdict(config),
            argv=plan.argv,
            overrides=plan.overrides,
            note=config.note,
            version=__version__,
            commit=source.commit,
            dirty=source.dirty,
            planned=plan.planned,
            devices=devices,
            environment=environment,
        )
    )


def _comparable(plan: Sweep, places: Mapping[int, Place]) -> BaseFigures:
    """Stored calibrations are measured: what a simulated device does is not held against them."""
    measured = {place.row.info.uid for place in places.values() if place.evidence is Evidence.MEASURED}
    return {key: value for key, value in plan.figures.items() if key.device_uid in measured}


def _environment(plan: Sweep, started: Mapping[int, Ready | Death]) -> dict[str, Facts]:
    """The system's facts, the versions of plugins, and a section for what each worker says of its libraries and its device."""
    facts = system_facts()
    if versions := plugins.facts(plan.config):
        facts["plugins"] = versions
    for slot in plan.slots:
        answer = started[slot.slot]
        if isinstance(answer, Ready):
            facts[f"{slot.backend} device {answer.device.index}"] = dict(answer.environment)
    return facts
