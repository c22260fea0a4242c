"""A spec sheet line by line, each figure with how far to trust it, how it follows and where it stands."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from suite.hardware.figure import NOT_FOUND, Figure, Figures, Source
from suite.hardware.fits import CONTEXTS, Fit, Fits
from suite.hardware.makers import cache_names
from suite.hardware.spec import HardwareSpec, Link
from suite.report.words import rate_unit, si

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
NOT_RECORDED = "not recorded"
_BINARY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


class SheetLine(NamedTuple):
    """One figure: ``value`` is ``n/a`` where sources leave it open, and ``remark`` then says why.

    ``part`` is short, for what is cut says another thing: ``memory HBM2 409`` of a bus of 4096 bit.  Which memory or link it is
    stands first in ``remark``.
    """

    part: str
    name: str
    value: str
    confidence: str
    remark: str
    sources: tuple[Source, ...]


class FitLine(NamedTuple):
    """One model in one format on a device: the longest context by memory, in words, and whether usual contexts fit."""

    model: str
    format: str
    weights: str
    contexts: tuple[str, ...]
    longest: str


def sheet_lines(spec: HardwareSpec) -> tuple[SheetLine, ...]:
    """Every figure that any source mentions, in the order of the sheet."""
    return tuple(_lines(spec))


def fit_lines(found: Fits) -> tuple[FitLine, ...]:
    """Which models fit, for one sequence with a cache in 16 bits."""
    return tuple(
        FitLine(
            row.model.name, row.format, si(row.weight_bytes, "B"), tuple(_answer(row, at) for at in CONTEXTS), _longest(row)
        )
        for row in found.rows
    )


def _lines(spec: HardwareSpec) -> Iterator[SheetLine]:
    memory, caches, clocks, threads = spec.memory, spec.caches, spec.clocks, spec.threads
    yield from _line("released", "year", spec.release, "")
    yield from _line("compute", f"{spec.unit_name}s", spec.units, "")
    yield from _several("compute", spec.ops_per_clock, "", " per clock and unit")
    yield from (line for name in clocks.__slots__ for line in _line("clocks", _plain(name), getattr(clocks, name), "Hz"))
    kind = ", ".join(filter(None, (memory.type, f"bus of {memory.bus_bits} bit" if memory.bus_bits else "")))
    yield from _line("memory", "capacity", memory.capacity_bytes, "B", kind)
    yield from _line("memory", "visible", memory.visible_bytes, "B", kind)
    yield from _line("memory", "bandwidth", memory.bandwidth_bytes_s, "B/s", kind)
    l2, last_level = cache_names(spec)
    for name, figure in ((l2, caches.l2_bytes), (last_level, caches.llc_bytes)):
        yield from _line("caches", name, figure, "binary")
    sizes = {"L1 per unit": caches.l1_per_unit_bytes}
    sizes |= {"shared memory per unit": caches.shared_memory_per_unit_bytes}
    sizes |= {"registers per unit": caches.registers_per_unit_bytes, **caches.on_chip_bytes}
    yield from _several("caches", sizes, "binary")
    yield from (line for name in threads.__slots__ for line in _line("threads", _plain(name), getattr(threads, name), ""))
    sparse = "with structured sparsity: no ceiling here"
    peaks = (("dense peaks", spec.peaks, ""), ("other dense rates", spec.peak_variants, ""))
    for part, rates, kind in (*peaks, ("sparse peaks", spec.sparse_peaks, sparse)):
        yield from (line for name, figure in rates.items() for line in _line(part, name, figure, rate_unit(name), kind))
    yield from _link("interconnect", spec.interconnect)
    yield from _link("host link", spec.host_link)
    yield from _line("power", "TDP", spec.tdp_w, "W")
    yield from _line("power", "measured", spec.measured_power_w, "W")


def _several(part: str, figures: Figures, unit: str, suffix: str = "") -> Iterator[SheetLine]:
    for name, figure in figures.items():
        yield from _line(part, f"{name}{suffix}", figure, unit)


def _link(part: str, link: Link) -> Iterator[SheetLine]:
    kind = ", ".join(filter(None, (link.name, f"{link.links} links" if link.links else "")))
    yield from _line(part, "both directions", link.bidirectional_bytes_s, "B/s", kind)
    yield from _line(part, "per direction", link.per_direction_bytes_s, "B/s", kind)


def _line(part: str, name: str, figure: Figure, unit: str, kind: str = "") -> Iterator[SheetLine]:
    """Nothing for a figure that no source mentions."""
    if figure != NOT_FOUND:
        remark = "; ".join(filter(None, (kind, figure.derived, figure.note)))
        yield SheetLine(part, name, _written(figure.value, unit), figure.confidence, remark, figure.sources)


def _written(value: float | None, unit: str) -> str:
    if value is None:
        return "n/a"
    if unit == "binary":
        unit_bytes, name = next(each for each in _BINARY if value >= each[0] or each[0] == 1)
        return f"{value / unit_bytes:.7g} {name}"
    if not unit:
        return f"{value:.7g}"
    scale, prefix = next((each for each in _DECIMAL if abs(value) >= each[0]), (1.0, ""))
    return f"{value / scale:.7g} {prefix}{unit}"  # every digit of the source: 989.5 is not 990


def _plain(name: str) -> str:
    return name.removesuffix("_hz").replace("_", " ")


def _answer(row: Fit, context: int) -> str:
    if context > row.model.max_context:
        return "beyond the model"
    return "yes" if row.contexts[context] else "no"


def _longest(row: Fit) -> str:
    if not row.max_context:
        return "does not fit"
    if row.max_context > row.model.max_context:
        return f"{row.model.max_context:,} tokens, the model's limit"
    return f"{row.max_context:,} tokens"


def documents(lines: Sequence[SheetLine]) -> dict[Source, int]:
    """The sources of some lines, each with its number, in the order in which they are first named: those that were recorded."""
    found: dict[Source, int] = {}
    for line in lines:
        for source in filter(is_recorded, line.sources):
            found.setdefault(source, len(found) + 1)
    return found


def cited(line: SheetLine, numbers: Mapping[Source, int]) -> str:
    """``[1] [3]``, or that no source was recorded: of that there is no document to be looked up under a number."""
    return " ".join(f"[{numbers[source]}]" for source in line.sources if is_recorded(source)) or NOT_RECORDED


def is_recorded(source: Source) -> bool:
    """Whether it is known who says so."""
    return source.kind != "none"
