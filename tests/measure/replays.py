"""Replaying a long run of samples through the stopping rule, from many starting points."""

import random
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from suite.measure.stopping import IntervalRule

REPLAYS = 200


class Settings(NamedTuple):
    """The stopping rule's settings; the defaults are those of a run."""

    target: float = 0.005
    min_samples: int = 20
    min_time_s: float = 0.1
    max_time_s: float = 10.0


class Tape(NamedTuple):
    """Samples in the order taken, seconds each; ``wall_s`` is what one cost in wall time, ``truth`` the median sought."""

    durations_s: Sequence[float]
    truth: float
    resolution_s: float = 1e-9
    wall_s: float | None = None


class Tally(NamedTuple):
    """What the replays came to: how many covered the truth, and over them the medians of cost and width."""

    covered: int
    converged: int
    samples: float
    wall_s: float
    half_width: float


def replay(tape: Tape, start: int, settings: Settings) -> IntervalRule:
    """One measurement that began at sample ``start``, fed as the spine feeds it; it ends early where the tape ends."""
    rule = IntervalRule(*settings, tape.resolution_s)
    position = start
    while not rule.done() and position < len(tape.durations_s):
        taken = tape.durations_s[position : position + rule.next_count()]
        position += len(taken)
        rule.feed(taken, sum(taken) if tape.wall_s is None else tape.wall_s * len(taken))
    return rule


def replays(tape: Tape, settings: Settings = Settings(), count: int = REPLAYS, seed: int = 4) -> Tally:  # noqa: B008
    """Replay from ``count`` starting points, none so late that the tape ends before the time allowed does."""
    per_sample_s = tape.wall_s or median(tape.durations_s)
    longest = min(int(settings.max_time_s / per_sample_s * 1.1) + settings.min_samples, len(tape.durations_s) // 2)
    draw = random.Random(seed)
    rules = [replay(tape, draw.randrange(len(tape.durations_s) - longest), settings) for _ in range(count)]
    intervals = [rule.interval for rule in rules]
    assert all(interval is not None for interval in intervals)
    return Tally(
        covered=sum(each.low <= tape.truth <= each.high for each in intervals),
        converged=sum(rule.converged for rule in rules),
        samples=median(len(rule.samples) for rule in rules),
        wall_s=median(len(rule.samples) for rule in rules) * per_sample_s,
        half_width=median((each.high - each.low) / 2 / tape.truth for each in intervals),
    )
