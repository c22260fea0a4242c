"""What a sheet does not say that results are held against, by the key of a file under which it would stand."""

from collections.abc import Iterator
from typing import NamedTuple

from suite.hardware.figure import NOT_FOUND
from suite.hardware.spec import PIPES, HardwareSpec


class Lack(NamedTuple):
    """A key of the file, the pipes in question where it is one of several, and what does without it."""

    key: str
    without: str
    pipes: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """``peaks_tflop_s.fp64``, for each pipe; else the key."""
        return tuple(f"{self.key}.{pipe}" for pipe in self.pipes) or (self.key,)


def lacks(spec: HardwareSpec) -> tuple[Lack, ...]:
    """Every one, in the order of a file; none of a derived spec, which is no sheet.  A null with its reason is an answer."""
    return () if spec.derived else tuple(_lacks(spec))


def _lacks(spec: HardwareSpec) -> Iterator[Lack]:
    peaks = tuple(pipe for pipe in PIPES if pipe not in spec.peaks)
    rates = tuple(pipe for pipe in spec.peaks if pipe not in spec.ops_per_clock and spec.peaks[pipe].value is not None)
    figures = (
        (Lack("units.count", "the device's own count is taken, and a part of it is not recognised"), spec.units),
        (Lack("clocks_mhz.boost", "the maximum clock is what the device reports, if it does"), spec.clocks.boost_hz),
        (Lack("memory.bandwidth_gb_s", "the memory roof is the measured one"), spec.memory.bandwidth_bytes_s),
        (Lack("caches.l2_mb", "the last-level cache is what the device reports, if it does"), spec.caches.l2_bytes),
    )
    yield from (lack for lack, figure in figures if figure == NOT_FOUND)
    if rates:
        yield Lack("ops_per_clock_per_unit", f"no share of boost or at clock: {', '.join(rates)}", rates)
    if peaks:
        told = f"no share of spec, should the device have a unit for them: {', '.join(peaks)}"
        yield Lack("peaks_tflop_s", told, peaks)
