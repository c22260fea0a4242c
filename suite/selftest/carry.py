"""Carrying a course out: each pass is an ordinary run in the store; its results are read back, judged and recorded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from suite import __version__
from suite.events import CaseFinished, Event, SweepFinished, SweepStarted
from suite.hardware.makers import is_cpu
from suite.hardware.spec import HardwareSpec
from suite.roofline import Ceilings
from suite.rows import BaseFigures, BaseKey, DeviceRow
from suite.selftest.course import Course, Pass
from suite.selftest.judge import judge
from suite.selftest.record import Selftest
from suite.selftest.taken import Passes, Taken, base_figures, told_by_nobody
from suite.sweep import Sweep, Watch, started
from suite.sweep import carry_out as run_pass

if TYPE_CHECKING:  # SQLAlchemy is loaded by whoever opens the store
    from suite.locks import Locks
    from suite.progress import Display
    from suite.store.queries import Reader
    from suite.store.writer import Store

REPLACED = ("backend", "device")  # the passes name theirs


class Request(NamedTuple):
    """What a person asked for, and how they are told of it: a line before each pass, a display during it.

    ``store`` opens the store, once workers have started: a selftest that cannot be leaves no file.
    """

    argv: Sequence[str]
    overrides: Sequence[str]
    locks: "Locks"
    store: "Callable[[], Store]"
    announce: Callable[[str], None]
    display: "Callable[[], Display]"


@dataclass
class Progress:
    """How far a selftest came: the runs that were begun, in their order, and how many cases are stored."""

    total: int
    runs: list[str] = field(default_factory=list)
    stored: int = 0

    def through(self, watch: Watch) -> Watch:
        """Pass events on.  How a sweep ended is not told: what goes on is the selftest, not the run."""

        def tell(event: Event) -> None:
            match event:
                case SweepStarted(run):
                    self.runs.append(run)
                case CaseFinished():
                    self.stored += 1
                case SweepFinished():
                    return
            watch(event)

        return tell


def carry_out(course: Course, request: Request, progress: Progress) -> list[Selftest]:
    """Measure every pass, judge each device, and record the verdicts.

    Raises what ``suite.sweep`` raises, and ``KeyboardInterrupt`` when a signal ends a pass: then nothing is judged.
    """
    runs: dict[str, str] = {}
    known: BaseFigures = {}
    for number, each in enumerate(course.passes, start=1):
        request.announce(f"pass {number} of {len(course.passes)}: {each.title}")
        runs[each.name] = _measure(course, each, known, request, progress)
        known = known or _base_figures(request.store(), runs[each.name])
    selftests = _judged(course, runs, request.store())
    for selftest in selftests:
        request.store().record_selftest(selftest)
    return selftests


def _measure(course: Course, each: Pass, known: BaseFigures, request: Request, progress: Progress) -> str:
    own = [text for text in request.overrides if text.lstrip("+~").partition("=")[0] not in REPLACED]
    whole = Sweep(
        config=each.config,
        slots=course.slots,
        cases=each.cases,
        figures=known,
        argv=request.argv,
        overrides=[*own, *each.overrides],
    )
    with started(each.config, course.slots, request.locks) as workers, request.display() as watch:
        finished = run_pass(whole, workers, request.store(), progress.through(watch))
    if finished.by_signal or finished.status != "complete":
        raise KeyboardInterrupt(finished.reason)
    return finished.run


def _base_figures(store: "Store", run: str) -> BaseFigures:
    """What the first pass found: it bounds the cases of the others."""
    from suite.store.queries import Reader

    with Reader.open(str(store.path)) as reader:
        devices = reader.devices(run)
        return {
            BaseKey(device.info.uid, device.info.backend, name): value
            for device in devices
            for name, value in base_figures(_taken(reader, run, device.slot)).items()
        }


def _judged(course: Course, runs: Mapping[str, str], store: "Store") -> list[Selftest]:
    from suite.store.queries import Reader

    with Reader.open(str(store.path)) as reader:
        return [selftest(reader, runs, device, course.undoubled) for device in reader.devices(runs["first"])]


def selftest(reader: "Reader", runs: Mapping[str, str], device: DeviceRow, undoubled: str = "") -> Selftest:
    """Judge one device slot from stored runs; ``runs`` are their ids by the name of the pass."""
    taken = {name: _taken(reader, run, device.slot) for name, run in runs.items()}
    passes = Passes(**taken, undoubled=undoubled)
    if not is_cpu(device.info):
        passes = told_by_nobody(passes)
    spec = HardwareSpec.from_json(device.spec) if device.spec else None
    verdict = judge(passes, replace(device.info, llc_bytes=Ceilings(device.info, spec).llc_bytes))
    return Selftest(
        device_uid=device.info.uid,
        device=device.info.name,
        backend=device.info.backend,
        runs=tuple(runs.values()),
        finished_at=datetime.now(UTC),
        findings=verdict.findings,
        repeatability=verdict.repeatability,
        facts=_facts(device, passes),
    )


def _taken(reader: "Reader", run: str, slot: int) -> tuple[Taken, ...]:
    rows = (row for row in reader.results(run) if row.device_slot == slot)
    return tuple(Taken(row, reader.measurement(row.result_id)) for row in rows)


def _facts(device: DeviceRow, passes: Passes) -> dict[str, str | None]:
    """What must stay as it is for the verdict to hold, and what kind of evidence it rests on."""
    info = device.info
    return {
        "roofbench": __version__,
        "evidence": next((taken.row.evidence for taken in passes), None),
        "hardware": device.hardware,
        "partition": info.partition,
        "driver": info.driver,
        "power_limit_w": None if info.power_limit_w is None else f"{info.power_limit_w:g}",
        "max_clock_hz": None if info.max_clock_hz is None else f"{info.max_clock_hz:g}",
    }
