"""How fast each shape of a product may be, by counting: a prior that says what to look at first, never what wins.

quantisation   an output is cut into tiles and tiles go to the units in waves: what a last wave or an edge leaves idle is lost
prologue       a tile waits for its first operands and stores its results: a short K hides less of it
launch         a launch takes its time however little it does
power          bytes cost energy that operations then lack: what is read again from memory counts, what a cache holds does not

What is known of the device comes from its sheet (``Machine``); every constant below is assumed, not measured.  A wrong one
costs places in the order, and no result depends on it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Shapes = NDArray[np.int64]  # one row a shape: m, n, k
Rates = NDArray[np.float64]

# Output tiles (rows, columns) that matrix libraries cut a large product into, with what a full wave of them reaches of the
# largest's rate: a smaller tile reads more operands an operation.
TILES = ((128, 256, 1.0), (256, 128, 1.0), (256, 256, 0.97), (128, 192, 0.97), (128, 128, 0.9), (64, 256, 0.85))
PROLOGUE_K = 256  # of K: what filling a pipeline of several stages and storing a tile take, in time of its main loop
LAUNCH_S = 3e-6
UNKNOWN_FLOP_S = 20e12
UNKNOWN_LLC_BYTES = 32 * 2**20
FLOPS_PER_BYTE_BY_ENERGY = 40.0  # operations that take the energy of moving one byte from memory


@dataclass(frozen=True)
class Machine:
    """What of a device the model counts with; rates in operations and bytes per second, ``None`` where they are not known."""

    units: int = 1
    llc_bytes: int | None = None
    peak_flop_s: float | None = None
    bandwidth_bytes_s: float | None = None


def efficiency(shapes: Shapes, machine: Machine, input_bytes: float, output_bytes: float) -> Rates:
    """The expected share of the peak, 0 to 1, of each shape, with the tile that suits it best.

    ``input_bytes`` and ``output_bytes`` are those of one element of an operand and of the output.
    """
    best: Rates = np.max([_with_tile(shapes, machine, tile, input_bytes, output_bytes) for tile in TILES], axis=0)
    return best


def flops(shapes: Shapes) -> Rates:
    """Operations of each product."""
    counted: Rates = 2.0 * np.prod(shapes.astype(np.float64), axis=1)
    return counted


def _with_tile(
    shapes: Shapes, machine: Machine, tile: tuple[int, int, float], input_bytes: float, output_bytes: float
) -> Rates:
    m, n, k = (column.astype(np.float64) for column in shapes.T)
    rows, columns, reached = tile
    tiles = np.ceil(m / rows) * np.ceil(n / columns)
    waves = np.ceil(tiles / machine.units)
    busy = m * n / (waves * machine.units * rows * columns)
    share = reached * busy * k / (k + PROLOGUE_K)
    peak_flop_s = machine.peak_flop_s or UNKNOWN_FLOP_S
    alone_s = flops(shapes) / (peak_flop_s * share)
    share = share * alone_s / (alone_s + LAUNCH_S)
    compulsory = (m * k + k * n) * input_bytes + m * n * output_bytes
    if machine.bandwidth_bytes_s:
        share = np.minimum(share, flops(shapes) / compulsory * machine.bandwidth_bytes_s / peak_flop_s)
    moved = _moved_bytes(shapes, machine, tile, compulsory, input_bytes, output_bytes)
    cooled: Rates = share / (1 + FLOPS_PER_BYTE_BY_ENERGY * moved / flops(shapes))
    return cooled


def _moved_bytes(
    shapes: Shapes, machine: Machine, tile: tuple[int, int, float], compulsory: Rates, input_bytes: float, output_bytes: float
) -> Rates:
    """Bytes from memory: each wave reads rows and columns of a block about as wide as it is high, unless a cache has them."""
    m, n, k = (column.astype(np.float64) for column in shapes.T)
    area = machine.units * tile[0] * tile[1]
    side = np.sqrt(area)
    again = np.maximum(1.0, m * n / area) * 2 * side * k * input_bytes + m * n * output_bytes
    fits = (m * k + k * n) * input_bytes <= (machine.llc_bytes or UNKNOWN_LLC_BYTES)
    return np.where(fits, compulsory, np.maximum(compulsory, again))
