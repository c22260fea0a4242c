"""Spec sheets as text for people and as JSON values: what ``roofbench hardware [NAME] [--json]`` prints."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from suite.hardware.catalogue import all_specs
from suite.hardware.figure import NOT_FOUND, Figure, Figures, Source
from suite.hardware.fits import RESERVE, WEIGHT_BITS, Fit, Fits, fits
from suite.hardware.lacks import lacks
from suite.hardware.makers import cache_names
from suite.hardware.models import Model
from suite.hardware.spec import PIPES, Check, HardwareSpec, Link, Memory
from suite.hardware.terms import GRADES, used
from suite.report.words import rate_unit

UNKNOWN = "n/a"
BINARY_GB = 2**30  # bytes of a GB as makers count memory
LIST_HEAD = ("id", "units", "memory GB", "GB/s", "bf16 TFLOP/s", "fp8 TFLOP/s", "name")


class Entry(NamedTuple):
    """One figure with its label and the way its value is written."""

    label: str
    figure: Figure
    write: Callable[[float], str]


def list_lines(extra: Sequence[Path] = ()) -> list[str]:
    """One line per sheet under a heading, columns aligned."""
    rows = [LIST_HEAD, *(_list_row(spec) for spec in all_specs(extra))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(LIST_HEAD))]
    return [_aligned(row, widths) for row in rows]


def list_json(extra: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """One object per sheet, in base units; ``None`` where a figure is not known."""
    return [
        {
            "id": spec.id,
            "name": spec.name,
            "vendor": spec.vendor,
            "unit": spec.unit_name,
            "units": spec.units.value,
            "memory_bytes": spec.memory_bytes,
            "bandwidth_bytes_s": spec.bandwidth_bytes_s,
            "bf16_flop_s": spec.peak_flop_s("bf16"),
            "fp8_flop_s": spec.peak_flop_s("fp8"),
        }
        for spec in all_specs(extra)
    ]


def detail_lines(spec: HardwareSpec) -> list[str]:
    """Every figure with its confidence and the numbers of its sources, what fits, and the sources themselves."""
    documents: dict[Source, int] = {}
    lines = [
        f"{spec.title}   {spec.id}",
        ", ".join(filter(None, (spec.vendor, spec.architecture, spec.form_factor, spec.status))),
    ]
    for heading, entries in _sections(spec):
        known = [line for entry in entries for line in _entry_lines(entry, documents)]
        lines += ["", heading, *known] if known else []
    lines += _block(
        "formats", [f"  {', '.join(spec.formats)}  {_numbers(spec.format_sources, documents)}"] if spec.formats else []
    )
    lines += _block("published peaks against units x operations per clock x clock", map(_check_line, spec.checks))
    lines += _block(
        "runtime names", (f"  '{n.string}'  {n.confidence} {_numbers(n.sources, documents)}" for n in spec.runtime.device_names)
    )
    lines += _block("partitions", _partition_lines(spec, documents))
    lines += _block("what this sheet lacks", (f"  {each.key:<26} {each.without}" for each in lacks(spec)))
    lines += _block("notes", (f"  {note}" for note in spec.notes))
    lines += _fit_lines(fits(spec))
    lines += _block("how far each figure is to be trusted", (f"  {grade}" for grade in GRADES))
    lines += _block("words in the remarks", (f"  {term}: {meaning}" for term, meaning in used(lines)))
    return [*lines, *_block("sources", (f"  [{n}] {source.title}{_address(source)}" for source, n in documents.items()))]


def detail_json(spec: HardwareSpec) -> dict[str, Any]:
    """The whole sheet in base units, the dense peak of each pipe, the cross-checks worked out, and what fits."""
    what_fits = fits(spec)
    return {
        "hardware": spec.to_json(),
        "peaks_flop_s": {pipe: spec.peak_flop_s(pipe) for pipe in PIPES},
        "bandwidth_bytes_s": spec.bandwidth_bytes_s,
        "memory_bytes": spec.memory_bytes,
        "llc_bytes": spec.llc_bytes,
        "cross_check": [
            {"pipe": check.pipe, "computed_flop_s": check.computed_flop_s, "published_flop_s": check.published_flop_s}
            | {"mismatch": check.mismatch, "reason": check.reason}
            for check in spec.checks
        ],
        "lacks": [key for each in lacks(spec) for key in each.keys],
        "fits": what_fits.to_json() if what_fits else None,
    }


def _list_row(spec: HardwareSpec) -> tuple[str, ...]:
    capacity = spec.memory.capacity_bytes.value
    return (
        spec.id,
        UNKNOWN if spec.units.value is None else f"{spec.units.value:g} {spec.unit_name}",
        *(_short(value, unit) for value, unit in ((capacity, 1e9), (spec.bandwidth_bytes_s, 1e9))),
        *(_short(spec.peak_flop_s(pipe), 1e12) for pipe in ("bf16", "fp8")),
        spec.name,
    )


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Text left, numbers right."""
    left = (0, len(row) - 1)
    cells = (
        text.ljust(width) if n in left else text.rjust(width) for n, (text, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def _short(value: float | None, unit: float) -> str:
    return UNKNOWN if value is None else f"{value / unit:.5g}"


def _sections(spec: HardwareSpec) -> list[tuple[str, list[Entry]]]:
    memory, caches, clocks, threads = spec.memory, spec.caches, spec.clocks, spec.threads
    plain, (l2, last_level) = _in(1, ""), cache_names(spec)
    return [
        ("released", [Entry("year", spec.release, plain)]),
        (
            "compute",
            [Entry(f"{spec.unit_name}s", spec.units, plain), *_named(spec.ops_per_clock, " per clock and unit", plain)],
        ),
        ("clocks", [Entry(f.removesuffix("_hz"), getattr(clocks, f), _in(1e6, "MHz")) for f in clocks.__slots__]),
        (
            f"memory {memory.type or ''}".rstrip() + (f", {memory.bus_bits} bit" if memory.bus_bits else ""),
            [
                Entry("capacity", memory.capacity_bytes, _in(1e9, "GB")),
                Entry("visible", _explained(memory), _in(1e9, "GB")),
                Entry("bandwidth", memory.bandwidth_bytes_s, _in(1e9, "GB/s")),
            ],
        ),
        (
            "caches",
            [
                Entry(l2, caches.l2_bytes, _in(2**20, "MiB")),
                Entry(last_level, caches.llc_bytes, _in(2**20, "MiB")),
                Entry("L1 per unit", caches.l1_per_unit_bytes, _in(2**10, "KiB")),
                Entry("shared memory per unit", caches.shared_memory_per_unit_bytes, _in(2**10, "KiB")),
                Entry("registers per unit", caches.registers_per_unit_bytes, _in(2**10, "KiB")),
                *_named(caches.on_chip_bytes, "", _in(2**20, "MiB")),
            ],
        ),
        ("threads", [Entry(f.replace("_", " "), getattr(threads, f), plain) for f in threads.__slots__]),
        ("dense peaks", _rates(spec.peaks)),
        ("other dense rates", _rates(spec.peak_variants)),
        ("peaks with structured sparsity (not a ceiling here)", _rates(spec.sparse_peaks)),
        (_link_heading("interconnect", spec.interconnect), _link_entries(spec.interconnect)),
        (_link_heading("host link", spec.host_link), _link_entries(spec.host_link)),
        ("power", [Entry("TDP", spec.tdp_w, _in(1, "W")), Entry("measured", spec.measured_power_w, _in(1, "W"))]),
    ]


def _explained(memory: Memory) -> Figure:
    """What is visible, with the reason where that is more than the capacity on the sheet."""
    visible, capacity = memory.visible_bytes.value, memory.capacity_bytes.value
    if visible is None or capacity is None or not 1 < visible / capacity <= BINARY_GB / 1e9:
        return memory.visible_bytes
    sold, bytes_of_it = capacity / 1e9, capacity / 1e9 * BINARY_GB
    binary = f"above the capacity: makers write GB for 2^30 bytes, and {sold:g} of those are {bytes_of_it / 1e9:.4g} GB here"
    return replace(memory.visible_bytes, note="; ".join(filter(None, (memory.visible_bytes.note, binary))))


def _in(unit: float, name: str) -> Callable[[float], str]:
    return lambda value: f"{value / unit:.7g} {name}".rstrip()


def _named(figures: Figures, suffix: str, write: Callable[[float], str]) -> list[Entry]:
    return [Entry(f"{name}{suffix}", figure, write) for name, figure in figures.items()]


def _rates(figures: Figures) -> list[Entry]:
    return [Entry(name, figure, _in(1e12, f"T{rate_unit(name)}")) for name, figure in figures.items()]


def _link_heading(what: str, link: Link) -> str:
    parts = (link.name, f"{link.links} links" if link.links else "", f"gen {link.generation}" if link.generation else "")
    text = ", ".join(filter(None, (*parts, f"x{link.lanes}" if link.lanes else "", link.note)))
    return f"{what}: {text}" if text else what


def _link_entries(link: Link) -> list[Entry]:
    both, one = link.bidirectional_bytes_s, link.per_direction_bytes_s
    return [Entry("both directions", both, _in(1e9, "GB/s")), Entry("per direction", one, _in(1e9, "GB/s"))]


def _entry_lines(entry: Entry, documents: dict[Source, int]) -> list[str]:
    """Nothing for a figure that no source mentions; ``n/a``, with the reason, for one that sources leave open."""
    figure = entry.figure
    if figure == NOT_FOUND:
        return []
    value = UNKNOWN if figure.value is None else entry.write(figure.value)
    remarks = "; ".join(filter(None, (figure.derived, figure.note)))
    head = f"  {entry.label:<26} {value:>16}  {figure.confidence:<6} {_numbers(figure.sources, documents)}"
    return [f"{head}  {remarks}".rstrip()]


def _numbers(sources: Iterable[Source], documents: dict[Source, int]) -> str:
    """``[1][4]``: each document gets its number when it is first named."""
    return "".join(f"[{documents.setdefault(source, len(documents) + 1)}]" for source in sources)


def _address(source: Source) -> str:
    notes = {"vendor-quoted": "the maker's document as others quote it", "vendor-copy": "a copy of the maker's document"}
    return "".join(f", {text}" for text in (notes.get(source.kind, ""), source.url or "") if text)


def _check_line(check: Check) -> str:
    clock = UNKNOWN if check.clock_hz is None else f"{check.clock_hz / 1e6:g} MHz"
    computed = UNKNOWN if check.computed_flop_s is None else f"{check.computed_flop_s / 1e12:.5g}"
    mismatch = "" if check.mismatch is None else f" ({check.mismatch:+.1%})"
    unit = f"T{rate_unit(check.pipe)}"
    product = f"{check.units:g} x {check.ops_per_clock:g} x {clock} ({check.clock})"
    tail = "; ".join(filter(None, ("the clock follows from this peak" if check.circular else "", check.reason)))
    return f"  {check.pipe:<12} {product} = {computed} of {check.published_flop_s / 1e12:g} {unit}{mismatch}  {tail}".rstrip()


def _partition_lines(spec: HardwareSpec, documents: dict[Source, int]) -> list[str]:
    runtime, lines = spec.runtime, []
    if runtime.parts:
        parts = runtime.parts
        lines.append(f"  {parts.devices} {parts.name} device(s): {parts.note}  {_numbers(parts.sources, documents)}")
    if runtime.mig:
        shares = ", ".join(f"{name} {count}/{runtime.mig.memory_slices}" for name, count in runtime.mig.profiles.items())
        lines.append(f"  MIG, share of memory and bandwidth: {shares}  {_numbers(runtime.mig.sources, documents)}")
    if runtime.partitions:
        modes = ", ".join(f"{name} {n}" for name, n in {**runtime.partitions.compute, **runtime.partitions.memory}.items())
        lines.append(f"  modes and their number of parts: {modes}  {_numbers(runtime.partitions.sources, documents)}")
    return lines


def _fit_lines(found: Fits | None) -> list[str]:
    if found is None:
        return _block("what fits", ["  the memory size is not known"])
    usable, left_out = found.usable_bytes / 1e9, "activations, workspaces, the runtime and fragmentation"
    lines = [f"  {usable:.1f} GB for weights and KV cache: {found.memory_bytes / 1e9:.1f} GB less {RESERVE:.0%} for {left_out}"]
    lines += [f"  largest in {format}: {_largest(found.largest(format))}" for format in WEIGHT_BITS]
    lines += [f"  {_fit_line(row)}" for row in found.rows]
    models: dict[str, Model] = {row.model.id: row.model for row in found.rows}
    lines += [f"  {model.name} parameters: {model.arithmetic}; KV {model.kv_arithmetic}" for model in models.values()]
    return _block("what fits (one sequence, KV cache in 16 bits; - where the model itself does not go that far)", lines)


def _largest(row: Fit | None) -> str:
    return f"{row.model.name}, {_reach(row)}" if row else "none of the named models"


def _fit_line(row: Fit) -> str:
    contexts = " ".join(f"{context // 1024}k {_answer(row, context):<3}" for context in row.contexts)
    return f"{row.model.name:<15} {row.format:<6} {contexts}  {_reach(row)}: {row.arithmetic}"


def _answer(row: Fit, context: int) -> str:
    """Whether a context fits; ``-`` for one that the model itself does not go to, however much memory there is."""
    if context > row.model.max_context:
        return "-"
    return "yes" if row.contexts[context] else "no"


def _reach(row: Fit) -> str:
    if not row.max_context:
        return "does not fit"
    if row.max_context > row.model.max_context:
        return f"{row.model.max_context:,} tokens, the model's limit (memory for {row.max_context:,})"
    return f"up to {row.max_context:,} tokens"


def _block(heading: str, lines: Iterable[str]) -> list[str]:
    body = list(lines)
    return ["", heading, *body] if body else []
