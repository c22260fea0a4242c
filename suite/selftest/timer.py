"""Timer: what it resolves, what a launch with nothing to do takes, and what the shortest kernel is that can be told apart."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from suite.measure.statistics import quantile
from suite.roofline import LAUNCH_MULTIPLE, NS
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes, Taken, calibration
from suite.selftest.tally import named
from suite.selftest.words import brief, per_cent

NAME = "timer"
TARGET = 0.005  # the interval that METHOD asks for: a step beyond this share of a sample shows in the result
COARSER = 2  # times the declared resolution: a step that is seen is an estimate
ROUNDING_NS = 2  # durations are stored in whole nanoseconds, two of which make a difference
LEAST_STEPS = 3  # between distinct durations, before they say anything of a step
# Launches are averaged in the one and timed one by one in the other: whatever interrupts some of them raises only the mean.
_MEAN_ABOVE_MEDIAN = "the former is a mean over launches in a row, which slow ones raise, the latter a median of single ones"
TIED = 0.25  # distinct durations of all: fewer differences are enough where so many are the same


class Clock(NamedTuple):
    """One way of timing: declared resolution, the step that durations come in (``None``: none shows), shortest sample."""

    method: str
    declared_s: float
    step_s: float | None
    shortest_s: float

    @property
    def resolution_s(self) -> float:
        """The worse of what is declared and what is seen."""
        return max(self.declared_s, self.step_s or 0.0)

    @property
    def is_coarser(self) -> bool:
        return self.step_s is not None and self.step_s > COARSER * self.declared_s


def finding(passes: Passes) -> Finding:
    """Fails where the timer steps more coarsely than it declares, by more than 0.5 % of a sample."""
    clocks = [_clock(method, group) for method, group in _by_method(passes.timed).items()]
    if not clocks:
        return Finding(NAME, Status.UNAVAILABLE, "no case was timed, so that there are no durations to look at")
    coarser = [clock for clock in clocks if clock.is_coarser]
    seen = [taken for taken in passes.timed if _is_not_hidden(taken)]
    status = Status.OK
    if coarser or seen or _empty_s(passes)[0] is None:
        status = Status.WARN
    if any(clock.resolution_s > TARGET * clock.shortest_s for clock in coarser):
        status = Status.FAIL
    parts = [*map(_words, coarser or clocks), _overhead(passes)]
    if seen:
        parts.append(f"the host was too slow to hide the launches of {named(seen)}")
    return Finding(NAME, status, "; ".join(parts), _figures(passes, clocks))


def _by_method(timed: Iterable[Taken]) -> dict[str, list[Taken]]:
    groups: dict[str, list[Taken]] = defaultdict(list)
    for taken in timed:
        if taken.measurement.samples is not None:
            groups[taken.measurement.samples.method].append(taken)
    return groups


def _clock(method: str, group: Sequence[Taken]) -> Clock:
    samples = [taken.measurement.samples for taken in group if taken.measurement.samples is not None]
    return Clock(
        method,
        max(each.resolution_s for each in samples),
        step_s([each.durations_ns for each in samples]),
        min(each.min_ns for each in samples) * NS,
    )


def step_s(series: Sequence[Sequence[int]]) -> float | None:
    """The step that durations (nanoseconds) come in: their smallest difference, if all others are multiples of it.

    ``None`` where they are not, or where too few differ to tell.
    """
    gaps = sorted(after - before for each in series for before, after in pairwise(sorted(set(each))))
    if not gaps or (len(gaps) < LEAST_STEPS and not _are_tied(series)):
        return None
    covered, steps, strays = gaps[0], 1, []
    for gap in gaps[1:]:
        step = covered / steps  # better known with every gap: it need not be whole nanoseconds
        multiple = round(gap / step)
        strays.append(abs(gap - multiple * step))
        covered, steps = covered + gap, steps + multiple
    # One in twenty may be something else: the rounding of a float, a clock that was adjusted.
    return covered / steps * NS if not strays or quantile(strays, 0.95) <= ROUNDING_NS else None


def _are_tied(series: Sequence[Sequence[int]]) -> bool:
    """Whether most durations are some other's too, which a fine clock does not show."""
    return sum(len(set(each)) for each in series) <= TIED * sum(map(len, series))


def _is_not_hidden(taken: Taken) -> bool:
    samples = taken.measurement.samples
    return samples is not None and samples.details.get("hidden") is False


def _empty_s(passes: Passes) -> tuple[float | None, float | None]:
    known = calibration(passes.first)
    return known.empty_device_s, known.empty_call_s


def _words(clock: Clock) -> str:
    alone = f"0.5 % shows on kernels from {brief(clock.resolution_s / TARGET)} timed one by one"
    if clock.is_coarser:
        assert clock.step_s is not None
        share = per_cent(clock.step_s / clock.shortest_s)
        return (
            f"the {clock.method} timer steps by {brief(clock.step_s)}, not the {brief(clock.declared_s)} it declares: "
            f"{share} of its shortest sample; {alone}"
        )
    return f"the {clock.method} timer resolves {brief(clock.resolution_s)}: {alone}"


def _overhead(passes: Passes) -> str:
    device_s, call_s = _empty_s(passes)
    if device_s is None:
        return "the empty kernel was not timed, so that launches cannot be told from work"
    caller = f" and {brief(call_s)} to its caller" if call_s is not None else ""
    if call_s is not None and device_s > call_s:
        caller += f" ({_MEAN_ABOVE_MEDIAN})"
    return (
        f"an empty kernel takes {brief(device_s)} on the device{caller}: under {brief(LAUNCH_MULTIPLE * device_s)} "
        "launching is what is measured"
    )


def _figures(passes: Passes, clocks: Sequence[Clock]) -> dict[str, float | str | None]:
    device_s, call_s = _empty_s(passes)
    figures: dict[str, float | str | None] = {"empty_device_s": device_s, "empty_call_s": call_s}
    for clock in clocks:
        figures[f"{clock.method}_declared_s"] = clock.declared_s
        figures[f"{clock.method}_step_s"] = clock.step_s
        figures[f"{clock.method}_shortest_sample_s"] = clock.shortest_s
        figures[f"{clock.method}_shortest_alone_s"] = clock.resolution_s / TARGET
    return figures
