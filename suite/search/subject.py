"""What is searched for: the fastest shape of a product (format, layout, data, implementation, switches) on one device."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from suite.case import Regime
from suite.jobs.gemm import GemmSettings
from suite.jobs.gemm.formats import NONE, variant_of
from suite.jobs.registry import find
from suite.jobs.shapes import Shape
from suite.multiplier import expected_pipe
from suite.plan import BURST, COLD, WARM, ceilings, parse_regime, plan
from suite.planned import DeviceSlot, PlannedCase
from suite.roofline import Ceilings
from suite.search.memory import most_bytes
from suite.search.name import SIZES, key_of, others_of, subject_words
from suite.search.settings import check_search
from suite.settings import RunConfig, SearchSettings

if TYPE_CHECKING:  # a plan without a search loads no numpy
    from suite.search.model import Machine
    from suite.search.space import Space

LONGEST_SHARE = 0.002  # of the budget: what one launch may take at the device's peak


class Outline(NamedTuple):
    """What a plan tells of a search: how many ``shapes`` its grid has, the grid's ``step``, a stand-in for each finalist.

    ``memory_bytes`` is the most that it may take at once, ``smallest`` the shape of the grid with the least to do.

    A stand-in is as long as a case that is looked at early; there are none where no shape fits in the device's memory.
    """

    shapes: int
    step: int
    stand_ins: tuple[PlannedCase, ...]
    memory_bytes: int
    smallest: Shape


@dataclass(frozen=True)
class Subject:
    """``example`` is the subject's case at any one shape: everything but the sizes is what is searched for."""

    config: RunConfig
    slot: DeviceSlot
    example: PlannedCase

    @property
    def name(self) -> str:
        """What tells it from the other subjects of its run: ``gemm bf16 library layout=nt data=normal``, then its switches."""
        case, workload = self.example.case, self.example.case.workload
        described = dict(workload.params), workload.distribution, dict(case.switches)
        return " ".join([workload.job, *subject_words(workload.format_label, case.implementation, *described)])

    @property
    def key(self) -> str:
        """The name under which its standings are kept with the run."""
        return key_of(self.name, self.slot.slot)

    @property
    def settings(self) -> SearchSettings:
        assert self.config.search is not None, "a subject belongs to a search"
        return self.config.search

    @property
    def regimes(self) -> tuple[Regime, ...]:
        """In which the best are measured: cold and sustained first, and cold from idle, unless others were asked for."""
        labels = dict.fromkeys(self.config.measure.regimes)
        found = [regime for label in labels for regime in ((COLD, BURST) if label == "standard" else (parse_regime(label),))]
        return tuple(sorted(dict.fromkeys(found), key=lambda regime: regime.load != "sustained"))

    def planned(self, shape: Shape, regime: Regime) -> PlannedCase:
        """The case of one shape in one regime, exactly as a run without a search would plan it."""
        return next(
            each for each in _planned(self.config, self.slot, self.example, shape, regime) if _alike(each, self.example)
        )

    def look(self, shape: Shape) -> PlannedCase:
        """The case that a look launches: on one input set, which is all it prepares."""
        return self.planned(shape, WARM)

    @property
    def most_flop_s(self) -> float | None:
        """What the device cannot exceed, by its sheet; ``None`` where the sheet is derived or knows nothing of the format."""
        limits = ceilings(self.slot.info, self.config)
        if limits is None or limits.spec is None or limits.spec.derived:
            return None
        return limits.boost_flop_s(self.example.work.pipe)

    @cached_property
    def peak_flop_s(self) -> float | None:
        """The rate by which launches are reckoned; ``None`` where it is not known."""
        limits = ceilings(self.slot.info, self.config)
        return self._peak_flop_s(limits) if limits else None

    @property
    def _reckoned_flop_s(self) -> float:
        from suite.search.model import UNKNOWN_FLOP_S

        return self.peak_flop_s or UNKNOWN_FLOP_S

    @property
    def longest_s(self) -> float:
        """What one launch may take at the device's peak to be looked at."""
        longest_s = LONGEST_SHARE * self.settings.budget_s
        return longest_s if self.config.max_kernel_s is None else min(longest_s, self.config.max_kernel_s)

    def space(self) -> "Space":
        """The shapes that can be looked at."""
        from suite.search.space import space

        machine = self._machine(ceilings(self.slot.info, self.config), self._reckoned_flop_s)
        depth = variant_of(self.example.case.workload).depth
        return space(self.settings, machine, self.element_bytes(), self.longest_s * self._reckoned_flop_s, depth)

    def candidates(self) -> Iterator[Shape]:
        """What to look at, in order; the shapes that the job names first.  No grid is made before the first is asked for."""
        yield from self._candidates(self.space())

    @cached_property
    def outline(self) -> Outline:
        """Made once and without the grid, whose arrays are not for keeping."""
        space = self.space()
        first = list(islice(self._candidates(space), self.settings.finalists))
        like = [self.planned(first[-1], regime) for regime in self.regimes] if first else []
        stand_ins = tuple(each for each in like for _ in first)
        return Outline(
            len(space.shapes),
            space.step,
            stand_ins,
            max([most_bytes(self, space), *(each.memory_bytes for each in like)]) if first else 0,
            Shape(*map(int, min(space.shapes.tolist(), key=math.prod))),
        )

    def fits(self, shape: Shape) -> bool:
        """Whether the device has the memory to measure a shape in every regime."""
        return not self.no_room(shape)

    def no_room(self, shape: Shape) -> str:
        """Why the device has not the memory to measure a shape in every regime; empty where it has."""
        planned = (self.planned(shape, regime) for regime in self.regimes)
        return next((each.reason for each in planned if each.verdict is not None), "")

    def least_s(self, shape: Shape) -> float:
        """What one launch takes at the device's peak, or at an assumed one where that is not known."""
        return shape.flops / self._reckoned_flop_s

    def is_too_long(self, shape: Shape) -> bool:
        """Whether a launch of a shape takes longer than looks have time for."""
        return shape.flops > self.longest_s * self._reckoned_flop_s

    @property
    def named(self) -> list[Shape]:
        """The shapes that the job names itself, models included."""
        return _given(self.config)

    def _candidates(self, space: "Space") -> Iterator[Shape]:
        from suite.search.space import candidates

        return (shape for shape in candidates(space, self.named, self.config.seed) if self.fits(shape))

    def _peak_flop_s(self, limits: Ceilings) -> float | None:
        """Of the unit that is expected to multiply, as a plan has it: a format without one of its own is converted."""

        def lacks(pipe: str | None) -> bool:
            return pipe is not None and limits.peak_flop_s(pipe) is None

        return limits.peak_flop_s(expected_pipe(self.example.case.workload, self.example.work, limits.info, lacks))

    def _machine(self, limits: Ceilings | None, peak_flop_s: float) -> "Machine":
        from suite.search.model import Machine

        if limits is None:
            return Machine(peak_flop_s=peak_flop_s)
        return Machine(limits.info.visible_units or 1, limits.llc_bytes, peak_flop_s, limits.bandwidth_bytes_s)

    def element_bytes(self) -> tuple[float, float]:
        """Bytes of an element of an operand and of the output."""
        case = self.example.case
        m, n, k = (int(case.workload.param(name)) for name in SIZES)
        footprint = find(case.workload.job).footprint(case.workload, case.switches)
        return footprint.input_bytes / (m * k + k * n), footprint.output_bytes / (m * n)


def subjects(config: RunConfig, slots: Sequence[DeviceSlot]) -> list[Subject]:
    """Every subject on every slot, formats in their order.  ``UsageError`` for a job whose shapes are not searched for."""
    check_search(config)
    smallest = Shape(*[_settings(config).step] * 3)
    return [Subject(config, slot, each) for slot in slots for each in _planned(config, slot, None, smallest, COLD)]


def _planned(
    config: RunConfig, slot: DeviceSlot, example: PlannedCase | None, shape: Shape, regime: Regime
) -> tuple[PlannedCase, ...]:
    """Plan one shape in one regime: of every subject, or of those of one format."""
    (job,) = config.jobs.values()
    assert isinstance(job, GemmSettings)
    at_shape = replace(job, shapes=[shape_text(shape)], models=[])
    if example is not None:  # a K that suits it need not suit another format, nor another scaling of its own
        semantics = dict(example.case.workload.semantics)
        scaled: dict[str, Any] = {"scaling": semantics.get("scaling", NONE), "zero_point": bool(semantics.get("zero_point"))}
        at_shape = replace(at_shape, formats=[example.case.workload.format], **scaled)
    measure = replace(config.measure, regimes=[regime.label], interleave=1)
    whole = replace(config, search=None, jobs={job.name: at_shape}, measure=measure, oversize="record", max_cases=None)
    return plan(replace(whole, max_kernel_s=None), [slot], calibrated=[slot.slot])


def shape_text(shape: Shape) -> str:
    """``8192x4096x1024``."""
    return "x".join(map(str, shape))


def shape_of(planned: PlannedCase) -> Shape:
    """The sizes of a case."""
    return Shape(*(int(planned.case.workload.param(name)) for name in SIZES))


def _alike(one: PlannedCase, other: PlannedCase) -> bool:
    return _identity(one) == _identity(other)


def _identity(planned: PlannedCase) -> tuple[Any, ...]:
    case, workload = planned.case, planned.case.workload
    others = tuple(others_of(dict(workload.params)).items())
    return case.implementation, case.switches, workload.format, workload.distribution, workload.semantics, others


def _settings(config: RunConfig) -> SearchSettings:
    assert config.search is not None, "subjects are those of a search"
    return config.search


def _given(config: RunConfig) -> list[Shape]:
    """The shapes that the job names itself, models included."""
    (job,) = config.jobs.values()
    found = (workload for workload in find(job.name).workloads(job))
    return list(dict.fromkeys(Shape(*(int(workload.param(name)) for name in SIZES)) for workload in found))
