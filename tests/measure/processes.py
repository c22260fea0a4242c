"""Made-up runs of samples whose median is known: what devices do to durations, one thing at a time.

Each is given in units of its typical duration; a sample costs 2 ms.
"""

import math
from collections.abc import Callable
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tests.measure.replays import Tape

COUNT = 150_000
SAMPLE_S = 2e-3

Series = NDArray[np.float64]
Draw = np.random.Generator


def tape(make: Callable[[Draw], Series], truth: float = 1.0, resolution: float = 1e-6, seed: int = 7) -> Tape:
    values = make(np.random.default_rng(seed))
    return Tape((SAMPLE_S * values).tolist(), SAMPLE_S * truth, SAMPLE_S * resolution, SAMPLE_S)


def white(draw: Draw, spread: float) -> Series:
    """Independent, normal around 1."""
    return 1 + spread * draw.standard_normal(COUNT)


def lognormal(draw: Draw, spread: float) -> Series:
    return np.exp(spread * draw.standard_normal(COUNT))


def late_tail(draw: Draw, spread: float) -> Series:
    """A sharp lower edge and an exponential tail, as where others take turns; its median is 1 + spread ln 2."""
    return 1 + spread * draw.standard_exponential(COUNT)


def correlated(draw: Draw, rho: float, spread: float) -> Series:
    """First-order autoregressive around 1: correlation falls off by ``rho`` a sample."""
    shocks = spread * math.sqrt(1 - rho * rho) * draw.standard_normal(COUNT)
    shocks[0] /= math.sqrt(1 - rho * rho)
    values, value = np.empty(COUNT), 0.0
    for index, shock in enumerate(shocks.tolist()):
        value = rho * value + shock
        values[index] = value
    return 1 + values


def square_wave(draw: Draw, period: int, step: float, spread: float) -> Series:
    """A clock that changes to and fro: half a period at 1, half at 1 + step."""
    return white(draw, spread) + step * ((2 * np.arange(COUNT) // period) % 2)


def stepping(draw: Draw, step: float = 0.012, steps: int = 5, each: int = 40) -> Series:
    """A clock at a limit of power: every ``each`` samples or so one of ``steps`` levels around 1."""
    changes = np.cumsum(draw.random(COUNT) < 1 / each)
    levels = draw.integers(0, steps, changes[-1] + 1)
    return 1 + step * (levels[changes] - (steps - 1) / 2)


def two_modes(draw: Draw, share: float, step: float, spread: float) -> Series:
    """Around 1, and ``share`` of the samples around 1 + step."""
    return white(draw, spread) + step * (draw.random(COUNT) < share)


def outliers(draw: Draw, share: float, size: float, spread: float) -> Series:
    return white(draw, spread) + size * draw.standard_exponential(COUNT) * (draw.random(COUNT) < share)


def quantised(draw: Draw, center: float, spread: float, step: float) -> Series:
    """Durations read in steps, from a clock whose phase is not the samples' own."""
    exact = center + spread * draw.standard_normal(COUNT)
    phase = step * draw.random(COUNT)
    return step * (np.floor((exact + phase) / step) - np.floor(phase / step))


def drifting(draw: Draw, change: float, spread: float) -> Series:
    """A slow change from 1 - change / 2 to 1 + change / 2 over all of it."""
    return white(draw, spread) + change * (np.arange(COUNT) / COUNT - 0.5)


def slow_under_noise(draw: Draw, rho: float, slow: float, spread: float) -> Series:
    """A slow wander hidden under independent noise: what neighbours do not tell of."""
    return correlated(draw, rho, slow) + white(draw, spread) - 1


def normal_quantile(share: float, spread: float) -> float:
    """Where ``share`` of normal samples around 1 end."""
    return 1 + spread * NormalDist().inv_cdf(share)


Tapes = dict[str, Callable[[], Tape]]

# Held in 90 to 99 of 100 by what a tenth of a second shows.
PROMISED: Tapes = {
    "quiet": lambda: tape(partial(white, spread=0.003)),
    "noisy": lambda: tape(partial(white, spread=0.02)),
    "lognormal": lambda: tape(partial(lognormal, spread=0.03)),
    "late tail": lambda: tape(partial(late_tail, spread=0.03), 1 + 0.03 * math.log(2)),
    "outliers": lambda: tape(partial(outliers, share=0.02, size=3.0, spread=0.003), normal_quantile(0.5 / 0.98, 0.003)),
    "modes 70 to 30": lambda: tape(partial(two_modes, share=0.3, step=0.1, spread=0.003), normal_quantile(0.5 / 0.7, 0.003)),
    "rho 0.5, quiet": lambda: tape(partial(correlated, rho=0.5, spread=0.003)),
    "rho 0.5": lambda: tape(partial(correlated, rho=0.5, spread=0.01)),
    "rho 0.9, quiet": lambda: tape(partial(correlated, rho=0.9, spread=0.003)),
    "rho 0.9": lambda: tape(partial(correlated, rho=0.9, spread=0.01)),
    "rho 0.97, quiet": lambda: tape(partial(correlated, rho=0.97, spread=0.003)),
    "rho 0.99, quiet": lambda: tape(partial(correlated, rho=0.99, spread=0.003)),
    "drift of 0.2 %": lambda: tape(partial(drifting, change=0.002, spread=0.005)),
}

# Held more often than that: a timer's step is as narrow as it gets, and a regular change is sampled more evenly than by chance.
HELD_MORE: Tapes = {
    "clock of 32 ms": lambda: tape(partial(square_wave, period=16, step=0.01, spread=0.01), 1.005),
    "clock of 100 ms": lambda: tape(partial(square_wave, period=50, step=0.01, spread=0.01), 1.005),
    "steps of 0.1 %": lambda: tape(partial(quantised, center=1.0037, spread=0.003, step=0.001), 1.0037, 0.001),
    "steps of 1 %": lambda: tape(partial(quantised, center=1.0037, spread=0.003, step=0.01), 1.0037, 0.01),
    "steps of 1 %, noisy": lambda: tape(partial(quantised, center=1.0037, spread=0.01, step=0.01), 1.0037, 0.01),
    "steps of 1 %, no noise": lambda: tape(partial(quantised, center=1.0037, spread=0.0, step=0.01), 1.0037, 0.01),
}

# A wander slower than the noise it is under: a tenth of a second does not show enough of it, a quarter does.
HIDDEN: Tapes = {
    "rho 0.9 under noise": lambda: tape(partial(slow_under_noise, rho=0.9, slow=0.005, spread=0.01)),
    "rho 0.97 under noise": lambda: tape(partial(slow_under_noise, rho=0.97, slow=0.002, spread=0.008)),
}

# Nothing within the time sampled tells of these.
UNSEEN: Tapes = {
    "clock of 10 s": lambda: tape(partial(square_wave, period=5000, step=0.01, spread=0.005), 1.005),
    "rho 0.999 under noise": lambda: tape(partial(slow_under_noise, rho=0.999, slow=0.003, spread=0.005)),
    "drift of 2 %": lambda: tape(partial(drifting, change=0.02, spread=0.005)),
    "modes 50 to 50": lambda: tape(partial(two_modes, share=0.5, step=0.03, spread=0.003), 1.015),
}
