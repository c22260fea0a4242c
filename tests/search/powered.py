"""A device under a power limit, on a clock of its own: candidates differ in what they do in a cycle and in what that takes.

The limit is kept by steps of the clock, from readings of the power that lag and err.  A long look so reads a candidate at the
clock that suits it, give or take a step; a brief one at the clock that those before it left, several per cent off.  From idle
the clock is about as high for everyone.  What preparing takes, how far the clock swings and how closely a look of a tenth of a
second repeats are about as recorded on an H200 under 700 W: the constants were chosen so that they are.  Rates are drawn.
"""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from suite.jobs.shapes import Shape
from suite.measure.look import BRIEF_S, LEAST_SAMPLES, LONG_S, Glimpse

FLOP_CYCLE = 5.4e5  # what a middling candidate does in a cycle
CAP_HZ, MOST_HZ, STEP_HZ = 1.33e9, 1.98e9, 15e6  # the clock that a middling one has under the limit, the highest, a step
READING_S = 0.03  # between two readings of the power
LAG = 0.6  # of a reading in what the limit is kept by; the rest is that of the reading before
READING_NOISE = 0.025
ERROR, ERROR_S = 0.01, 0.3  # of the readings, and for how long it stays about the same
DEAD_BAND = 0.012  # of the limit: no step for less
GAIN = 1.0  # of the distance from the limit, by which the clock is moved
EXPONENT = 2.3  # of the clock in the power
IDLE_SHARE, READY_SHARE = 0.2, 0.45  # of the limit: power without work, and while a candidate is made ready
SAMPLE_S = 2e-3
OVERHEAD_S = 1.5e-3  # of a look, beside its launches
READY_S, WRITTEN_ELEMENTS_S = 0.004, 3e10  # to make a candidate ready: plans and buffers, then its data
GRAPH_S, GRAPH_LAUNCHES, BRIEF_LAUNCHES = 0.003, 7.5, 2  # to make the sampler that graphs are replayed by; a brief one
CLOSE_S = 8e-4
START_S = 3.0  # of the process: context, libraries, first kernels
BURST_NOISE = 0.0015


class Candidate(NamedTuple):
    """``work``: ln of operations in a cycle, ``clock``: ln of the clock under the limit, both over a middling candidate's."""

    shape: Shape
    work: float
    clock: float

    @property
    def sustained(self) -> float:
        """ln of its true rate under the limit."""
        return self.work + self.clock

    @property
    def burst(self) -> float:
        """ln of its true rate from idle."""
        return self.work + 0.5 * self.clock


class Powered:
    """See ``suite.search.hunt.Viewer``.  ``started`` says that the process has worked on the device before.

    ``brief`` looks go before a sampler, as those of ``suite.measure.look`` do; without them each candidate gets one at once.
    ``busy_s`` is what each kind of work has taken.
    """

    def __init__(self, candidates: Sequence[Candidate], seed: int, started: bool = True, brief: bool = True) -> None:
        self.now_s = 0.0
        self.busy_s: dict[str, float] = {"start": 0.0, "ready": 0.0, "look": 0.0, "idle": 0.0, "keep": 0.0}
        self._candidates = {each.shape: each for each in candidates}
        self._draw = random.Random(seed)
        self._held: dict[Shape, float] = {}  # with what a sample is expected to take
        self._started, self._brief = started, brief
        self._briefly: set[Shape] = set()
        self._clock_hz = MOST_HZ
        self._energy, self._read_s = 0.0, 0.0  # since the last reading, the limit's power for a second being one
        self._power, self._error = 1.0, self._draw.gauss(0, ERROR)

    def clock(self) -> float:
        return self.now_s

    def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> Glimpse | str:
        candidate = self._candidates[shape]
        if shape not in self._held:
            first_s = self._ready(candidate)
            if shape in self._briefly and seconds < 2 * first_s:
                return Glimpse((round(first_s * 1e9),), 1)
        self._pass(idle_s, IDLE_SHARE, "idle")
        self._pass(OVERHEAD_S * self._draw.uniform(0.7, 1.5), IDLE_SHARE, "look")
        launches = max(1, round(SAMPLE_S / self._launch_s(candidate)))
        count = max(1 if shape in self._briefly else LEAST_SAMPLES, round(seconds / self._held[shape]))
        if shape in self._briefly and (seconds >= BRIEF_S or idle_s):
            self._briefly.discard(shape)
            self._graph(candidate)
        if idle_s >= 0.1:
            durations_s = [self._from_idle_s(candidate, launches)] * count
        else:
            durations_s = [self._sample_s(candidate, launches) for _ in range(count)]
        self._held[shape] = sum(durations_s) / count
        return Glimpse(tuple(round(each * 1e9) for each in durations_s), launches)

    def keep(self, shapes: Sequence[Shape]) -> None:
        dropped = set(self._held) - set(shapes)
        for shape in dropped:
            del self._held[shape]
        self._pass(CLOSE_S * len(dropped), IDLE_SHARE, "keep")

    def _ready(self, candidate: Candidate) -> float:
        if not self._started:
            self._started = True
            self._pass(START_S, IDLE_SHARE, "start")
        m, n, k = candidate.shape
        self._pass(READY_S + k * (m + n) / WRITTEN_ELEMENTS_S, READY_SHARE, "ready")
        launch_s = self._launch_s(candidate)
        self._held[candidate.shape] = max(launch_s, SAMPLE_S)
        if self._brief:
            self._pass(BRIEF_LAUNCHES * launch_s, 0.9, "ready")
        if self._brief and launch_s > LONG_S:
            self._briefly.add(candidate.shape)
        else:
            self._graph(candidate)
        return launch_s

    def _graph(self, candidate: Candidate) -> None:
        self._pass(GRAPH_S, IDLE_SHARE, "ready")
        self._pass(GRAPH_LAUNCHES * self._launch_s(candidate), 0.9, "ready")

    def _launch_s(self, candidate: Candidate) -> float:
        return candidate.shape.flops / (FLOP_CYCLE * math.exp(candidate.work) * self._clock_hz)

    def _sample_s(self, candidate: Candidate, launches: int) -> float:
        """One sample, at the clocks that there are while it runs."""
        left, began_s = launches * candidate.shape.flops / (FLOP_CYCLE * math.exp(candidate.work)), self.now_s
        while left > 0:
            until_s = self._read_s + READING_S
            part_s = min(left / self._clock_hz, max(until_s - self.now_s, 1e-9))
            left -= part_s * self._clock_hz
            if left < 1.0:
                left = 0.0
            own_hz = CAP_HZ * math.exp(candidate.clock)
            self._pass(part_s, (self._clock_hz / own_hz) ** EXPONENT, "look")
        return (self.now_s - began_s) * (1 + self._draw.gauss(0, 5e-4))

    def _from_idle_s(self, candidate: Candidate, launches: int) -> float:
        rate = FLOP_CYCLE * 1.2 * CAP_HZ * math.exp(candidate.burst + self._draw.gauss(0, BURST_NOISE))
        sample_s = launches * candidate.shape.flops / rate
        self._pass(sample_s, 1.0, "look")
        return sample_s

    def _pass(self, seconds: float, power: float, doing: str) -> None:
        self.busy_s[doing] += seconds
        while seconds > 0:
            part_s = min(seconds, max(self._read_s + READING_S - self.now_s, 1e-9))
            self.now_s += part_s
            self._energy += part_s * power
            seconds -= part_s
            if self.now_s >= self._read_s + READING_S - 1e-9:
                self._read()

    def _read(self) -> None:
        """Read the power, and move the clock."""
        passed_s = self.now_s - self._read_s
        kept = math.exp(-passed_s / ERROR_S)
        self._error = kept * self._error + self._draw.gauss(0, ERROR * math.sqrt(1 - kept * kept))
        reading = self._energy / passed_s * (1 + self._error + self._draw.gauss(0, READING_NOISE))
        self._power += LAG * (reading - self._power)
        self._energy, self._read_s = 0.0, self.now_s
        if abs(1 - self._power) > DEAD_BAND:
            moved_hz = self._clock_hz * (1 + GAIN * max(-0.4, min(0.4, 1 - self._power)))
            self._clock_hz = min(MOST_HZ, STEP_HZ * round(moved_hz / STEP_HZ))


def landscape(seed: int, count: int = 64) -> list[Candidate]:
    """Candidates in the order in which they are looked at; the best half dozen lie within one to two per cent."""
    draw = random.Random(seed)
    found: dict[Shape, Candidate] = {}
    while len(found) < count:
        large = draw.random() < 0.62
        sizes = (
            (draw.randint(9, 19), draw.randint(8, 16), draw.randint(9, 16))
            if large
            else tuple(draw.randint(1, 12) for _ in "mnk")
        )
        shape = Shape(*(1024 * each for each in sizes))
        rate, clock = draw.gauss(0, 0.015), draw.gauss(0, 0.015)
        if draw.random() < 0.2 or shape.flops < 1e11:
            rate -= draw.expovariate(10)
        found.setdefault(shape, Candidate(shape, rate - clock, clock))
    return list(found.values())
