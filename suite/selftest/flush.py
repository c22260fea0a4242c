"""Flush: whether a cold case is cold.  A flush that is large enough can be doubled and changes nothing beyond noise.

Doubling shows a flush that is too small.  One that does nothing shows otherwise: a case whose data fit in the cache is
then as fast cold as warm, and faster than the memory that it claims to come from.

What differs by more than a tenth from one measurement to the next tells of neither: that much has other causes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from suite.backend import DeviceInfo
from suite.outcome import Bound
from suite.report.words import counted, resolved
from suite.selftest.record import CONTENTION, Finding, Repeatability, Status
from suite.selftest.taken import Passes, Taken, calibration, change, in_cycles, kinds, paired, products
from suite.selftest.tally import left_out
from suite.selftest.words import per_cent

NAME = "flush"
LEAST_NOISE = 0.01  # what repeated measurements are asked to agree within
FASTER_THAN_MEMORY = 1.1  # read, copy and triad are good to this against a product's stream of weights
MOST_NOISE = 0.10  # a case whose noise is above this would hide a flush of half the size that it needs
GAP_IN_NOISE = 2  # how much slower than warm a cold case must be for a failing flush to show in it


class Cold(NamedTuple):
    """One cold case: how much slower a doubled flush made it, the noise of that, and how it stands to its warm twin.

    It was measured twice with the flush as it is.  ``slower`` is against whichever pass was faster, the most that can be said;
    ``surely_slower`` against the other, and what is judged: a pass that was fast once says nothing of the flush.

    ``gap`` is how much slower than warm it is; ``over_memory`` its bytes per second over the best of the calibration;
    both ``None`` where they say nothing: no twin, data beyond the cache, arithmetic that hides the memory.
    """

    taken: Taken
    slower: float
    surely_slower: float
    noise: float
    gap: float | None
    over_memory: float | None

    @property
    def is_warm(self) -> bool:
        """Whether the data came from the cache."""
        if self.surely_slower > self.noise:
            return True
        outruns = self.over_memory is not None and self.over_memory > FASTER_THAN_MEMORY
        return outruns and self.gap is not None and self.gap <= self.noise

    @property
    def tells(self) -> bool:
        """Whether a flush that does nothing, or half, would show here."""
        return self.gap is not None and self.gap > GAP_IN_NOISE * self.noise


class LeftOut(NamedTuple):
    """How many cold cases tell nothing: measured beside other work, or perhaps, or too noisily."""

    contended: int
    unknown: int
    noisy: int

    def says(self) -> str:
        noisy = f"{self.noisy} differed by more than {per_cent(MOST_NOISE)} anyway" if self.noisy else ""
        return ", ".join(filter(None, (left_out(self.contended, self.unknown), noisy)))


def finding(passes: Passes, info: DeviceInfo, known: Repeatability | None) -> Finding:
    """Fails where a cold case is not cold; warns where no case that was measured well could show it; has nothing to say where
    every one was measured beside other work, or too noisily.
    """
    if not paired(passes.first, passes.doubled):
        return Finding(NAME, Status.UNAVAILABLE, passes.undoubled or "no cold case was timed with a doubled flush")
    cases, lacking = cold_cases(passes, info, known)
    counts = {f"{name}_left_out": count for name, count in lacking._asdict().items()}
    if not cases:
        return Finding(NAME, Status.UNAVAILABLE, _nothing_tells(lacking), counts)
    others = f"; left out: {lacking.says()}" if lacking.says() else ""
    warm = [case for case in cases if case.is_warm]
    if warm:
        worst = max(warm, key=lambda case: case.surely_slower - case.noise)
        return Finding(NAME, Status.FAIL, _not_cold(worst, warm, cases) + others, _figures(worst, cases) | counts)
    worst = max(cases, key=lambda case: case.slower)
    figures = _figures(worst, cases) | counts
    telling = [case for case in cases if case.tells]
    changes = _changes(worst, cases)
    if not telling:
        doubt = "no case is so much slower cold than warm that a flush without effect would show"
        return Finding(NAME, Status.WARN, f"{changes}, but {doubt}: how cold they are is not known{others}", figures)
    gap = max(case.gap or 0.0 for case in telling)
    return Finding(NAME, Status.OK, f"{changes}, where cold is up to {per_cent(gap)} slower than warm{others}", figures)


def _nothing_tells(lacking: LeftOut) -> str:
    if lacking.contended:
        remedy = "repeat it on a quiet device"
    elif lacking.unknown:
        remedy = f"what is said of {CONTENTION} has why, and what to do"
    else:
        remedy = "repeat it with a longer measure.max_time_s, or on a quieter device"
    return f"none of {counted(sum(lacking), 'cold case')} tells anything: {lacking.says()}; {remedy}"


def _changes(worst: Cold, cases: Sequence[Cold]) -> str:
    """By how much at most, against the faster of the two passes with the flush as it is, and whether that is noise."""
    what = counted(len(cases), "cold case")
    if worst.slower <= 0:
        return f"a doubled flush makes none of {what} slower"
    within = all(case.slower <= case.noise for case in cases)
    noise = "within the noise" if within else "and within the noise of the slower pass"
    return f"a doubled flush makes {what} at most {per_cent(worst.slower)} slower than the faster of two passes, {noise}"


def cold_cases(passes: Passes, info: DeviceInfo, known: Repeatability | None) -> tuple[list[Cold], LeftOut]:
    """The cold cases that were measured with the flush as it is and doubled, never beside other work, and closely enough."""
    again = {taken.row.case_key: taken for taken in products(passes.again)}
    found, contended, unknown, noisy = [], 0, 0, 0
    for first, doubled in paired(passes.first, passes.doubled):
        measured = (first, again.get(first.row.case_key, first), doubled)
        if any(taken.row.contended for taken in measured):
            contended += 1
        elif not all(taken.is_quiet for taken in measured):
            unknown += 1
        elif (case := _cold(passes, info, known, measured)).noise > MOST_NOISE or not all(resolved(t.row) for t in measured):
            noisy += 1
        else:
            found.append(case)
    return found, LeftOut(contended, unknown, noisy)


def _cold(passes: Passes, info: DeviceInfo, known: Repeatability | None, measured: tuple[Taken, Taken, Taken]) -> Cold:
    first, second, doubled = measured
    kind = kinds(passes.first)[first.row.case_key]
    cycles = kind is Bound.COMPUTE and all(map(in_cycles, measured))
    repeats = known and (known.cycles_rel if kind is Bound.COMPUTE else known.bytes_rel)
    changes = [change(each, doubled, cycles) for each in (first, second)]
    widths = [each.half_width_in(cycles) for each in measured]
    return Cold(
        taken=first,
        slower=max(changes),
        surely_slower=min(changes),
        noise=max(widths[:2]) + widths[2] + max(LEAST_NOISE, repeats or 0.0),
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
        if same and row.cache == "warm" and taken.is_quiet:
            cycles = kind is Bound.COMPUTE and all(map(in_cycles, (taken, cold)))
            return change(taken, cold, cycles) if taken.half_width_in(cycles) <= MOST_NOISE else None
    return None


def _over_memory(passes: Passes, cold: Taken) -> float | None:
    """Rate over the best that the calibration saw; ``None`` where other work held that back, or may have."""
    if any(not taken.is_quiet for taken in passes.first if taken.row.job == "calibration"):
        return None
    best = calibration(passes.first).best_bytes_s
    return cold.row.bytes_s / best if best and cold.row.bytes_s else None


def _not_cold(worst: Cold, warm: Sequence[Cold], cases: Sequence[Cold]) -> str:
    of = f"{len(warm)} of {counted(len(cases), 'cold case')}"
    if worst.surely_slower > worst.noise:
        return (
            f"cold is not cold: {of} came from the cache; with everything doubled {worst.taken.name} is up to "
            f"{per_cent(worst.slower)} slower (noise {per_cent(worst.noise)}): raise backends.*.options.flush_factor or "
            "measure.cold_margin"
        )
    return (
        f"cold is not cold: {of} came from the cache; {worst.taken.name} is as fast as warm and "
        f"{worst.over_memory:.2g} times as fast as memory: the flush has no effect"
    )


def _figures(worst: Cold, cases: Sequence[Cold]) -> dict[str, float | str | None]:
    """``worst`` is the case that the sentence speaks of."""
    return {
        "cold_cases": len(cases),
        "telling_cases": sum(case.tells for case in cases),
        "warm_cases": sum(case.is_warm for case in cases),
        "worst_case": worst.taken.name,
        "worst_slower_rel": worst.slower,
        "worst_noise_rel": worst.noise,
        "cold_over_warm_rel": max((case.gap for case in cases if case.gap is not None), default=None),
    }
