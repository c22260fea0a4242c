"""Which ceilings a figure draws: spec roofs from the hardware table, empirical roofs from what was measured.

Every value along a roof comes from ``suite.roofline``; here it is only decided which roofs there are.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from suite.hardware.spec import HardwareSpec, is_pipe
from suite.measure.statistics import median
from suite.outcome import Bound, Outcome
from suite.report.words import case_name, marks, rate_unit, si
from suite.roofline import Ceilings, ridge_point, roof
from suite.rows import ResultRow

CALIBRATION = "calibration"  # the job whose fastest read, copy or triad is the memory roof
KINDS = ("spec", "boost", "at clock", "empirical")
NO_ROOF = "No roof is known yet for what this run has measured."


class EmpiricalKey(NamedTuple):
    """An empirical ceiling belongs to one pipe under one load."""

    pipe: str
    load: str


class Setter(NamedTuple):
    """The result that set an empirical roof: what it computes and by whom, what it is of, and why it is in doubt, else empty.

    ``of`` is empty where it is the format that its pipe is named after; ``run`` is the run that it is a result of.
    """

    case: str
    of: str
    doubt: str
    run: str = ""

    @property
    def words(self) -> str:
        """``fp8_e4m3, emulated: gemm 4096x4096x4096 by library; not steady``."""
        return f"{self.of}{': ' * bool(self.of)}{self.case}{'; ' * bool(self.doubt)}{self.doubt}"


@dataclass(frozen=True, slots=True)
class Roof:
    """One ceiling: ``kind`` is one of ``KINDS``; ``peak_flop_s`` its flat part in FLOP/s.

    ``bandwidth_bytes_s`` is ``None`` where no memory figure is known, and the roof then is its flat part alone.
    ``load`` is set for empirical roofs only: what is reached in bursts is another ceiling than what is sustained.
    ``format`` is the one format that runs on these pipes, where there is one; ``clock_hz`` the clock that the peak is at, where
    it follows from one; ``sheet`` the sheet that it is by, where a figure has several.  ``set_by`` and ``memory_set_by`` are
    the results behind an empirical roof's flat part and its memory part, as far as they were found.
    """

    kind: str
    pipes: tuple[str, ...]
    load: str | None
    peak_flop_s: float
    bandwidth_bytes_s: float | None
    format: str | None = None
    clock_hz: float | None = None
    sheet: str = ""
    set_by: Setter | None = None
    memory_set_by: Setter | None = None

    @property
    def ridge(self) -> float | None:
        """Intensity in FLOP/byte where memory stops being the limit."""
        return None if self.bandwidth_bytes_s is None else ridge_point(self.peak_flop_s, self.bandwidth_bytes_s)

    @property
    def label(self) -> str:
        """``name``, and what set it where that is known, as there is room for on hover."""
        return f"{self.name}, set by {self.set_by.words}" if self.set_by is not None else self.name

    @property
    def name(self) -> str:
        """``bf16, fp16 989 TFLOP/s``, after the sheet where there are several."""
        at = f" at {si(self.clock_hz, 'Hz')}" if self.clock_hz else ""
        whose = f"{self.sheet}: " if self.sheet else ""
        return f"{whose}{', '.join(self.pipes)} {si(self.peak_flop_s, rate_unit(*self.pipes))}{at}"

    def values(self, intensities: Sequence[float]) -> list[float]:
        """Attainable FLOP/s at each arithmetic intensity."""
        return roof(self.peak_flop_s, self.bandwidth_bytes_s, intensities)


class Memory(NamedTuple):
    """The empirical memory roof, bytes per second, which is known without any roof of arithmetic, and what set it."""

    bandwidth_bytes_s: float
    set_by: Setter | None = None


@dataclass(frozen=True, slots=True)
class RoofSet:
    """All roofs of one device for one set of results, and what could not be drawn, in words."""

    lines: tuple[Roof, ...]
    notes: tuple[str, ...]
    memory: Memory | None = None

    @property
    def memory_alone(self) -> Memory | None:
        """The empirical memory roof where no empirical roof of arithmetic has it as its memory part."""
        return None if any(line.bandwidth_bytes_s for line in self.of_kind("empirical")) else self.memory

    def of_kind(self, kind: str) -> tuple[Roof, ...]:
        return tuple(line for line in self.lines if line.kind == kind)

    def only(self, kinds: Collection[str]) -> "RoofSet":
        """Without the roofs of other kinds; the notes stay."""
        memory = self.memory if "empirical" in kinds else None
        return RoofSet(tuple(line for line in self.lines if line.kind in kinds), self.notes, memory)


MAY_BE_A_ROOF = "resolved and not contended"  # what may be a roof

# The marks by which ``doubtful`` holds.
DOUBTS = ("± not resolved", "one sample", "no interval", "not converged", "not steady", "contended")


def doubts(row: ResultRow) -> str:
    """Why a number is in doubt, by name alone: ``not converged, contended``; empty where it is not."""
    return ", ".join(mark.partition(":")[0].removeprefix("± ") for mark in marks(row) if mark.startswith(DOUBTS))


def with_setters(roofs: RoofSet, rows: Sequence[ResultRow]) -> RoofSet:
    """The same with the results among ``rows`` of the device that set its empirical roofs, which are known by their rates."""
    rated = [row for row in rows if row.outcome == Outcome.OK and row.contended is not True]
    lines = (_with_setter(line, rated) if line.kind == "empirical" else line for line in roofs.lines)
    memory = roofs.memory
    if memory is not None:
        memory = memory._replace(set_by=memory.set_by or _memory_setter(memory.bandwidth_bytes_s, rated))
    return RoofSet(tuple(lines), roofs.notes, memory)


def lacks_setters(roofs: RoofSet) -> bool:
    """Whether an empirical roof is of a result that was not found yet."""
    alone = roofs.memory_alone
    return (alone is not None and alone.set_by is None) or any(
        line.set_by is None or (line.bandwidth_bytes_s is not None and line.memory_set_by is None)
        for line in roofs.of_kind("empirical")
    )


def _with_setter(line: Roof, rows: Sequence[ResultRow]) -> Roof:
    flat = (row for row in rows if row.pipe in line.pipes and row.load == line.load and _is(row.flop_s, line.peak_flop_s))
    return replace(
        line,
        set_by=line.set_by or next(map(_setter, flat), None),
        memory_set_by=line.memory_set_by or _memory_setter(line.bandwidth_bytes_s, rows),
    )


def _memory_setter(bandwidth_bytes_s: float | None, rows: Sequence[ResultRow]) -> Setter | None:
    found = (row for row in rows if row.job == CALIBRATION and _is(row.bytes_s, bandwidth_bytes_s))
    return next(map(_setter, found), None)


def _is(rate: float | None, roof: float | None) -> bool:
    return rate is not None and roof is not None and math.isclose(rate, roof, rel_tol=1e-9)


def _setter(row: ResultRow) -> Setter:
    emulated = ["emulated"] if row.execution == "emulated" else []
    is_other = row.job != CALIBRATION and (emulated or not (row.pipe or "").startswith(row.format.partition("_")[0]))
    of = ", ".join([row.format_label, *emulated]) if is_other else ""
    case = f"a {row.params.get('op')}" if row.job == CALIBRATION else case_name(row)
    return Setter(f"{case} by {row.implementation}", of, doubts(row), row.run)


def drawable(row: ResultRow) -> bool:
    """Whether a result is a point of the roofline: verified, timed, and with both arithmetic and bytes."""
    return row.outcome == Outcome.OK and bool(row.flop_s) and row.arithmetic_intensity > 0


def declared_peak_flop_s(spec: HardwareSpec | None, pipe: str) -> float | None:
    """The sheet's peak, also asked for pipes that no sheet knows (a store may come from a newer version)."""
    return spec.peak_flop_s(pipe) if spec is not None and is_pipe(pipe) else None


class Judged(NamedTuple):
    """Results of one device with the sheet that they were judged by, ``None`` where none was matched; its ``name`` is told."""

    name: str
    rows: Sequence[ResultRow]
    spec: HardwareSpec | None


def roof_set(
    rows: Sequence[ResultRow],
    spec: HardwareSpec | None,
    bandwidth_bytes_s: float | None,
    best: Mapping[EmpiricalKey, float],
) -> RoofSet:
    """``judged_roof_set`` of results that were all judged by one sheet."""
    return judged_roof_set([Judged("", rows, spec)], bandwidth_bytes_s, best)


def judged_roof_set(judged: Sequence[Judged], bandwidth_bytes_s: float | None, best: Mapping[EmpiricalKey, float]) -> RoofSet:
    """The roofs that belong with results of one device: of each sheet over what was judged by it.

    ``bandwidth_bytes_s`` is the best measured on the device and ``best`` maps pipe and load to its highest verified rate.
    Only pipes and loads that occur in the rows get a roof.
    """
    rows = [row for each in judged for row in each.rows]
    roofs: list[Roof] = []
    notes: list[str] = []
    if len(judged) > 1:
        notes.append(judged_by([each.name for each in judged]))
    for each in judged:
        lines, said = _spec_roofs(each.rows, each.spec)
        roofs += [replace(line, sheet=each.name) if len(judged) > 1 else line for line in lines]
        notes += [f"{each.name}: {note}" if len(judged) > 1 else note for note in said]
    if bandwidth_bytes_s is None:
        notes.append(f"no empirical memory roof: no read, copy or triad is {MAY_BE_A_ROOF}")
    if unroofed := sorted({key.pipe for key in _shown(rows) if key not in best}):
        notes.append(f"no empirical roof of {', '.join(unroofed)}: no measured result is {MAY_BE_A_ROOF}")
    memory = None if bandwidth_bytes_s is None else Memory(bandwidth_bytes_s)
    return RoofSet((*roofs, *_empirical_roofs(rows, bandwidth_bytes_s, best)), tuple(notes), memory)


def judged_by(names: Sequence[str]) -> str:
    """Of results of one device that several sheets judged."""
    return f"judged by {len(names)} sheets, each with roofs of its own: {', '.join(names)}"


def clocked_roofs(rows: Sequence[ResultRow], ceilings: Ceilings) -> tuple[Roof, ...]:
    """Roofs by operations a clock: ``boost`` at the device's maximum clock, ``at clock`` at the one counted under each load.

    That is the median clock of the results that arithmetic bounds, as their fractions are by it.
    """
    pipes = sorted({row.pipe for row in rows if row.flops and is_pipe(row.pipe) and row.pipe})
    bandwidth, found = ceilings.bandwidth_bytes_s, []
    for pipe in pipes:
        peak, fmt = ceilings.boost_flop_s(pipe), _only_format(rows, (pipe,))
        if peak is not None:
            found.append(Roof("boost", (pipe,), None, peak, bandwidth, fmt, ceilings.max_clock_hz))
        own = [row for row in rows if row.pipe == pipe and drawable(row) and row.bound == Bound.COMPUTE]
        for load in sorted({row.load for row in own}, reverse=True):
            clocks = [row.clock_hz for row in own if row.load == load and row.clock_hz]
            at = median(clocks) if clocks else None
            if at is not None and (peak := ceilings.boost_flop_s(pipe, at)) is not None:
                found.append(Roof("at clock", (pipe,), load, peak, bandwidth, fmt, at))
    return tuple(found)


def _spec_roofs(rows: Sequence[ResultRow], spec: HardwareSpec | None) -> tuple[tuple[Roof, ...], tuple[str, ...]]:
    if spec is None:
        return (), ("no spec sheet for this device: empirical roof only, fractions of spec n/a",)
    pipes = sorted({row.pipe for row in rows if row.pipe and row.flops})
    peaks = {pipe: declared_peak_flop_s(spec, pipe) for pipe in pipes}
    where = "can be derived, and there is no spec sheet" if spec.derived else "in the spec sheet"
    notes = [f"no {pipe} peak {where}" for pipe, peak in peaks.items() if peak is None]
    if spec.bandwidth_bytes_s is None:
        notes.append(f"no memory bandwidth {where}: spec roofs have no memory part")
    if spec.derived:
        clock = f" ({note})" if (note := spec.clocks.boost_hz.note) else ""
        notes.append(f"spec roof derived from cores, clock{clock} and vector width, not declared by the maker")
    roofs = (
        Roof("spec", tuple(names), None, peak, spec.bandwidth_bytes_s, _only_format(rows, names))
        for peak, names in sorted(_by_peak(peaks).items())
    )
    return tuple(roofs), tuple(notes)


def _by_peak(peaks: Mapping[str, float | None]) -> dict[float, list[str]]:
    """Pipes that share a peak: two equal roofs are one line with both names."""
    groups: dict[float, list[str]] = {}
    for pipe, peak in peaks.items():
        if peak is not None:
            same = next((known for known in groups if math.isclose(known, peak, rel_tol=1e-3)), peak)
            groups.setdefault(same, []).append(pipe)
    return groups


def _empirical_roofs(
    rows: Sequence[ResultRow], bandwidth: float | None, best: Mapping[EmpiricalKey, float]
) -> tuple[Roof, ...]:
    keys = sorted(key for key in _shown(rows) if key in best)
    return tuple(
        Roof("empirical", (key.pipe,), key.load, best[key], bandwidth, _only_format(rows, (key.pipe,))) for key in keys
    )


def _shown(rows: Sequence[ResultRow]) -> set[EmpiricalKey]:
    return {EmpiricalKey(row.pipe, row.load) for row in rows if row.pipe and drawable(row)}


def _only_format(rows: Sequence[ResultRow], pipes: Sequence[str]) -> str | None:
    formats = {row.format for row in rows if row.pipe in pipes}
    return formats.pop() if len(formats) == 1 else None
