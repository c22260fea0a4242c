"""Other ways to make an interval of the median of consecutive samples, to compare the one in use with.

Each takes samples in the order taken and the timer's step, as ``suite.measure.statistics.median_interval`` does.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from suite.measure.statistics import Interval, cut, median, median_interval, t_95

Construction = Callable[[Sequence[float], float], Interval]

NORMAL_95 = 1.96
COSINES = 8
SELF_NORMALISED_95 = 45.4  # Lobato 2001, table 1
DRAWS = 199


def batch_medians(samples: Sequence[float], resolution: float) -> Interval:
    """Spread of the medians of 40, 20 and 10 stretches, the widest: what roofbench did first."""
    center = median(samples)
    half = 0.0
    for count in (40, 20, 10):
        if count <= len(samples):
            medians = np.array([median(batch) for batch in cut(samples, count)])
            half = max(half, t_95(count - 1) * float(medians.std(ddof=1)) / math.sqrt(count))
    return Interval(center - half, center + half).widened(resolution)


def block_bootstrap(samples: Sequence[float], resolution: float) -> Interval:
    """Medians of resampled stretches of 2 n^(1/3) samples, 199 times."""
    values, count = np.asarray(samples), len(samples)
    length = max(1, round(2 * count ** (1 / 3)))
    starts = np.random.default_rng(0).integers(0, count - length + 1, (DRAWS, -(-count // length)))
    drawn = (starts[:, :, None] + np.arange(length)).reshape(DRAWS, -1)[:, :count]
    medians = np.sort(np.median(values[drawn], axis=1))
    return Interval(float(medians[4]), float(medians[-5])).widened(resolution)


def sign_test(samples: Sequence[float], resolution: float) -> Interval:
    """Order statistics of the sign test, with as many samples as the lag-one correlation of the signs leaves."""
    signs = _signs(samples)
    rho = float(signs[1:] @ signs[:-1] / max(signs @ signs, 1e-12))
    rho = min(max(rho, 0.0), 0.99)
    return _bracket(samples, NORMAL_95 / 2 * math.sqrt((1 + rho) / (1 - rho) / len(samples)), resolution)


def long_run_variance(samples: Sequence[float], resolution: float) -> Interval:
    """Spectrum of the signs near zero, from eight cosines (Lazarus, Lewis, Stock and Watson 2018)."""
    count = len(samples)
    waves = np.cos(math.pi * np.outer(np.arange(1, COSINES + 1), np.arange(count) + 0.5) / count)
    spectrum = float(np.mean((waves @ _signs(samples)) ** 2)) * 2 / count
    return _bracket(samples, t_95(COSINES) * math.sqrt(spectrum / count), resolution)


def self_normalised(samples: Sequence[float], resolution: float) -> Interval:
    """Shao's: the signs' partial sums in place of a variance, no length to choose."""
    sums = np.cumsum(_signs(samples))
    count = len(samples)
    return _bracket(samples, math.sqrt(SELF_NORMALISED_95 * float(sums @ sums)) / count**1.5, resolution)


CONSTRUCTIONS: dict[str, Construction] = {
    "in use": median_interval,
    "batch medians": batch_medians,
    "block bootstrap": block_bootstrap,
    "sign test": sign_test,
    "long-run variance": long_run_variance,
    "self-normalised": self_normalised,
}


def _signs(samples: Sequence[float]) -> NDArray[np.float64]:
    """Half for samples below their median, minus half above, centred."""
    values = np.asarray(samples)
    signs = np.sign(np.median(values) - values) / 2
    return signs - signs.mean()


def _bracket(samples: Sequence[float], reach: float, resolution: float) -> Interval:
    shares = (0.5 - reach, 0.5 + reach)
    low, high = np.quantile(np.asarray(samples), np.clip(shares, 0.0, 1.0), method="hazen")
    return Interval(float(low), float(high)).widened(resolution)
