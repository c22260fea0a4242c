"""The definitions once more, in NumPy and number by number, as plainly as they are written down."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray

from backends.torch.quantise.elements import E2M1, E2M3, E3M2, E4M3, E5M2, SmallFloat

Array = NDArray[Any]
CODES: dict[SmallFloat, type] = {
    E4M3: ml_dtypes.float8_e4m3fn,
    E5M2: ml_dtypes.float8_e5m2,
    E2M3: ml_dtypes.float6_e2m3fn,
    E3M2: ml_dtypes.float6_e3m2fn,
    E2M1: ml_dtypes.float4_e2m1fn,
}
ELEMENTS = tuple(CODES)


def values_of(element: SmallFloat) -> NDArray[np.float64]:
    """What each code is worth, by ml_dtypes."""
    return np.arange(1 << element.bits, dtype=np.uint8).view(CODES[element]).astype(np.float64)


def nearest(element: SmallFloat, values: Array) -> NDArray[np.uint8]:
    """Codes of the nearest numbers to finite values, ties to the even code, by comparing with every midpoint in float64."""
    table = values_of(element)[: element.largest_code + 1]
    middles = (table[1:] + table[:-1]) / 2
    magnitude = np.abs(np.asarray(values, np.float64))
    below = np.searchsorted(middles, magnitude, side="left")  # midpoints that are smaller
    tie = np.isin(magnitude, middles) & (below % 2 == 1)  # between an odd code and the even one above it
    codes = (below + tie).astype(np.uint8)
    return codes | (np.signbit(values).astype(np.uint8) << (element.bits - 1))


class Stored(NamedTuple):
    """Codes (rows x k, one a byte), scales as they are stored, and zero points."""

    codes: Array
    scales: Array
    zero_points: Array | None = None
    tensor_scale: np.float32 | None = None


def each_block(x: Array, rows: int, k: int, work: Callable[[Array], tuple[Array, Any, Any]]) -> Stored:
    """Apply ``work`` to every block; 0 stands for all rows or all of K."""
    rows, k = rows or x.shape[0], k or x.shape[1]
    codes = np.empty(x.shape, np.uint8)
    scales, zeros = [], []
    for top in range(0, x.shape[0], rows):
        made = []
        for left in range(0, x.shape[1], k):
            block = (slice(top, top + rows), slice(left, left + k))
            codes[block], *scale_and_zero = work(x[block].astype(np.float64))
            made.append(scale_and_zero)
        scales.append([scale for scale, _ in made])
        zeros.append([zero for _, zero in made])
    return Stored(codes, np.array(scales), None if zeros[0][0] is None else np.array(zeros))


def mx(x: Array, element: SmallFloat) -> Stored:
    """OCP MX v1.0, section 6.3."""
    emax = {E4M3: 8, E5M2: 15, E3M2: 4, E2M3: 2, E2M1: 2}[element]

    def work(block: Array) -> tuple[Array, int, None]:
        largest = float(np.abs(block).max())
        if not math.isfinite(largest):
            return np.zeros(block.shape, np.uint8), 0xFF, None
        exponent = math.frexp(largest)[1] - 1 - emax if largest else -127
        if exponent > 127:
            return np.zeros(block.shape, np.uint8), 0xFF, None
        exponent = max(exponent, -127)
        return nearest(element, block / 2.0**exponent), exponent + 127, None

    return each_block(x, 1, 32, work)


def nvfp4(x: Array) -> Stored:
    """Transformer Engine's documentation, "NVFP4": both levels of scales."""
    largest = float(np.abs(x).max())
    if not math.isfinite(largest):
        tensor_scale = np.float32("nan")
    else:
        tensor_scale = np.float32(max(largest / (448 * 6), 2.0**-126)) if largest else np.float32(1)
    table = values_of(E4M3)

    def work(block: Array) -> tuple[Array, int, None]:
        if np.isnan(tensor_scale):
            return np.zeros(block.shape, np.uint8), 0x7F, None
        code = int(nearest(E4M3, np.abs(block).max() / 6 / np.float64(tensor_scale)))
        step = table[code] * np.float64(tensor_scale)
        return nearest(E2M1, block / step) if step else np.zeros(block.shape, np.uint8), code, None

    return each_block(x, 1, 16, work)._replace(tensor_scale=tensor_scale)


def fp8(x: Array, element: SmallFloat, rows: int, k: int) -> Stored:
    """The largest magnitude of each block carried to the largest number."""

    def work(block: Array) -> tuple[Array, np.float32, None]:
        scale = _scale(np.abs(block).max() / element.largest)
        if np.isnan(scale):
            return np.zeros(block.shape, np.uint8), scale, None
        return nearest(element, block / np.float64(scale)), scale, None

    return each_block(x, rows, k, work)


def symmetric(x: Array, rows: int, k: int, bits: int, scale_type: type = np.float32) -> Stored:
    """round(x / scale), ties to even, with the largest magnitude at 2^(bits - 1) - 1."""
    highest = 2 ** (bits - 1) - 1

    def work(block: Array) -> tuple[Array, Any, None]:
        scale = _scale(np.abs(block).max() / highest, scale_type)
        if np.isnan(scale):
            return np.zeros(block.shape, np.uint8), scale, None
        numbers = np.clip(np.rint(block / np.float64(scale)), -highest, highest).astype(np.int64)
        return (numbers % 2**bits).astype(np.uint8), scale, None

    return each_block(x, rows, k, work)


def shifted(x: Array, rows: int, k: int, bits: int, lowest: int, scale_type: type = np.float32) -> Stored:
    """ONNX QuantizeLinear: round(x / scale) + zero point, over the range that holds all numbers and zero."""
    highest = lowest + 2**bits - 1

    def work(block: Array) -> tuple[Array, Any, int]:
        low, high = min(0.0, float(block.min())), max(0.0, float(block.max()))
        scale = _scale((high - low) / (highest - lowest), scale_type)
        if np.isnan(scale) or np.isnan(block).any():
            return np.zeros(block.shape, np.uint8), scale_type("nan"), max(lowest, 0)
        zero = lowest + int(np.rint(-low / np.float64(scale)))
        numbers = np.clip(np.rint(block / np.float64(scale)) + zero, lowest, highest).astype(np.int64)
        return (numbers % 2**bits).astype(np.uint8), scale, zero

    return each_block(x, rows, k, work)


def _scale(ideal: float, scale_type: type = np.float32) -> Any:
    """To float32, at least its smallest normal number, then to the type of the scales; 1 for zero, NaN for infinity."""
    with np.errstate(over="ignore"):
        scale = np.float32(1) if ideal == 0 else np.float32(ideal)
    return scale_type(np.maximum(scale, np.float32(2.0**-126))) if np.isfinite(scale) else scale_type("nan")


def hard_matrix(rows: int, k: int, seed: int) -> torch.Tensor:
    """Float32 numbers that find faults: blocks of all scales, ties, signed zeros, zero blocks, one huge among small ones."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, k, generator=generator)
    x *= torch.exp2(torch.randint(-30, 31, (rows, -(-k // 16)), generator=generator)).repeat_interleave(16, 1)[:, :k]
    x[0] = torch.arange(k) * 0.25 - 8  # halves and quarters: ties
    x[1] = torch.randint(-6, 7, (k,), generator=generator) * 0.5
    x[2, : k // 2] = 0.0
    x[2, 5::7] = -0.0
    x[3, 40] = 3e38
    x[4, 8:40] *= 1e-37
    x[5] = 2.0 ** torch.arange(-140, k - 140).clamp(max=126)  # float32's subnormal numbers among them
    x[6] = x[6].abs()
    return x
