"""Comparisons drawn from long recordings: two runs of one recording have nothing between them but time.

A run is what the stopping rule takes from a starting point, kept as a result's samples are.
"""

import math
import random
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from suite.compare.noise import NONE, Noise, noise_of
from suite.compare.spread import Spread
from suite.compare.verdict import Gap, Judgement, Verdict, judge
from suite.measure.samples import thin
from suite.measure.statistics import cut, quantile
from suite.measurement import SampleSet
from tests.measure.replays import Settings, Tape, replay, settings_for
from tests.recordings.recording import Recording, every_recording

COMPARISONS = 200
SELFTEST_CASES = 20
ROUNDS = 20  # of each of two measurements that take turns
OF_A_ROUND = 15  # samples
_DEVIATIONS = 1.96


class Run(NamedTuple):
    """One run: where on the tape it began, how many samples it took, the logarithm of their median, and its noise."""

    start: int
    count: int
    log_median: float
    noise: Noise

    def overlaps(self, other: "Run") -> bool:
        return self.start < other.start + other.count and other.start < self.start + self.count


def sample_set(durations_s: Sequence[float], resolution_s: float = 0.0, boundaries: tuple[int, ...] = (0,)) -> SampleSet:
    """The samples as the store would keep them."""
    durations = [round(duration_s * 1e9) for duration_s in durations_s]
    kept, stride = thin(durations)
    starts = tuple(-(-start // stride) for start in boundaries)
    return SampleSet(
        tuple(kept), 1, "made up", resolution_s, len(durations), sum(durations), min(durations), stride, starts, {}, (),
        median(durations),
    )  # fmt: skip


def run_at(tape: Tape, start: int, settings: Settings) -> Run:
    """What a run that begins there would store."""
    samples = replay(tape, start, settings).rule.samples
    return Run(start, len(samples), math.log(median(samples)), noise_of(sample_set(samples, tape.resolution_s)))


def runs(tape: Tape, settings: Settings, count: int, seed: int = 1) -> list[Run]:
    """Runs from starting points anywhere, none so late that the tape ends before the time allowed does."""
    longest = min(int(settings.max_time_s / tape.wall_s * 1.1) + settings.min_samples, len(tape.durations_s) // 2)
    draw = random.Random(seed)
    return [run_at(tape, draw.randrange(len(tape.durations_s) - longest), settings) for _ in range(count)]


@cache
def recorded(name: str) -> Tape:
    """The recording of that name."""
    (path,) = (path for path in every_recording() if path.stem == name)
    return Recording.read(path).tape()


@cache
def recorded_runs(name: str, count: int) -> list[Run]:
    """Runs from anywhere in a recording."""
    return runs(recorded(name), settings_for(recorded(name)), count)


@cache
def rounds(name: str, count: int = 2 * ROUNDS) -> list[list[float]]:
    """The whole of a recording as so many rounds of alternating measurements, each thinned as a stored result would be."""
    return [list(thin(piece, OF_A_ROUND)[0]) for piece in cut(recorded(name).durations_s, count)]


@cache
def dealt(name: str, count: int = COMPARISONS) -> list[Gap]:
    """So many times the rounds of one recorded sample set are dealt out at random to two measurements."""
    draw, resolution_s = random.Random(name), recorded(name).resolution_s
    found = []
    for _ in range(count):
        shuffled = draw.sample(rounds(name), 2 * ROUNDS)
        found.append(gap(_of_rounds(shuffled[:ROUNDS], resolution_s), _of_rounds(shuffled[ROUNDS:], resolution_s)))
    return found


def _of_rounds(taken: Sequence[Sequence[float]], resolution_s: float) -> Run:
    samples = [duration_s for each in taken for duration_s in each]
    starts = tuple(accumulate((len(each) for each in taken[:-1]), initial=0))
    return Run(0, len(samples), math.log(median(samples)), noise_of(sample_set(samples, resolution_s, starts)))


def apart(found: Sequence[Run], draw: random.Random) -> tuple[Run, Run]:
    """Two runs that have no sample in common."""
    while True:
        first, second = draw.sample(found, 2)
        if not first.overlaps(second):
            return first, second


@cache
def repeatability(name: str, count: int, pairs: int = 100) -> float:
    """The 95th percentile of how far two runs differ: what a selftest of the recorded device would store."""
    draw, found = random.Random(3), recorded_runs(name, count)
    changes = (second.log_median - first.log_median for first, second in (apart(found, draw) for _ in range(pairs)))
    return quantile([abs(math.expm1(change)) for change in changes], 0.95)


@cache
def two_runs(name: str, runs_of: int, known: bool = True, count: int = COMPARISONS) -> list[Gap]:
    """So many times two runs are taken from anywhere in a recording; ``known`` is whether a selftest was stored."""
    draw, found = random.Random(name), recorded_runs(name, runs_of)
    rel = repeatability(name, runs_of) if known else None
    return [gap(*apart(found, draw), rel) for _ in range(count)]


def spread(rel: float | None) -> Spread:
    """What is known of a device from run to run, from its repeatability."""
    if rel is None:
        return Spread(None, NONE)
    deviation = math.log1p(rel) / _DEVIATIONS
    return Spread(rel, Noise(deviation, deviation, SELFTEST_CASES - 1))


def gap(first: Run, second: Run, rel: float | None = None) -> Gap:
    """The second run against the first."""
    return Gap(second.log_median - first.log_median, (first.noise, second.noise), spread(rel))


def slowed(found: Gap, by: float) -> Gap:
    """With every duration of the second so much longer: the spread of logarithms stays."""
    return found._replace(change=found.change + math.log1p(by))


def comparisons(*cases: Sequence[Gap]) -> list[list[Judgement]]:
    """The verdicts of as many comparisons as each case was drawn for."""
    return [judge(each) for each in zip(*cases, strict=True)]


def differs(judgements: Sequence[Judgement]) -> bool:
    """Whether any case is called faster or slower."""
    return any(each.verdict in (Verdict.FASTER, Verdict.SLOWER) for each in judgements)
