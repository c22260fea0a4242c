"""Numbers and rows as people read them: SI prefixes, percent, one-line names, the marks beside a result."""

import math
import re
from collections.abc import Iterable
from datetime import datetime

from suite import case
from suite.case import Workload, items, shape_label
from suite.outcome import Bound
from suite.report.derived import ABOVE_DERIVED, passes_derived
from suite.report.printable import clipped, printable
from suite.rows import ResultRow, is_resolved

UNKNOWN = "n/a"
WORTH_TELLING = 0.005  # half a width of an interval, relative: what the standard settings ask for
CONTENDED = "contended"  # the mark of a result that other processes used the device beside
NOT_RESOLVED = "not resolved"  # instead of a half width above the median itself, which says nothing more

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def si(value: float | None, unit: str) -> str:
    """Three significant digits with a decimal SI prefix: ``si(9.89e14, "FLOP/s")`` is ``989 TFLOP/s``."""
    if value is None:
        return UNKNOWN
    scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= s * 0.9995), (1.0, ""))
    return f"{_digits(value / scale, 3)} {prefix}{unit}"


def rate_unit(*names: str) -> str:
    """``OP/s`` where only integer formats or pipes are meant, else ``FLOP/s``: of ``int8x28`` too, which computes fp64."""
    return "OP/s" if names and all(re.fullmatch(r"int\d+", name) for name in names) else "FLOP/s"


def tera_rates(formats: Iterable[str]) -> str:
    """The heading of a column of rates in 10^12: ``TFLOP/s``, ``TOP/s`` over integers alone, both where they mix."""
    return ", ".join(f"T{unit}" for unit in sorted({rate_unit(name) for name in formats})) or "TFLOP/s"


def giga_per_joule(formats: Iterable[str]) -> str:
    """The heading of a column of operations per joule, in 10^9, by the same rule."""
    return tera_rates(formats).replace("T", "G").replace("/s", "/J")


def bytes_rate(row: ResultRow) -> str:
    """Compulsory bytes per second: ``3.16 TB/s``; of what crosses a link those that busbw counts: ``12 GB/s busbw``."""
    return f"{si(row.bytes_s, 'B/s')}{' busbw' * (row.bound == Bound.LINK)}"


def energy(row: ResultRow) -> str:
    """Of one launch, ``1.13 J``, with operations per joule where there are any: ``0.972 TFLOP/J``."""
    if row.energy_j is None:
        return UNKNOWN
    each = si(row.energy_j, "J") if row.energy_j >= 1 else f"{row.energy_j:.3g} J"
    return f"{each}, {per_joule(row)}" if row.flops else each


def per_joule(row: ResultRow) -> str:
    """``flop_per_j`` with its unit."""
    return si(flop_per_j(row), rate_unit(row.multiplied).replace("/s", "/J"))


def flop_per_j(row: ResultRow) -> float | None:
    """Useful operations per joule; energy is known of sustained windows of 2 s and more."""
    return row.flops / row.energy_j if row.energy_j and row.flops else None


def relative_error(value: float | None) -> str:
    """Two digits: ``2.6e-02``; 0 where not one bit differs."""
    return UNKNOWN if value is None else f"{value:.1e}" if value else "0"


def duration(seconds: float | None) -> str:
    """Four significant digits in the largest unit that keeps the figure at or above 1: ``1.632 ms``."""
    if seconds is None:
        return UNKNOWN
    scale, unit = next(((s, u) for s, u in TIMES if abs(seconds) >= s * 0.99995), TIMES[-1])
    return f"{_digits(seconds / scale, 4)} {unit}"


def common_unit(times_s: Iterable[float | None]) -> tuple[float, str]:
    """The unit, with its seconds, that fits a whole column of times: the one in which the middle of them is read."""
    known = sorted(time_s for time_s in times_s if time_s is not None)
    if not known:
        return 1e-6, "µs"
    middle = known[len(known) // 2]
    return next((each for each in TIMES if middle >= each[0]), TIMES[-1])


def message_size(message_bytes: float) -> str:
    """``8 B``, ``64 KiB``, ``1.5 MiB``: message bytes as settings write them."""
    power = min(3, max(0, int(math.log2(message_bytes) // 10))) if message_bytes >= 1 else 0
    return f"{message_bytes / 2 ** (10 * power):.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def percent(fraction: float | None) -> str:
    """A ratio of 0 to 1 as ``92.3 %``; values above 1 are shown as they are."""
    return UNKNOWN if fraction is None else f"{100 * fraction:.1f} %"


def spaced_percents(text: str) -> str:
    """A stored text with its percentages as ``percent`` writes them: ``sw_power_cap 37 %``."""
    return re.sub(r"(?<=\d)%", " %", text)


def counted(count: int, one: str, many: str = "") -> str:
    """``1 sample``, ``2 samples``, ``2,048 samples``; ``many`` where it is not the singular with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def moment(iso_utc: str) -> str:
    """``2029-01-02 03:04 UTC`` from a UTC time in ISO 8601; anything else is shown as it is."""
    try:
        return f"{datetime.fromisoformat(iso_utc):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return iso_utc


def relative_half_width(row: ResultRow) -> float | None:
    """Half of the median's 95 % interval over the median: the figure the stopping rule works on."""
    if row.interval_s is None or not row.p50_s:
        return None
    low, high = row.interval_s
    return (high - low) / 2 / row.p50_s


def half_width_cycles(row: ResultRow) -> float | None:
    """The same of the median in cycles; ``None`` where the clock was not counted over every sample."""
    if row.interval_cycles is None or not row.p50_cycles:
        return None
    low, high = row.interval_cycles
    return (high - low) / 2 / row.p50_cycles


def resolved(row: ResultRow) -> bool:
    """Whether the median has an interval, and one that is narrow enough to be a percentage of it."""
    return row.interval_s is not None and is_resolved(*row.interval_s, row.p50_s or 0.0)


def timing(row: ResultRow) -> str:
    """Median with its interval, ``1.632 ms ± 0.2 %``, or ``± not resolved``."""
    half_width = relative_half_width(row)
    if half_width is None:
        return duration(row.p50_s)
    return f"{duration(row.p50_s)} ± {half_width_percent(half_width)}"


def half_width_percent(half_width: float) -> str:
    """Two digits, which is all that an interval's width means: ``0.20 %``; in words where it is wider than the median."""
    return NOT_RESOLVED if half_width > 1 else f"{_digits(100 * half_width, 2)} %" if half_width < 0.995 else "100 %"


def no_interval(row: ResultRow) -> str:
    """Why a median has no interval; empty where it has one."""
    if row.interval_s is not None:
        return ""
    return "one sample: no interval" if row.count == 1 else f"no interval from {counted(row.count or 0, 'sample')}"


def cycles(row: ResultRow) -> str:
    """Median cycles with their interval, ``2,208,583 ± 0.2 %``; empty where the clock was not counted over every sample."""
    half_width = half_width_cycles(row)
    if not row.p50_cycles:
        return ""
    return f"{row.p50_cycles:,.0f}" + (f" ± {_digits(100 * half_width, 2)} %" if half_width is not None else "")


def _known_in_cycles(row: ResultRow) -> str:
    """Where the median is known better in cycles, as of a kernel whose clock steps to and fro; empty elsewhere."""
    in_time, in_cycles = relative_half_width(row), half_width_cycles(row)
    if not row.converged or in_time is None or in_cycles is None:
        return ""
    told = in_time > WORTH_TELLING and in_cycles < in_time / 2
    return f"in cycles ± {_digits(100 * in_cycles, 2)} %" if told else ""


def workload_title(row: ResultRow) -> str:
    """Job and sizes, ``gemm 4096x4096x4096``."""
    return f"{row.job} {shape_label(Workload(row.job, row.format, items(row.params)))}"


def case_name(row: ResultRow) -> str:
    """Job, sizes and data that are not the usual: what a case is called where its switches are not the point."""
    return f"{workload_title(row)} {case.variation(row.distribution, ())}".rstrip()


def variation(row: ResultRow) -> str:
    """What sets a case apart beside its workload: data other than normal, and switches; often nothing."""
    return case.variation(row.distribution, items(row.switches))


def case_detail(row: ResultRow) -> str:
    """The workload with what else sets the case apart."""
    return f"{workload_title(row)} {variation(row)}".rstrip()


def case_title(row: ResultRow) -> str:
    """Everything that names a case, in one line."""
    return f"{case_detail(row)} {row.format_label} {row.implementation} {row.regime}"


def marks(row: ResultRow) -> tuple[str, ...]:
    """What a reader must know before trusting a timed result, most serious first; empty for a clean one."""
    found = (
        (_unresolved(row), row.p50_s is not None and not resolved(row)),
        ("not converged", row.converged is False),
        (_known_in_cycles(row), bool(_known_in_cycles(row))),
        ("not steady", row.steady is False),
        (CONTENDED, row.contended is True),
        (f"throttled: {spaced_percents(row.throttle or '')}", bool(row.throttle)),
        (ABOVE_DERIVED, passes_derived(row)),
        ("emulated", row.execution == "emulated"),
        (row.evidence, row.evidence != "measured"),
    )
    return tuple(name for name, holds in found if holds)


def short_marks(row: ResultRow) -> str:
    """The marks by name alone, where there is no room for more: ``not resolved, contended``."""
    return ", ".join(mark.partition(":")[0].removeprefix("± ") for mark in marks(row))


def _unresolved(row: ResultRow) -> str:
    if row.interval_s is None:
        return no_interval(row)
    low, high = row.interval_s
    return f"± not resolved: {duration(low)} to {duration(high)} from {counted(row.count or 0, 'sample')}"


def remarks(row: ResultRow) -> str:
    """The beginning of the reason an outcome was stored with, and the marks."""
    return "; ".join([*([clipped(printable(row.reason))] if row.reason else []), *marks(row)])


def doubtful(row: ResultRow) -> bool:
    """Whether the number itself is in doubt: no tight interval, no steady state, or somebody else on the device."""
    unresolved = row.p50_s is not None and not resolved(row)
    return unresolved or row.converged is False or row.steady is False or row.contended is True


def _digits(value: float, significant: int) -> str:
    if not math.isfinite(value):
        return str(value)
    rounded = abs(float(f"{value:.{significant}g}"))
    whole = len(str(int(rounded))) if rounded >= 1 else 0
    return f"{value:.{max(0, significant - whole)}f}" if value else "0"
