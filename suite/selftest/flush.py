"""Flush: whether a cold case is cold.  A flush that is large enough can be doubled and changes nothing beyond noise.

Doubling shows a flush that is too small.  One that does nothing shows otherwise: a case whose data fit in the cache is
then as fast cold as warm, and faster than the memory that it claims to come from.
"""

from collections.abc import Sequence
from typing import NamedTuple

from suite.backend import DeviceInfo
from suite.outcome import Bound
from suite.report.words import counted
from suite.selftest.record import Finding, Repeatability, Status
from suite.selftest.taken import Passes, Taken, calibration, change, in_cycles, kinds, paired, products
from suite.selftest.words import per_cent

NAME = "flush"
LEAST_NOISE = 0.01  # what repeated measurements are asked to agree within
FASTER_THAN_MEMORY = 1.1  # read, copy and triad are good to this against a product's stream of weights
GAP_IN_NOISE = 2  # how much slower than warm a cold case must be for a failing flush to show in it


class Cold(NamedTuple):
    """One cold case: how much slower a doubled flush made it, the noise of that, and how it stands to its warm twin.

    ``gap`` is how much slower than warm it is; ``over_memory`` its bytes per second over the best of the calibration;
    both ``None`` where they say nothing: no twin, data beyond the cache, arithmetic that hides the memory.
    """

    taken: Taken
    slower: float
    noise: float
    gap: float | None
    over_memory: float | None

    @property
    def is_warm(self) -> bool:
        """Whether the data came from the cache."""
        if self.slower > self.noise:
            return True
        outruns = self.over_memory is not None and self.over_memory > FASTER_THAN_MEMORY
        return outruns and self.gap is not None and self.gap <= self.noise

    @property
    def tells(self) -> bool:
        """Whether a flush that does nothing, or half, would show here."""
        return self.gap is not None and self.gap > GAP_IN_NOISE * self.noise


def finding(passes: Passes, info: DeviceInfo, known: Repeatability | None) -> Finding:
    """Fails where a cold case is not cold; warns where nothing that was measured could show it."""
    if not paired(passes.first, passes.doubled):
        return Finding(NAME, Status.UNAVAILABLE, passes.undoubled or "no cold case was timed with a doubled flush")
    cases = cold_cases(passes, info, known)
    if not cases:
        return Finding(NAME, Status.UNAVAILABLE, "every cold case was measured beside other work: repeat it on a quiet device")
    warm = [case for case in cases if case.is_warm]
    figures = _figures(cases)
    if warm:
        return Finding(NAME, Status.FAIL, _not_cold(warm, cases), figures)
    telling = [case for case in cases if case.tells]
    most = max(cases, key=lambda case: case.slower)
    changes = f"a doubled flush makes {counted(len(cases), 'cold case')} at most {per_cent(max(0.0, most.slower))} slower"
    if not telling:
        doubt = "no case is so much slower cold than warm that a flush without effect would show"
        return Finding(NAME, Status.WARN, f"{changes}, but {doubt}: how cold they are is not known", figures)
    gap = max(case.gap or 0.0 for case in telling)
    return Finding(
        NAME, Status.OK, f"{changes}, within the noise, where cold is up to {per_cent(gap)} slower than warm", figures
    )


def cold_cases(passes: Passes, info: DeviceInfo, known: Repeatability | None) -> list[Cold]:
    """The cold cases that were measured with the flush as it is and doubled, and never beside other work."""
    again = {taken.row.case_key: taken for taken in products(passes.again)}
    found = []
    for first, doubled in paired(passes.first, passes.doubled):
        second = again.get(first.row.case_key, first)
        if not any(taken.row.contended for taken in (first, second, doubled)):
            found.append(_cold(passes, info, known, (first, second, doubled)))
    return found


def _cold(passes: Passes, info: DeviceInfo, known: Repeatability | None, measured: tuple[Taken, Taken, Taken]) -> Cold:
    first, second, doubled = measured
    kind = kinds(passes.first)[first.row.case_key]
    cycles = kind is Bound.COMPUTE and all(map(in_cycles, measured))
    repeats = known and (known.cycles_rel if kind is Bound.COMPUTE else known.bytes_rel)
    return Cold(
        taken=first,
        slower=min(change(first, doubled, cycles), change(second, doubled, cycles)),
        noise=first.half_width + doubled.half_width + max(LEAST_NOISE, repeats or 0.0),
        gap=_gap(passes, info, first, kind),
        over_memory=_over_memory(passes, first) if kind is not Bound.COMPUTE else None,
    )


def _gap(passes: Passes, info: DeviceInfo, cold: Taken, kind: Bound) -> float | None:
    """How much slower the case is cold than warm, where its data fit in the cache."""
    if info.llc_bytes is None or cold.row.compulsory_bytes > info.llc_bytes:
        return None
    for taken in products(passes.first):
        row = taken.row
        same = row.workload_key == cold.row.workload_key and row.implementation == cold.row.implementation
        if same and row.cache == "warm" and not row.contended:
            return change(taken, cold, kind is Bound.COMPUTE and all(map(in_cycles, (taken, cold))))
    return None


def _over_memory(passes: Passes, cold: Taken) -> float | None:
    """Rate over the best that the calibration saw; ``None`` where that was held back by other work."""
    if any(taken.row.contended for taken in passes.first if taken.row.job == "calibration"):
        return None
    best = calibration(passes.first).best_bytes_s
    return cold.row.bytes_s / best if best and cold.row.bytes_s else None


def _not_cold(warm: Sequence[Cold], cases: Sequence[Cold]) -> str:
    worst = max(warm, key=lambda case: case.slower - case.noise)
    of = f"{len(warm)} of {counted(len(cases), 'cold case')}"
    if worst.slower > worst.noise:
        return (
            f"cold is not cold: {of} came from the cache; with everything doubled {worst.taken.name} is "
            f"{per_cent(worst.slower)} slower (noise {per_cent(worst.noise)}): raise backends.*.options.flush_factor or "
            "measure.cold_margin"
        )
    return (
        f"cold is not cold: {of} came from the cache; {worst.taken.name} is as fast as warm and "
        f"{worst.over_memory:.2g} times as fast as memory: the flush has no effect"
    )


def _figures(cases: Sequence[Cold]) -> dict[str, float | str | None]:
    worst = max(cases, key=lambda case: case.slower - case.noise)
    return {
        "cold_cases": len(cases),
        "telling_cases": sum(case.tells for case in cases),
        "warm_cases": sum(case.is_warm for case in cases),
        "worst_case": worst.taken.name,
        "worst_slower_rel": worst.slower,
        "worst_noise_rel": worst.noise,
        "cold_over_warm_rel": max((case.gap for case in cases if case.gap is not None), default=None),
    }
