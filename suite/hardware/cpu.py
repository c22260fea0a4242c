"""A CPU's peaks, derived from cores, clock and instruction set: an estimate that is labelled as one and refuses no result.

The rates are what one core can retire per clock if its vector units are as wide as the assumption says; a clock that drops
under wide vectors, a missing second unit or a guest's reported clock make them wrong by a factor of up to two.  Where no
maximum clock can be read, the remark says ``nominal clock``: the cores run faster than the peak assumes whenever they boost.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from suite.hardware.figure import NOT_FOUND, Figure, Source, reported
from suite.hardware.spec import Caches, Clocks, HardwareSpec, Memory

if TYPE_CHECKING:  # the contracts import numpy, which deriving a spec does without
    from suite.backend import DeviceInfo

ID = "cpu"
DERIVED = Source("derived from the cores, clock and instruction set that the CPU reports", kind="computed")


class Rate(NamedTuple):
    """Operations per clock and core, and the assumption they rest on; the CPU needs one of ``flags``."""

    flags: tuple[str, ...]
    per_clock: int
    assumption: str


# The first rate whose flag the CPU reports applies; flags are those of Linux' /proc/cpuinfo.
FP64 = (
    Rate(("avx512f",), 32, "AVX-512 with two 512-bit FMA units: 8 lanes x 2 units x 2; parts with one unit do half"),
    Rate(("fma", "avx2"), 16, "AVX2 with two 256-bit FMA units: 4 lanes x 2 units x 2"),
    Rate(("avx",), 8, "AVX with a 256-bit multiply and a 256-bit add: 4 lanes x 2"),
    Rate(("sse2",), 4, "SSE2 with a 128-bit multiply and a 128-bit add: 2 lanes x 2"),
    Rate(("sve",), 16, "SVE with 512 bits of FMA a clock, as Neoverse V1 and V2 have: 8 lanes x 2; N2 does half"),
    Rate(("asimd",), 8, "NEON with two 128-bit FMA units: 2 lanes x 2 units x 2"),
)
FP32 = tuple(Rate(rate.flags, 2 * rate.per_clock, f"twice fp64's lanes; {rate.assumption}") for rate in FP64)
FP16 = (
    Rate(("amx_fp16",), 1024, "one AMX unit: 16 x 16 x 32 products in 16 clocks x 2"),
    Rate(("avx512_fp16",), 128, "AVX-512 FP16 with two 512-bit FMA units: 32 lanes x 2 units x 2"),
    Rate(("sve",), 64, "SVE with 512 bits of FMA a clock: 32 lanes x 2"),
    Rate(("asimdhp",), 32, "NEON with two 128-bit FMA units: 8 lanes x 2 units x 2"),
)
BF16 = (
    Rate(("amx_bf16",), 1024, "one AMX unit: 16 x 16 x 32 products in 16 clocks x 2"),
    Rate(("avx512_bf16",), 128, "AVX-512 BF16 dot products on two 512-bit units: 32 products x 2 units x 2"),
    Rate(("bf16",), 32, "NEON BF16 dot products on two 128-bit units: 8 products x 2 units x 2"),
)
INT8 = (
    Rate(("amx_int8",), 2048, "one AMX unit: 16 x 16 x 64 products in 16 clocks x 2"),
    Rate(("avx512_vnni",), 256, "AVX-512 VNNI on two 512-bit units: 64 products x 2 units x 2"),
    Rate(("avx_vnni",), 128, "AVX-VNNI on two 256-bit units: 32 products x 2 units x 2"),
    Rate(("i8mm",), 128, "NEON matrix products on two 128-bit units: 32 products x 2 units x 2"),
    Rate(("asimddp",), 64, "NEON dot products on two 128-bit units: 16 products x 2 units x 2"),
)
MAXIMUM_BY = "cpufreq"  # the one source of a maximum clock, as ``details["clock_source"]`` names it
NOMINAL = "nominal clock"
NO_BANDWIDTH = "a CPU's memory bandwidth cannot be read from it; the calibrated read, copy and triad are its memory roof"


def derive(info: "DeviceInfo") -> HardwareSpec:
    """The spec of a CPU from its cores (``visible_units``), ``max_clock_hz`` and ``isa``; no peaks without all three."""
    rates = _rates(frozenset(flag.lower() for flag in info.isa))
    return HardwareSpec(
        id=ID,
        name=info.name,
        vendor="CPU",
        architecture=info.architecture or "",
        unit_name="core",
        units=NOT_FOUND if info.visible_units is None else reported(info.visible_units, NOT_FOUND),
        clocks=Clocks(boost_hz=_clock(info)),
        memory=Memory(
            visible_bytes=reported(info.memory_bytes, NOT_FOUND),
            bandwidth_bytes_s=Figure(note=NO_BANDWIDTH),
        ),
        caches=Caches(llc_bytes=NOT_FOUND if info.llc_bytes is None else reported(info.llc_bytes, NOT_FOUND)),
        peaks={pipe: _peak(rate, info) for pipe, rate in rates.items()},
        ops_per_clock={pipe: _figure(rate.per_clock, rate.assumption) for pipe, rate in rates.items()},
        derived=True,
    )


def _clock(info: "DeviceInfo") -> Figure:
    if info.max_clock_hz is None:
        return NOT_FOUND
    return replace(reported(info.max_clock_hz, NOT_FOUND), note=NOMINAL if is_nominal(info) else "")


def is_nominal(info: "DeviceInfo") -> bool:
    """Whether the clock is what a label says: a guest sees no other, and without cpufreq no maximum can be read."""
    return info.details.get("guest") == "yes" or not info.details.get("clock_source", "").startswith(MAXIMUM_BY)


def _rates(flags: frozenset[str]) -> dict[str, Rate]:
    """The rate of each pipe; 16-bit floats without instructions of their own are converted and computed in fp32."""
    fp32 = _first(FP32, flags)
    converted = fp32._replace(assumption=f"converted to fp32; {fp32.assumption}") if fp32 else None
    rates = {
        "fp64": _first(FP64, flags),
        "fp32": fp32,
        "fp16": _first(FP16, flags) or converted,
        "bf16": _first(BF16, flags) or converted,
        "int8": _first(INT8, flags),
    }
    return {pipe: rate for pipe, rate in rates.items() if rate is not None}


def _first(rates: tuple[Rate, ...], flags: frozenset[str]) -> Rate | None:
    return next((rate for rate in rates if not flags.isdisjoint(rate.flags)), None)


def _peak(rate: Rate, info: "DeviceInfo") -> Figure:
    if not info.max_clock_hz or not info.visible_units:
        missing = "maximum clock" if info.visible_units else "core count"
        return Figure(sources=(DERIVED,), note=f"the CPU reports no {missing}, so no peak follows")
    clock = f"{info.max_clock_hz / 1e9:g} GHz{f' {NOMINAL}' if is_nominal(info) else ''}"
    how = f"{info.visible_units} cores x {rate.per_clock} a clock x {clock}; {rate.assumption}"
    return _figure(info.visible_units * rate.per_clock * info.max_clock_hz, how)


def _figure(value: float, derived: str) -> Figure:
    return Figure(value, (DERIVED,), "low", derived=derived)
