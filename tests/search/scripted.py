"""Candidates whose rates are written down, on a clock that only looks move."""

import random
from collections.abc import Callable, Mapping, Sequence

from suite.jobs.shapes import Shape
from suite.measure.look import Glimpse
from suite.search.hunt import Allowance, Hunt
from suite.search.standings import Standings

FLOP_S = 1e12
SAMPLES = 9
BUDGET_S = 1.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Scripted:
    """``rate(shape, seconds, idle_s)`` is a share of ``FLOP_S``; each look is off by a relative ``noise`` as a whole.

    ``fails`` are candidates that cannot be looked at, and why, which takes ``fails_s`` to find out; making one ready takes
    ``ready_s``, and the first of all ``start_s`` more.
    """

    def __init__(
        self,
        rate: Callable[[Shape, float, float], float],
        noise: float = 0.0,
        seed: int = 0,
        fails: Mapping[Shape, str] | None = None,
        ready_s: float = 0.002,
        start_s: float = 0.0,
        fails_s: float = 0.0,
    ) -> None:
        self.clock = Clock()
        self.launches = 0
        self.looks: list[tuple[Shape, float, float]] = []
        self.held: set[Shape] = set()
        self._rate, self._noise, self._draw = rate, noise, random.Random(seed)
        self._fails, self._ready_s = fails or {}, ready_s
        self._start_s, self._fails_s = start_s, fails_s

    def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> Glimpse | str:
        if shape in self._fails:
            self.clock.now_s += self._fails_s
            return self._fails[shape]
        if shape not in self.held:
            self.clock.now_s += self._ready_s + self._start_s
            self._start_s = 0.0
            self.held.add(shape)
        self.looks.append((shape, seconds, idle_s))
        rate = self._rate(shape, seconds, idle_s) * (1 + self._noise * self._draw.gauss(0, 1))
        launch_s = shape.flops / (FLOP_S * rate)
        launches = max(1, round(seconds / launch_s / SAMPLES))
        self.launches += SAMPLES * launches
        self.clock.now_s += idle_s + SAMPLES * launches * launch_s
        return Glimpse((round(launches * launch_s * 1e9),) * SAMPLES, launches)

    def keep(self, shapes: Sequence[Shape]) -> None:
        self.held &= set(shapes)


class Stepping(Scripted):
    """Samples of a look are of two steps of a clock, a hundredth apart; ``high`` is how many are of the higher one."""

    def __init__(self, rate: Callable[[Shape, float, float], float], high: Mapping[Shape, int]) -> None:
        super().__init__(rate)
        self._high = high

    def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> Glimpse | str:
        glimpse = super().look(shape, seconds, idle_s)
        assert isinstance(glimpse, Glimpse)
        low, high = glimpse.durations_ns[0], round(glimpse.durations_ns[0] / 1.01)
        count = self._high.get(shape, 0)
        return Glimpse((low,) * (SAMPLES - count) + (high,) * count, glimpse.launches)


def field(count: int = 64) -> list[Shape]:
    """So many shapes of about the same size, a launch of 0.1 ms at the full rate."""
    return [Shape(256 + 4 * number, 512, 256) for number in range(count)]


def hunted(viewer: Scripted, shapes: list[Shape], **allowance: float) -> Standings:
    allowed = Allowance(**{"seconds": BUDGET_S, **allowance})  # type: ignore[arg-type]
    return Hunt(shapes, viewer, allowed, clock=viewer.clock).run()


def landscape(seed: int) -> tuple[list[Shape], dict[Shape, float]]:
    """64 candidates: the best at 0.9, one percent ahead of the next, the rest down to 0.6."""
    draw = random.Random(seed)
    shapes = field()
    rates = {shape: draw.uniform(0.6, 0.891) for shape in shapes}
    rates[draw.choice(shapes)] = 0.9
    return shapes, rates


def best_of(rates: dict[Shape, float]) -> Shape:
    return max(rates, key=lambda shape: rates[shape])
