"""What a selftest is judged from: the results of its passes on one device, and how they belong together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from suite.measure.others import unknown
from suite.measurement import Measurement
from suite.outcome import Bound
from suite.report.words import half_width_cycles, relative_half_width
from suite.roofline import ridge_point
from suite.rows import Calibration, ResultRow, base_name


class Taken(NamedTuple):
    """One case that was carried out: its row and the raw measurement.

    ``assumed_alone`` says why nobody can tell of any case of its device whether others were there, which is then assumed not
    to be so; empty where it is told of some.
    """

    row: ResultRow
    measurement: Measurement
    assumed_alone: str = ""

    @property
    def name(self) -> str:
        """``16x4096x4096 bf16 cold``, with the load where it is a burst."""
        row = self.row
        sizes = "x".join(str(row.params[name]) for name in ("m", "n", "k") if name in row.params)
        load = "" if row.load == "sustained" else f" {row.load}"
        return f"{sizes or row.params.get('op', row.job)} {row.format} {row.cache}{load}"

    @property
    def half_width(self) -> float:
        """Relative half width of the median's 95 % interval; 0 where there is none."""
        return relative_half_width(self.row) or 0.0

    def half_width_in(self, cycles: bool) -> float:
        """The same in the unit that is compared: narrower in cycles, where they were counted, as the clock moves."""
        counted = half_width_cycles(self.row) if cycles else None
        return self.half_width if counted is None else counted

    @property
    def is_quiet(self) -> bool:
        """Whether nobody else used the device meanwhile, as is known or, where nothing would ever tell, assumed."""
        return self.row.contended is False or (self.row.contended is None and bool(self.assumed_alone))


@dataclass(frozen=True, slots=True)
class Passes:
    """The results of each pass, in the order in which they were taken; ``undoubled`` is why ``doubled`` has none."""

    first: tuple[Taken, ...] = ()
    load: tuple[Taken, ...] = ()
    doubled: tuple[Taken, ...] = ()
    again: tuple[Taken, ...] = ()
    undoubled: str = ""

    def __iter__(self) -> Iterator[Taken]:
        yield from (*self.first, *self.load, *self.doubled, *self.again)

    @property
    def timed(self) -> list[Taken]:
        """Every case that has a time."""
        return [each for each in self if is_timed(each)]


def told_by_nobody(passes: Passes) -> Passes:
    """The passes of a device whose driver lists processes, or does not: where it told of no case, each is assumed alone."""
    if any(each.row.contended is not None for each in passes.timed):
        return passes
    return replace(
        passes,
        first=_assumed_alone(passes.first),
        load=_assumed_alone(passes.load),
        doubled=_assumed_alone(passes.doubled),
        again=_assumed_alone(passes.again),
    )


def _assumed_alone(taken: Iterable[Taken]) -> tuple[Taken, ...]:
    """Each with the reason why that is not known."""
    return tuple(each._replace(assumed_alone=unknown(each.row.load, each.measurement, is_cpu=False).why) for each in taken)


def is_timed(taken: Taken) -> bool:
    """Whether it ended with a time."""
    return taken.row.p50_s is not None


def products(taken: Iterable[Taken]) -> list[Taken]:
    """The matrix products that ended with a time."""
    return [each for each in taken if each.row.job == "gemm" and is_timed(each)]


def paired(first: Iterable[Taken], second: Iterable[Taken]) -> list[tuple[Taken, Taken]]:
    """The products that both passes timed."""
    later = {each.row.case_key: each for each in products(second)}
    return [(each, later[each.row.case_key]) for each in products(first) if each.row.case_key in later]


def calibration(taken: Iterable[Taken]) -> Calibration:
    """The device's base figures as one pass measured them."""
    figures: dict[str, Any] = dict(base_figures(taken))
    return Calibration(**figures)


def base_figures(taken: Iterable[Taken]) -> dict[str, float]:
    """The figures of ``Calibration`` that one pass measured."""
    figures: dict[str, float] = {}
    for row in (each.row for each in taken if each.row.job == "calibration"):
        op = str(row.params["op"])
        name, value = base_name(op, row.dispatch), row.p50_s if op == "empty" else row.bytes_s
        if name is not None and value is not None:
            figures[name] = value
    return figures


def kinds(first: Sequence[Taken]) -> Mapping[str, Bound]:
    """What bounds each product, by case key: as its row says, else by the ridge of the best rates that were measured."""
    bandwidth = calibration(first).best_bytes_s
    found = {}
    for taken in products(first):
        row = taken.row
        found[row.case_key] = Bound(row.bound or Bound.UNKNOWN)
        if found[row.case_key] is Bound.UNKNOWN:
            best = max(each.row.flop_s or 0.0 for each in products(first) if each.row.format == row.format)
            below = bandwidth is not None and row.arithmetic_intensity < ridge_point(best, bandwidth)
            found[row.case_key] = Bound.MEMORY if below else Bound.COMPUTE
    return found


def in_cycles(taken: Taken) -> float | None:
    """The median in cycles of the device's own counter."""
    row = taken.row
    return row.p50_s * row.clock_hz if row.p50_s is not None and row.clock_hz else None


def change(before: Taken, after: Taken, cycles: bool) -> float:
    """Relative change of the median, in cycles or in time; both must have been timed, and counted where cycles are meant."""
    first, second = (in_cycles(each) if cycles else each.row.p50_s for each in (before, after))
    assert first is not None, "nothing to compare with"
    assert second is not None, "nothing to compare"
    return second / first - 1
