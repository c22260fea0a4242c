"""One result with everything that is kept of it: the number, its samples over time, the device beside them, the checks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from suite.backend import Fact
from suite.hardware.makers import is_cpu
from suite.jobs.emulation import traffic_bytes
from suite.measure.others import unknown
from suite.measurement import Check, Measurement, SampleSet
from suite.outcome import Outcome
from suite.report.floors import Floor, Ground, floors, missed_by, times_over, uncounted, verdict
from suite.report.printable import WHOLE_LENGTH, clipped, printable
from suite.report.quantities import MASK, named_fact, readings, tokens_rate
from suite.report.system import UNAVAILABLE, Field, together
from suite.report.timeline import COUNTED, timeline
from suite.report.unshared import unshared
from suite.report.words import (
    UNKNOWN,
    bytes_rate,
    case_title,
    counted,
    cycles,
    duration,
    energy,
    no_interval,
    percent,
    rate_unit,
    si,
    spaced_percents,
    timing,
)
from suite.roofline import launch_times_s
from suite.rows import ResultDetail, ResultRow
from suite.show.chart import histogram
from suite.show.results import remark
from suite.show.screen import Screen
from suite.show.table import Column, Row, table
from suite.show.timeline import Limits, timeline_lines
from suite.telemetry import NOT_OF_A_CPU, THROTTLE_PREFIX, named

BINS = 12
LISTED_AT_MOST = 32  # values of a list: the times of every rank are for programs
LOG_LINES = 20  # the end of a log is where a failure says what it was


def detail_lines(detail: ResultDetail, ground: Ground, screen: Screen) -> Iterator[str]:
    """Sections in the order in which a reader doubts: the number, its roof, samples and device over time, the checks."""
    row, measured = detail.row, detail.measurement
    yield screen.paint(printable(case_title(row)), "bold")
    yield from _pairs({"outcome": _ending(row), **_identity(row, ground)})
    if measured.samples is not None:
        yield from _section("result", screen, _pairs(_figures(row, measured, ground)))
        yield from _section("roof and floors", screen, _floors(row, floors(row, ground), screen))
        yield from _section("samples", screen, _samples(measured.samples, screen))
        yield from _section("over time", screen, _over_time(detail, ground.ceilings.info.power_limit_w, screen))
    yield from _section("telemetry", screen, _telemetry(measured, is_cpu(ground.ceilings.info)))
    yield from _section("checks", screen, _checks(measured))
    yield from _section("implementation", screen, _pairs(measured.description))
    yield from _section("phases", screen, _pairs({name: duration(taken_s) for name, taken_s in measured.phases_s.items()}))
    for group, facts in detail.environment.items():
        fields = together([_field(name, fact) for name, fact in facts.items()])
        yield from _section(printable(f"environment: {group}"), screen, _pairs({each.name: _known(each) for each in fields}))
    yield from _section(
        "log", screen, (f"  {clipped(printable(line), WHOLE_LENGTH)}" for line in detail.log.splitlines()[-LOG_LINES:])
    )


def _section(title: str, screen: Screen, lines: Iterator[str]) -> Iterator[str]:
    """A heading and its lines; nothing where there are none."""
    first = next(lines, None)
    if first is None:
        return
    yield ""
    yield screen.paint(title, "bold")
    yield first
    yield from lines


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    worded = _worded(values)
    widest = max(map(len, worded), default=0)
    for name, value in worded.items():
        yield f"  {printable(name):<{widest}}  {clipped(printable(value), WHOLE_LENGTH)}"


def _worded(values: Mapping[str, Any]) -> dict[str, str]:
    """Each value in words, a number with the unit that its name ends with; without what says nothing."""
    named = dict(named_fact(name, value) for name, value in values.items())
    return {name: text for name, value in named.items() if (text := _in_words(value))}


def _in_words(value: Any) -> str:
    """What a store keeps as JSON, for people: ``tf32 no, block (1, 32)``; empty for what says nothing."""
    if isinstance(value, Mapping):
        several = {name for name, each in value.items() if isinstance(each, Mapping | list)}
        return ", ".join(f"{name} ({text})" if name in several else f"{name} {text}" for name, text in _worded(value).items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_in_words, value)) if len(value) <= LISTED_AT_MOST else f"{len(value)} values, in --json"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _ending(row: ResultRow) -> str:
    said = remark(row)
    return said if row.outcome != Outcome.OK else f"ok ({said})" if said else "ok"


def _identity(row: ResultRow, ground: Ground) -> dict[str, Any]:
    sheet = "spec derived from what it reports" if ground.ceilings.spec else "in no spec sheet"
    settings = {f"{name}": value for name, value in {**row.params, **row.switches}.items()}
    return {
        "run": row.run,
        "case": row.case_key,
        "workload": row.workload_key,
        "device": f"{row.backend} {row.device}, slot {row.device_slot}, {row.hardware or sheet}",
        "settings": ", ".join(f"{name}={value}" for name, value in settings.items()),
        "semantics": ", ".join(f"{name}={value}" for name, value in row.semantics.items()) or "not said",
        "data": row.distribution,
        "execution": f"{row.execution}, {row.evidence}, attempt {row.attempt}, {row.finished_at} UTC",
        "work": _work_words(row),
    }


def _figures(row: ResultRow, measured: Measurement, ground: Ground) -> dict[str, Any]:
    fractions = {name: percent(value) for name, value in row.fractions._asdict().items()}
    if ground.ceilings.max_clock_hz is None:
        fractions["boost"] = f"{UNKNOWN} (no maximum clock can be read here)"
    count = counted(row.count or 0, "sample")
    return {
        "time": f"{timing(row)}, {_interval(row, measured)}",
        **({"cycles": f"{cycles(row)}, by the clock counted over each sample"} if row.p50_cycles else {}),
        "spread": f"p05 {duration(row.p05_s)}, p95 {duration(row.p95_s)}, min {duration(row.min_s)}, {count}",
        "converged": _answer(row.converged),
        "steady": _steady(row),
        "contended": _contended(row, measured, ground),
        "bound": row.bound,
        "rate": _rates(row),
        **_traffic(row, measured),
        "of roof": ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in fractions.items()),
        **unshared(row, ground),
        **_rounding(row),
        "clock": f"{si(row.clock_hz, 'Hz')}, counted on the device" if row.clock_hz else UNKNOWN,
        "power": si(row.power_w, "W"),
        "energy": energy(row),
        "throttle": UNKNOWN if row.throttle is None else spaced_percents(row.throttle) or "none seen",
        "peak memory": _peak_memory(measured),
    }


def _rates(row: ResultRow) -> str:
    if why := uncounted(row):
        return f"{UNKNOWN}: {why}"
    computing = [si(row.flop_s, rate_unit(row.multiplied))] if row.flops or not row.bytes_s else []
    return ", ".join([*computing, bytes_rate(row), *([tokens_rate(row.tokens_s)] if row.tokens_s else [])])


def _work_words(row: ResultRow) -> str:
    if why := uncounted(row):
        return f"not known: {why}"
    flop, moved = si(row.flops, rate_unit(row.multiplied).removesuffix("/s")), si(row.compulsory_bytes, "B")
    return f"{flop}, {moved} compulsory, {row.arithmetic_intensity:.4g} per byte, pipe {row.pipe or 'none'}"


def _interval(row: ResultRow, measured: Measurement) -> str:
    if row.interval_s is None:
        return no_interval(row)
    low_s, high_s = row.interval_s
    times_s = launch_times_s(measured.samples) if measured.samples is not None else ()
    whole = bool(times_s) and low_s <= min(times_s) and high_s >= max(times_s)
    said = f"95 % interval of the median {duration(low_s)} to {duration(high_s)}"
    return f"{said}, the whole range of the samples: they say no more" if whole else said


def _peak_memory(measured: Measurement) -> str:
    """Of the device, held by the case itself: what all of a device's memory holds is a channel of telemetry."""
    held = measured.peak_memory_bytes
    return f"{UNKNOWN}: not counted here" if held is None else f"{si(held, 'B')} held on the device by this case"


def _traffic(row: ResultRow, measured: Measurement) -> dict[str, str]:
    """What the kernel is known to move, where that is more than each operand once."""
    moved = traffic_bytes(row.compulsory_bytes, measured.description) if row.compulsory_bytes else None
    if moved is None:
        return {}
    return {"traffic": f"{si(moved, 'B')}, {moved / row.compulsory_bytes:.3g}x the compulsory bytes"}


def _rounding(row: ResultRow) -> dict[str, str]:
    """What rounding the data costs; nothing where the kernel does not say."""
    if row.quantisation_error is None:
        return {}
    return {"quantisation error": f"{row.quantisation_error:.3g} of the product, from rounding the data to {row.format_label}"}


def _answer(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "no"


def _steady(row: ResultRow) -> str:
    return "not asked of a burst" if row.steady is None and row.load == "burst" else _answer(row.steady)


def _contended(row: ResultRow, measured: Measurement, ground: Ground) -> str:
    if row.contended is not None:
        return _answer(row.contended)
    return f"not known: {unknown(row.load, measured, is_cpu(ground.ceilings.info)).why}"


def _floors(row: ResultRow, found: Sequence[Floor], screen: Screen) -> Iterator[str]:
    """Each floor with its time and how many times it the median is."""
    if row.p50_s is None:
        return
    yield f"  {printable(verdict(row, found))}"
    columns = (Column("floor"), Column("time", right=True), Column("median", right=True))
    yield from table(columns, [Row(_floor(row, floor), floor.basis) for floor in found], screen)


def _floor(row: ResultRow, floor: Floor) -> tuple[str, ...]:
    return floor.name, duration(floor.time_s), times_over(missed_by(row, floor)) or "-"


def _samples(samples: SampleSet, screen: Screen) -> Iterator[str]:
    kept = f", one of every {samples.stride} kept" if samples.stride > 1 else ""
    taken = f"{counted(samples.count, 'sample')} of {counted(samples.launches, 'launch', 'launches')} each{kept}"
    yield f"  {taken}, {_stretches(len(samples.boundaries))}, by {printable(str(samples.method))}"
    yield from _pairs(samples.details)
    times_s = launch_times_s(samples)
    if times_s:
        yield "  how often, by seconds of one launch"
        yield from (f"  {line}" for line in histogram(times_s, duration, screen.columns - 2, BINS, screen.blocks))


def _stretches(count: int) -> str:
    """How often sampling was interrupted; a setting's ``min_batches`` counts samples instead."""
    return "in one stretch" if count == 1 else f"in {count} stretches (bursts, or rounds between other cases)"


def _over_time(detail: ResultDetail, power_limit_w: float | None, screen: Screen) -> Iterator[str]:
    found = timeline(detail.measurement)
    if found is not None:
        yield from timeline_lines(found, Limits(power_limit_w, detail.row.throttle, detail.row.load == "burst"), screen)


def _telemetry(measured: Measurement, of_cpu: bool) -> Iterator[str]:
    """Every channel in one line, of a CPU those that a CPU has; throttle reasons that were read are in the figure over time."""
    for name, channel in measured.telemetry.items():
        if of_cpu and name in NOT_OF_A_CPU and not channel.values:
            continue
        if name.startswith(THROTTLE_PREFIX) and channel.values and measured.samples is not None:
            continue
        title = printable(named(name, of_cpu)) + " mask" * (channel.unit == MASK)
        if channel.values:
            of_window = name == COUNTED and measured.samples is not None and measured.samples.clocks_khz
            over = ", each over a window, pauses between samples included" if of_window else ""
            yield f"  {title}: {printable(readings(channel.values, channel.unit))}{over}"
        else:
            yield f"  {title}: unavailable, {clipped(printable(channel.unavailable)) or 'no reading in the window'}"


def _checks(measured: Measurement) -> Iterator[str]:
    for when, check in (("before timing", measured.check_before), ("after timing", measured.check_after)):
        if check is not None:
            yield f"  {when}: {clipped(printable(_check(check)), WHOLE_LENGTH)}"


def _check(check: Check) -> str:
    verdict = "passed" if check.passed else f"failed: {check.reason}"
    error = "not computed" if check.error_rel is None else _digits(check.error_rel)
    projection = "" if check.projection_error is None else f", worst row {_digits(check.projection_error)}"
    return (
        f"{verdict}; error {error} of {_digits(check.tolerance)} allowed{projection}, "
        f"{check.unwritten} unwritten, {check.nonfinite} not finite"
    )


def _digits(error: float) -> str:
    """Three digits; an error of nought is one of no digits: the product of the reference rounded as this one did."""
    return f"{error:.2e}" if error else "0"


def _field(name: str, fact: Fact) -> Field:
    name, value = named_fact(name, fact.value)
    return Field(name, "" if value is None else str(value), fact.status, fact.reason)


def _known(field: Field) -> str:
    if field.status == UNAVAILABLE:
        return field.value or f"{UNAVAILABLE}, {field.reason}"
    return f"{field.value or None} ({field.status})"
