"""What a case could not be faster than, in time, and which of these floors its roof consists of there."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from suite.case import Regime
from suite.hardware.spec import VARIANTS, is_pipe, parse_pipe
from suite.outcome import Bound, Evidence
from suite.report.panels import Panel
from suite.report.words import rate_unit, si
from suite.roofline import LAUNCH_MULTIPLE, Ceilings, above_derived, floors_s, in_cache
from suite.rows import Calibration, ResultRow
from suite.work import Work


class Ground(NamedTuple):
    """What one result is held against: the calibration is the one that stood when it finished, as its bound is by it."""

    ceilings: Ceilings
    calibration: Calibration

    @classmethod
    def of(cls, panel: Panel, row: ResultRow) -> "Ground":
        return cls(Ceilings(panel.device.info, panel.spec), panel.calibrations.at(row.finished_at))


class Floor(NamedTuple):
    """One lower limit of a case's time, seconds; ``None`` where it is not known or does not apply.  ``basis`` says why.

    ``applies`` where it is the roof over this case: the largest of its floors, or launching for a case that is bound by it.
    """

    name: str
    time_s: float | None
    basis: str
    applies: bool


def floors(row: ResultRow, ground: Ground) -> tuple[Floor, ...]:
    """The floors of one timed case: compute by the sheet and at the measured clock, memory, launch."""
    return (*_compute(row, ground), _memory(row, ground), _launch(row, ground.calibration))


def missed_by(row: ResultRow, floor: Floor) -> float | None:
    """The median over the floor: 1 where it is reached."""
    return row.p50_s / floor.time_s if row.p50_s and floor.time_s else None


def uncounted(row: ResultRow) -> str:
    """Why the work of what another tool measured is not known, so that no rate and no bound follow; empty where it is."""
    if row.evidence != Evidence.IMPORTED or row.flops or row.compulsory_bytes:
        return ""
    if row.params.get("world_size") == 1:
        return "over a single rank nothing crosses a link"
    lacking = [
        *(["which operation it is"] if row.params.get("op", "unknown") == "unknown" else []),
        *(["over how many ranks"] if "world_size" not in row.params else []),
    ]
    return f"what was imported does not say {' and '.join(lacking) or 'how many bytes it moves'}"


def times_over(times: float | None) -> str:
    """How many times a floor the median is: ``1.08x``, ``18.3x``, ``1,636x``; empty where it is not known."""
    if times is None:
        return ""
    return f"{times:,.0f}x" if times >= 99.95 else f"{times:.3g}x" if times >= 9.995 else f"{times:.2f}x"


def verdict(row: ResultRow, found: Sequence[Floor]) -> str:
    """What limits the case and by how much that is missed, in one sentence."""
    roof = next((floor for floor in found if floor.applies), None)
    times = missed_by(row, roof) if roof else None
    if row.bound == Bound.UNKNOWN and (why := uncounted(row)):
        return f"bound unknown: {why}"
    if row.bound == Bound.UNKNOWN:
        return "bound unknown: no peak is known for what it computes with"
    if row.bound == Bound.CACHE:
        return "cache bound: its data stay in the last-level cache, whose bandwidth no sheet gives, so that it has no roof here"
    if roof is None or times is None:
        return f"{row.bound or 'unknown'} bound"
    why = f", which launching dominates below {LAUNCH_MULTIPLE}x" if row.bound == Bound.LAUNCH else ""
    return f"{row.bound} bound: the median is {times_over(times)} the {roof.name} floor{why}"


def _compute(row: ResultRow, ground: Ground) -> Iterator[Floor]:
    work, ceilings = _work(row), ground.ceilings
    if not work.flops:
        return
    bound = row.bound == Bound.COMPUTE
    peak = ceilings.peak_flop_s(work.pipe)
    at_clock = ceilings.boost_flop_s(work.pipe, row.clock_hz) if row.clock_hz else None
    by_sheet, _ = floors_s(work, _regime(row), ceilings, ground.calibration)
    if peak is None and at_clock is None:
        yield Floor("compute", None, f"no {row.pipe or 'arithmetic'} peak is known for this device", False)
    if peak is not None:
        kind = "derived" if ceilings.spec and ceilings.spec.derived else "spec sheet"
        passed = above_derived(row.flop_s or 0.0, peak, ceilings)
        basis = passed or f"{_rate(peak, row)}, {_peak(row, ground)} {kind}"
        yield Floor("compute", None if passed else by_sheet, basis, bound and at_clock is None)
    if at_clock is not None:
        then, _ = floors_s(work, _regime(row), ceilings, ground.calibration, row.clock_hz)
        basis = f"{_rate(at_clock, row)}, {_peak(row, ground)} at the measured {si(row.clock_hz, 'Hz')}"
        yield Floor("compute at clock", then, basis, bound)


def _memory(row: ResultRow, ground: Ground) -> Floor:
    """Of what crosses a link the floor is the link's."""
    ceilings, calibration = ground.ceilings, ground.calibration
    _, time_s = floors_s(_work(row), _regime(row), ceilings, calibration)
    if row.bound == Bound.LINK:
        basis = f"{si(row.compulsory_bytes / time_s, 'B/s')}, spec sheet" if time_s else f"no sheet says how fast {row.pipe} is"
        return Floor("link", time_s, basis, True)
    if time_s is not None:
        rate = si(row.compulsory_bytes / time_s, "B/s")
        doubt = ", while other work ran or not resolved" if calibration.is_memory_disturbed else ""
        kind = "spec sheet" if ceilings.bandwidth_bytes_s else f"measured on this device{doubt}"
        return Floor("memory", time_s, f"{rate}, {kind}", row.bound == Bound.MEMORY)
    if why := uncounted(row):
        return Floor("link", None, why, False)
    if not row.compulsory_bytes:
        return Floor("memory", None, "it moves no data", False)
    if in_cache(row.cache, row.compulsory_bytes, ceilings.llc_bytes):
        return Floor("memory", None, "its data stay in the last-level cache", False)
    return Floor("memory", None, "no bandwidth is known for this device", False)


def _launch(row: ResultRow, calibration: Calibration) -> Floor:
    time_s = calibration.empty_s(row.dispatch)
    basis = f"an empty kernel, dispatch {row.dispatch}" if time_s else "no empty kernel was measured here by then"
    return Floor("launch", time_s, basis, row.bound == Bound.LAUNCH)


def _work(row: ResultRow) -> Work:
    """A pipe that no sheet knows (the store may be a newer version's) has no peak."""
    return Work(row.flops, row.compulsory_bytes, row.pipe if is_pipe(row.pipe) else None)


def _peak(row: ResultRow, ground: Ground) -> str:
    """The name of the peak, and of the one that stands in for it where the sheet does not list it."""
    pipe, spec = row.pipe or "", ground.ceilings.spec
    rate = parse_pipe(pipe).rate
    return pipe if spec is None or spec.lists(pipe) else f"{VARIANTS[rate]} in place of {pipe}"


def _regime(row: ResultRow) -> Regime:
    labels: Any = (row.cache, row.load, row.dispatch)
    return Regime(*labels)


def _rate(flop_s: float, row: ResultRow) -> str:
    return si(flop_s, rate_unit(row.multiplied))
