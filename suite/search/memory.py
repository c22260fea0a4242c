"""How much device memory a search may take at once, known before anything is looked at."""

from typing import TYPE_CHECKING

from suite.jobs.shapes import Shape
from suite.plan import MEMORY_SHARE

if TYPE_CHECKING:  # a plan without a search loads no numpy
    from suite.search.space import Space
    from suite.search.subject import Subject

HELD_SHARE = 0.5  # of the usable memory: what a candidate needs for a moment while it is made ready comes on top


def room_bytes(device_bytes: int) -> float:
    """What candidates that are held ready beside one another may take of a device's memory."""
    return HELD_SHARE * MEMORY_SHARE * device_bytes


def most_bytes(subject: "Subject", space: "Space") -> int:
    """The most that looking or measuring may need: which shapes they will be is not known, so that the largest count.

    Looks hold as many candidates as there is room for, and one more while it is made ready; the best are then measured, each
    alone.
    """
    import numpy as np

    from suite.search.hunt import MOST_CANDIDATES

    shapes = space.shapes.astype(np.float64)
    m, n, k = shapes.T
    operand, output = subject.element_bytes()
    of_each = operand * (m * k + k * n) + output * m * n
    smallest_first = np.argsort(of_each, kind="stable")
    last = _last_that_fits(subject, [Shape(*map(int, shapes[index])) for index in smallest_first])
    largest = Shape(*map(int, shapes[smallest_first[last]]))
    measured = max(subject.planned(largest, regime).memory_bytes for regime in subject.regimes)
    looked = subject.look(largest).memory_bytes
    held = of_each[smallest_first[max(0, last - MOST_CANDIDATES + 1) : last + 1]]
    together = looked * float(held.sum() / held[-1])  # with what each needs beside its data, as the largest does
    info = subject.slot.info
    if info is None:  # how much room there is, is not known either
        return measured
    return max(measured, looked + int(min(room_bytes(info.memory_bytes), max(0.0, together - looked))))


def _last_that_fits(subject: "Subject", smallest_first: list[Shape]) -> int:
    """The place of the largest shape that the device has the memory for; a larger one needs no less."""
    low, high = 0, len(smallest_first) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if subject.fits(smallest_first[middle]) else (low, middle - 1)
    return low
