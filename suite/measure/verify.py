"""Whether an output is right: compared with a higher-precision reference on fresh data, over all of it.

Two looks complement each other.  Sampled tiles in float64 give the error that is reported.  A random projection of
every row (Freivalds' check) sees each element once, so that one unwritten or swapped tile anywhere shows, at the cost
of a matrix-vector product.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from suite.backend import Kernel, Observed, Probe, Reference
from suite.measurement import Check

TILE = 64
# A row's projection is a sum of random signs times its errors: about normal.  Over 2^17 rows the largest of a correct
# output stays under 4.6 standard deviations, and rounding errors spread over about a third of a tolerance.
PROJECTION_ALLOWANCE = 4.0
# Both projections are float64 sums themselves, of up to 2^20 terms that may cancel: what they differ by on their own.
PROJECTION_ROUNDOFF = 2.0**-30


def probe(shape: tuple[int, int], set_index: int, tiles: int, seed: int) -> Probe:
    """Choose ``tiles`` tiles by seed, the last corner always among them: partial tiles are where bounds go wrong."""
    rows, columns = shape
    height, width = min(TILE, rows), min(TILE, columns)
    draw = random.Random(seed)
    corners = [(draw.randint(0, rows - height), draw.randint(0, columns - width)) for _ in range(tiles - 1)]
    corners.append((rows - height, columns - width))
    return Probe(set_index, tuple((row, column, height, width) for row, column in corners), seed)


class Expected(NamedTuple):
    """What is looked at in the outputs, and what should be there; good for as long as the inputs are the same."""

    probes: tuple[Probe, ...]
    references: tuple[Reference, ...]


def expect(kernel: Kernel, probes: Sequence[Probe]) -> Expected:
    """Compute the references of the inputs as they stand.

    It comes before the launches: a kernel that destroys its inputs would otherwise be judged by what it left of them.
    """
    return Expected(tuple(probes), tuple(kernel.reference(each) for each in probes))


def check(kernel: Kernel, expected: Expected, tolerance: float, run: Callable[[], None]) -> Check:
    """Poison the outputs, ``run``, and compare with what is expected."""
    kernel.poison()
    run()
    return compare(kernel, expected.probes, expected.references, tolerance)


def compare(kernel: Kernel, probes: Sequence[Probe], references: Sequence[Reference], tolerance: float) -> Check:
    """Compare what stands in the outputs now; the worst probe decides."""
    columns = kernel.output_shape[1]
    pairs = zip(probes, references, strict=True)
    results = [judge(kernel.observe(each), expected, tolerance, columns) for each, expected in pairs]
    return next((result for result in results if not result.passed), max(results, key=lambda r: r.error_rel or 0.0))


def judge(observed: Observed, reference: Reference, tolerance: float, columns: int) -> Check:
    """Decide one probe of an output of ``columns``.  NaN and infinities fail, as does any element that was never written."""
    if observed.unwritten or observed.nonfinite:
        reason = f"{observed.unwritten} elements never written, {observed.nonfinite} NaN or infinite"
        return Check(False, None, tolerance, None, observed.unwritten, observed.nonfinite, reason)
    error = relative_error(_flat(observed.tiles), _flat(reference.tiles), reference.expected_size)
    projected = projection_error(observed.projection, reference.projection, _expected_sizes(reference, columns))
    allowed = PROJECTION_ALLOWANCE * tolerance + PROJECTION_ROUNDOFF
    reason = ""
    if not error <= tolerance:  # written so that NaN fails
        reason = f"relative error {error:.3g} over sampled tiles is above the tolerance {tolerance:.3g}"
    elif not projected <= allowed:
        reason = f"a row's projection is off by {projected:.3g}, above {allowed:.3g}: wrong outside the sampled tiles"
    return Check(not reason, _finite(error), tolerance, _finite(projected), 0, 0, reason)


def relative_error(out: NDArray[np.float64], ref: NDArray[np.float64], expected_size: float = 0.0) -> float:
    """norm(out - ref) / norm(ref), or over the norm of as many elements of ``expected_size`` where that is larger.

    The terms of a sum round by what they are, not by what is left when they cancel: of an element or two the reference may be
    near 0 by chance.  Where it is all zeros and nothing is expected, the absolute norm.
    """
    scale = max(float(np.linalg.norm(ref)), expected_size * math.sqrt(ref.size))
    difference = float(np.linalg.norm(out - ref))
    return difference / scale if scale else difference


def projection_error(out: NDArray[np.float64], ref: NDArray[np.float64], expected: float | NDArray[np.float64] = 0.0) -> float:
    """Largest difference of a row's projection, relative to the row's own, the typical or the ``expected`` size.

    The largest of the three: of a single row the first two are one random number, which may lie near 0.  Where each row has an
    expected size of its own, none is typical.
    """
    if not ref.size:
        return 0.0
    typical = expected if isinstance(expected, np.ndarray) else max(math.sqrt(float(np.mean(ref**2))), expected)
    scale = np.maximum(np.abs(ref), typical)
    return float(np.max(np.abs(out - ref) / np.where(scale > 0, scale, 1.0)))


def _expected_sizes(reference: Reference, columns: int) -> float | NDArray[np.float64]:
    """Root mean square of a sum of ``columns`` elements with random signs, from the elements of the tiles; or of each row, of
    those below the median the median: a row of nothing but rounding has no size to be judged by.
    """
    if reference.row_norms is not None:
        norms = reference.row_norms
        return np.maximum(norms, np.median(norms)) if norms.size else 0.0
    elements = _flat(reference.tiles)
    least = math.sqrt(columns) * reference.expected_size
    return max(math.sqrt(columns * float(np.mean(elements**2))), least) if elements.size else 0.0


def _finite(value: float) -> float | None:
    """A norm of huge garbage overflows; the reason keeps the text, and JSON has no infinity."""
    return value if math.isfinite(value) else None


def _flat(tiles: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate([tile.ravel() for tile in tiles]) if tiles else np.empty(0)
