"""Replaying a long run of samples through the stopping rule, from many starting points."""

import random
from collections.abc import Sequence
from statistics import median, pstdev
from typing import NamedTuple

from suite.measure.load import clock_moves
from suite.measure.stopping import IntervalRule

REPLAYS = 200
SEED = 4


class Settings(NamedTuple):
    """The stopping rule's settings; the defaults are those of a run."""

    target: float = 0.005
    min_samples: int = 20
    min_time_s: float = 0.1
    max_time_s: float = 10.0


class Tape(NamedTuple):
    """Samples in the order taken, seconds each; ``wall_s`` is what one cost in wall time, ``truth`` the median sought.

    ``cycles`` are those of each sample where the device's clock was counted, and then ``truth_cycles`` is their median.
    """

    durations_s: Sequence[float]
    truth: float
    resolution_s: float
    wall_s: float
    cycles: Sequence[float] = ()
    truth_cycles: float = 0.0

    @property
    def clock_moves(self) -> bool:
        """As settling finds it."""
        pairs = zip(self.durations_s[:1000], self.cycles[:1000], strict=False)
        return clock_moves([round(cycles / duration_s / 1e3) for duration_s, cycles in pairs])

    @property
    def lasts_s(self) -> float:
        """Wall time of all samples."""
        return self.wall_s * len(self.durations_s)


class Replay(NamedTuple):
    """One measurement: where on the tape it began, and the rule as it ended."""

    start: int
    rule: IntervalRule

    def held(self, truth: float) -> bool:
        """Whether the interval that the rule left holds this duration."""
        interval = self.rule.interval
        return interval is not None and interval.low <= truth <= interval.high

    def held_cycles(self, truth: float) -> bool:
        """The same of the interval in cycles."""
        interval = self.rule.interval_cycles
        return interval is not None and interval.low <= truth <= interval.high


class Tally(NamedTuple):
    """What the replays came to: how many held the truth, how many converged, and the medians of cost and width."""

    covered: int
    covered_cycles: int
    converged: int
    samples: float
    wall_s: float
    half_width: float


def replay(tape: Tape, start: int, settings: Settings) -> Replay:
    """One measurement that began at sample ``start``, fed as the spine feeds it; it ends early where the tape ends."""
    rule = IntervalRule(*settings, tape.resolution_s, tape.clock_moves)
    position = start
    while not rule.done() and position < len(tape.durations_s):
        taken = tape.durations_s[position : position + rule.next_count()]
        position += len(taken)
        rule.feed(taken, tape.wall_s * len(taken), tape.cycles[position - len(taken) : position])
    return Replay(start, rule)


def replays(tape: Tape, settings: Settings = Settings(), count: int = REPLAYS, seed: int = SEED) -> list[Replay]:  # noqa: B008
    """Replay from ``count`` starting points, none so late that the tape ends before the time allowed does."""
    longest = min(int(settings.max_time_s / tape.wall_s * 1.1) + settings.min_samples, len(tape.durations_s) // 2)
    draw = random.Random(seed)
    return [replay(tape, draw.randrange(len(tape.durations_s) - longest), settings) for _ in range(count)]


def tally(tape: Tape, settings: Settings = Settings(), count: int = REPLAYS, seed: int = SEED) -> Tally:  # noqa: B008
    """Replay, and count."""
    done = replays(tape, settings, count, seed)
    samples = median(len(each.rule.samples) for each in done)
    widths = [each.rule.interval.high - each.rule.interval.low for each in done if each.rule.interval]
    return Tally(
        covered=sum(each.held(tape.truth) for each in done),
        covered_cycles=sum(each.held_cycles(tape.truth_cycles) for each in done),
        converged=sum(each.rule.converged for each in done),
        samples=samples,
        wall_s=samples * tape.wall_s,
        half_width=median(widths) / 2 / tape.truth,
    )


def held_around(tape: Tape, settings: Settings, times: int = 2) -> int:
    """Of how many replays the interval holds the median of the stretch ``times`` as long around what was sampled."""
    held = 0
    for each in replays(tape, settings):
        count = len(each.rule.samples)
        more = count * (times - 1) // 2
        held += each.held(median(tape.durations_s[max(0, each.start - more) : each.start + count + more]))
    return held


def settings_for(tape: Tape) -> Settings:
    """Those of a run; of a recording that is soon over, its samples being short, the least and most time in proportion."""
    return Settings(min_time_s=min(0.1, tape.lasts_s / 50), max_time_s=min(10.0, tape.lasts_s / 4))


def wander(tape: Tape) -> float:
    """Standard deviation of the medians of successive seconds, or fortieths of a short recording, relative to the median."""
    length = max(1, int(min(1.0, tape.lasts_s / 40) / tape.wall_s))
    starts = range(0, len(tape.durations_s) - length + 1, length)
    return pstdev(median(tape.durations_s[start : start + length]) for start in starts) / tape.truth
