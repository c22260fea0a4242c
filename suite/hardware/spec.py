"""What an accelerator can do at most, as its maker declares it, in base units (FLOP/s, bytes, bytes/s, Hz, W).

Every figure carries its source and confidence.  A matched spec also holds what the device reports of itself where that
outranks the sheet: clocks, caches, unit counts and memory.  The sheet outranks the device for peak rates.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Self

from suite.hardware.codec import from_plain, to_plain
from suite.hardware.figure import NOT_FOUND, Figure, Figures, Source
from suite.hardware.runtime import Runtime
from suite.outcome import Evidence

PIPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4")
RATES = ("fp64", "fp64_tensor", "fp32", "fp32_matrix", "tf32", "fp16_vector", *PIPES[3:])
# A matrix product runs on the matrix unit wherever the device has one for the type.
MATRIX_FIRST = {"fp64": ("fp64_tensor", "fp64"), "fp32": ("fp32_matrix", "fp32")}
# Rates that a sheet has in ``peak_variants`` where they differ from the peak that stands in for them on the others: a GeForce
# card adds fp16 products up in fp16 at twice the rate of its fp16 peak, which is for sums in fp32.
VARIANTS = {"fp16_acc_fp16": "fp16"}
# Over which ranks talk, where no arithmetic is meant: no sheet has a rate of operations for them.
DEVICE_LINK = "device_link"
LINKS = (DEVICE_LINK, "shared_gpu", "host")
_SEVERAL = re.compile(r"(?P<rate>\w+)x(?P<products>[1-9]\d*)")


class Pipe(NamedTuple):
    """What a pipe's name says: a rate of ``RATES`` or ``VARIANTS``, or a link, and how many products at that rate make one.

    ``bf16x9`` multiplies at the rate of ``bf16``, nine times for each product: its peak is a ninth of it.
    """

    rate: str
    products: int = 1

    @property
    def unit(self) -> str:
        """The rate of ``RATES`` that it is, or that stands in for it."""
        return VARIANTS.get(self.rate, self.rate)


@cache
def parse_pipe(name: str) -> Pipe:
    """Read a pipe's name; ``ValueError`` for what is none."""
    several = _SEVERAL.fullmatch(name)
    pipe = Pipe(several["rate"], int(several["products"])) if several else Pipe(name)
    if pipe.rate not in RATES and pipe.rate not in VARIANTS and name not in LINKS:
        raise ValueError(f"'{name}' is no pipe; pipes are {', '.join((*RATES, *VARIANTS))}, or several products as in bf16x9")
    return pipe


def is_pipe(name: str | None) -> bool:
    """Whether a name can be asked for a peak: a store of a newer version may have others."""
    try:
        return name is not None and bool(parse_pipe(name))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Clocks:
    """``boost_hz`` is the maximum; ``tensor_peak_hz`` the clock behind the published matrix peaks, where it is another."""

    boost_hz: Figure = NOT_FOUND
    base_hz: Figure = NOT_FOUND
    tensor_peak_hz: Figure = NOT_FOUND


@dataclass(frozen=True, slots=True)
class Memory:
    """``visible_bytes`` is what a runtime shows of ``capacity_bytes``."""

    type: str | None = None
    bus_bits: int | None = None
    capacity_bytes: Figure = NOT_FOUND
    visible_bytes: Figure = NOT_FOUND
    bandwidth_bytes_s: Figure = NOT_FOUND


@dataclass(frozen=True, slots=True)
class Caches:
    """``llc_bytes`` is a memory-side cache behind the L2 (AMD's Infinity Cache) or a CPU's last level, ``on_chip_bytes`` are
    scratchpads by name.
    """

    l2_bytes: Figure = NOT_FOUND
    llc_bytes: Figure = NOT_FOUND
    l1_per_unit_bytes: Figure = NOT_FOUND
    shared_memory_per_unit_bytes: Figure = NOT_FOUND
    registers_per_unit_bytes: Figure = NOT_FOUND
    on_chip_bytes: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Threads:
    """Limits of one compute unit."""

    warp_size: Figure = NOT_FOUND
    max_warps_per_unit: Figure = NOT_FOUND
    max_threads_per_unit: Figure = NOT_FOUND


@dataclass(frozen=True, slots=True)
class Link:
    """Bandwidth of the whole accelerator: all links, both directions together, and each direction alone."""

    name: str | None = None
    links: int | None = None
    generation: int | None = None
    lanes: int | None = None
    bidirectional_bytes_s: Figure = NOT_FOUND
    per_direction_bytes_s: Figure = NOT_FOUND
    note: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A published peak against units x operations per clock x clock; ``circular`` where the clock came from that peak."""

    pipe: str
    units: float
    ops_per_clock: float
    clock: str
    clock_hz: float | None
    published_flop_s: float
    circular: bool = False
    reason: str = ""

    @property
    def computed_flop_s(self) -> float | None:
        """``None`` where no clock is published."""
        return None if self.clock_hz is None else self.units * self.ops_per_clock * self.clock_hz

    @property
    def mismatch(self) -> float | None:
        """Computed over published, less 1."""
        return None if self.computed_flop_s is None else self.computed_flop_s / self.published_flop_s - 1


@dataclass(frozen=True, slots=True)
class HardwareSpec:
    """One accelerator, or the part of one that ``part`` names.

    ``units`` are compute units (SM, CU, TensorCore, core); ``peaks`` dense rates by name of ``RATES``; ``ops_per_clock`` the
    same per unit and clock.  ``derived`` is true for a CPU, whose figures follow from cores, clock and vector width.
    """

    id: str
    name: str
    vendor: str
    unit_name: str
    units: Figure
    memory: Memory
    peaks: Figures
    ops_per_clock: Figures = field(default_factory=dict)
    clocks: Clocks = field(default_factory=Clocks)
    caches: Caches = field(default_factory=Caches)
    threads: Threads = field(default_factory=Threads)
    runtime: Runtime = field(default_factory=Runtime)
    interconnect: Link = field(default_factory=Link)
    host_link: Link = field(default_factory=Link)
    tdp_w: Figure = NOT_FOUND
    measured_power_w: Figure = NOT_FOUND
    peak_variants: Figures = field(default_factory=dict)
    sparse_peaks: Figures = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    formats: tuple[str, ...] = ()
    format_sources: tuple[Source, ...] = ()
    architecture: str = ""
    form_factor: str = ""
    status: str = ""
    unit_detail: str = ""
    release: Figure = NOT_FOUND
    notes: tuple[str, ...] = ()
    part: str = ""
    derived: bool = False
    evidence: str = Evidence.DECLARED.value

    def peak_flop_s(self, pipe: str) -> float | None:
        """Dense rate of matrix products on ``pipe``, FLOP/s (operations for integers); ``None`` where none is declared.

        Of a pipe of several products (``bf16x9``) the rate of what they make.
        """
        rate, products = parse_pipe(pipe)
        peak = self.peak_variants.get(rate, NOT_FOUND).value if rate in VARIANTS else None
        if peak is None:
            peak = self.peaks.get(self._entry(rate), NOT_FOUND).value
        return None if peak is None else peak / products

    def flop_per_clock(self, pipe: str) -> float | None:
        """Operations per clock of the whole device on ``pipe``; ``None`` without a unit count or a rate per unit.

        Of a variant that the sheet lists, as many times the operations of its unit as its peak is of the unit's.
        """
        rate, products = parse_pipe(pipe)
        per_unit, times = self.ops_per_clock.get(self._entry(rate), NOT_FOUND).value, self._times_entry(rate)
        if per_unit is None or times is None or self.units.value is None:
            return None
        return self.units.value * per_unit * times / products

    def lists(self, pipe: str) -> bool:
        """Whether the rate of ``pipe`` is its own here, and not another one that stands in for it."""
        rate = parse_pipe(pipe).rate
        return rate not in VARIANTS or self.peak_variants.get(rate, NOT_FOUND).value is not None

    def boost_flop_s(self, pipe: str, clock_hz: float) -> float | None:
        """The rate of ``pipe`` if every unit ran at ``clock_hz``, FLOP/s."""
        per_clock = self.flop_per_clock(pipe)
        return None if per_clock is None else per_clock * clock_hz

    @property
    def bandwidth_bytes_s(self) -> float | None:
        """Peak bandwidth of the device memory."""
        return self.memory.bandwidth_bytes_s.value

    @property
    def memory_bytes(self) -> int | None:
        """Device memory as a runtime shows it, or the capacity on the sheet."""
        return _whole(self.memory.visible_bytes.value or self.memory.capacity_bytes.value)

    @property
    def llc_bytes(self) -> int | None:
        """The last cache before the memory: the larger of L2 and memory-side cache."""
        sizes = [figure.value for figure in (self.caches.l2_bytes, self.caches.llc_bytes) if figure.value is not None]
        return _whole(max(sizes, default=None))

    @property
    def device_names(self) -> tuple[str, ...]:
        """Exact runtime strings of this accelerator."""
        return tuple(name.string for name in self.runtime.device_names)

    @property
    def title(self) -> str:
        """Name for people, with the part where it is one."""
        return f"{self.name} ({self.part})" if self.part else self.name

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        spec: Self = from_plain(cls, data)
        return spec

    def _times_entry(self, rate: str) -> float | None:
        """How many times its entry a rate is: 1 but for a variant that the sheet lists."""
        if rate not in VARIANTS or not self.lists(rate):
            return 1.0
        variant, peak = self.peak_flop_s(rate), self.peak_flop_s(VARIANTS[rate])
        return variant / peak if variant and peak else None

    def _entry(self, rate: str) -> str:
        """The entry of ``peaks`` and ``ops_per_clock`` that a matrix product at a rate runs on."""
        options = MATRIX_FIRST.get(rate)
        if options is None:
            return VARIANTS.get(rate, rate)
        known = (rate for table in (self.peaks, self.ops_per_clock) for rate in options if table.get(rate, NOT_FOUND).value)
        return next(known, options[-1])


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
