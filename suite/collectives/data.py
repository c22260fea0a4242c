"""What every rank puts in, and what every rank must get out, for any slice of a message and by arithmetic alone.

A value depends on seed, rank and index only: no rank needs another's data to know what it must receive, and a check can look at
some slices of a message that does not fit anywhere twice.  Values repeat after ``PERIOD`` elements, so that gigabytes are
written and checked at the pace of a copy; as a prime it shares no factor with the sizes of parts and chunks, and data that
were moved to a wrong place are seen as well as without it.

    integers  whole numbers whose sums are exact in the format whatever the order of adding: the result must be equal.  What
              loses a rank, counts one twice, mixes up two or leaves old data cannot hide in rounding
    random    normal numbers, rounded to the format: the result must be as near as ``tolerance`` says; of integer formats the
              integers again.  Of a small message an element has the same sign on all ranks, so that no sum is near 0
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suite.collectives.message import Message
from suite.collectives.names import Op
from suite.collectives.number_format import NumberFormat, number_format
from suite.collectives.part import Part
from suite.collectives.rounding import Values, rounded

Kind = Literal["integers", "random"]
PERIOD = 131_071
FEW_ELEMENTS = 1024  # below, a sum of normal numbers may by chance be so near 0 that its rounding looks large beside it
LARGEST_NORMAL = (2 * 32 * np.log(2)) ** 0.5  # what 32 random bits give by Box and Muller
WHOLE_PERIOD_FROM = PERIOD // 8  # elements from which a slice is cut out of a period that is kept, not drawn for itself
_CONCATENATED = (Op.ALL_GATHER, Op.GATHER, Op.ALL_TO_ALL)  # what is received is a block a rank
_Words = NDArray[np.uint64]
_Indices = NDArray[np.int64]
# The finaliser of splitmix64 (Steele, Lea and Flood, 2014): every bit of the input moves every bit of the output.
_ODD, _MIX_A, _MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Inputs(NamedTuple):
    """The data of one run of a message; another ``seed`` is other data in the same buffers."""

    message: Message
    kind: Kind
    seed: int

    def sent(self, rank: int, part: Part) -> Values:
        """What ``rank`` sends in ``part`` of its send buffer."""
        few = max(self.message.send_elements, self.message.receive_elements) < FEW_ELEMENTS
        drawn = _Drawn(self.kind, self.message.format, self.message.ranks, self.seed, rank, few)
        if part.elements < WHOLE_PERIOD_FROM:
            return _draw(drawn, (part.start + np.arange(part.elements)) % PERIOD)
        return np.resize(np.roll(_period(drawn), -(part.start % PERIOD)), part.elements)

    def received(self, rank: int, part: Part, root: int = 0) -> Values:
        """What ``rank`` must find in ``part`` of its receive buffer; sums are in float64, unrounded.

        Of ``reduce`` and ``gather`` only the root receives, of ``scatter`` and ``broadcast`` only the root sends; a
        ``send_recv`` comes from the rank before.
        """
        return _RECEIVED[self.message.op](self, rank, part, root)


def largest_drawn(message: Message) -> float:
    """No random value of a rank is larger in magnitude, of integer formats no integer."""
    fmt = number_format(message.format)
    if not fmt.significand_bits:
        return float(_largest_integer(fmt, message.ranks))
    return float(rounded(np.array([LARGEST_NORMAL]), fmt)[0])


def repeating(message: Message) -> Iterator[Part]:
    """The stretches of a receive buffer within which what must stand there repeats after ``PERIOD``."""
    elements = message.receive_elements // (message.ranks if message.op in _CONCATENATED else 1)
    for start in range(0, message.receive_elements, elements):
        yield Part(start, elements)


class _Drawn(NamedTuple):
    """What decides a rank's values; ``same_sign`` has an element's sign be that of all ranks."""

    kind: Kind
    format: str
    ranks: int
    seed: int
    rank: int
    same_sign: bool


@lru_cache(maxsize=64)
def _period(drawn: _Drawn) -> Values:
    """All the values that a rank has: 1 MiB."""
    return _draw(drawn, np.arange(PERIOD))


def _draw(drawn: _Drawn, indices: _Indices) -> Values:
    fmt, words = number_format(drawn.format), _words(drawn.seed, drawn.rank, indices)
    if drawn.kind == "random" and fmt.significand_bits:
        values = _random(fmt, words)
        return np.copysign(values, _random(fmt, _words(~drawn.seed, 0, indices))) if drawn.same_sign else values
    return _integers(fmt, drawn.ranks, words, drawn.rank, indices)


def _words(seed: int, rank: int, indices: _Indices) -> _Words:
    """64 random bits an element."""
    key = _mixed(_mixed(np.array([seed % 2**64], np.uint64)) ^ np.uint64(rank))
    return _mixed(key + _ODD * indices.astype(np.uint64))


def _mixed(words: _Words) -> _Words:
    words = (words ^ (words >> np.uint64(30))) * _MIX_A
    words = (words ^ (words >> np.uint64(27))) * _MIX_B
    return words ^ (words >> np.uint64(31))


def _integers(fmt: NumberFormat, ranks: int, words: _Words, rank: int, indices: _Indices) -> Values:
    """No zeros, and no larger than keeps the sum of everybody's exact.

    Where ranks outnumber what the format holds, they take turns: one in ``period`` elements is a rank's, the others are 0.
    """
    magnitudes = 1 + (words >> np.uint64(1)) % np.uint64(_largest_integer(fmt, ranks))
    values = np.where(words & np.uint64(1), 1.0, -1.0) * magnitudes.astype(np.float64)
    period = -(-ranks // fmt.exact_integers)
    return np.where(indices % period == rank % period, values, 0.0)


def _largest_integer(fmt: NumberFormat, ranks: int) -> int:
    return max(1, min(fmt.exact_integers // ranks, 2**20))


def _random(fmt: NumberFormat, words: _Words) -> Values:
    """Standard normal by Box and Muller."""
    high, low = (words >> np.uint64(32)).astype(np.float64), (words & np.uint64(0xFFFFFFFF)).astype(np.float64)
    radius = np.sqrt(-2 * np.log((high + 1) / 2**32))
    return rounded(radius * np.cos(2 * np.pi * low / 2**32), fmt)


def _sum(inputs: Inputs, part: Part) -> Values:
    total = np.zeros(part.elements)
    for rank in range(inputs.message.ranks):
        total += inputs.sent(rank, part)
    return total


def _concatenated(inputs: Inputs, part: Part, from_rank: Callable[[int, Part], Values]) -> Values:
    """``part`` of a buffer that holds one equal block a rank; ``from_rank`` gives a piece of a rank's block."""
    block = inputs.message.receive_elements // inputs.message.ranks
    pieces: list[Values] = []
    for rank in range(part.start // block, -(-part.stop // block)):
        start, stop = max(part.start, rank * block), min(part.stop, (rank + 1) * block)
        pieces.append(from_rank(rank, Part(start - rank * block, stop - start)))
    return np.concatenate(pieces) if pieces else np.zeros(0)


def _shifted(part: Part, by: int) -> Part:
    return Part(part.start + by, part.elements)


def _gathered(inputs: Inputs, rank: int, part: Part, root: int) -> Values:
    return _concatenated(inputs, part, inputs.sent)


def _exchanged(inputs: Inputs, rank: int, part: Part, root: int) -> Values:
    mine = rank * (inputs.message.send_elements // inputs.message.ranks)
    return _concatenated(inputs, part, lambda source, piece: inputs.sent(source, _shifted(piece, mine)))


_RECEIVED: dict[Op, Callable[[Inputs, int, Part, int], Values]] = {
    Op.ALL_REDUCE: lambda inputs, rank, part, root: _sum(inputs, part),
    Op.REDUCE: lambda inputs, rank, part, root: _sum(inputs, part),
    Op.REDUCE_SCATTER: lambda inputs, rank, part, root: _sum(inputs, _shifted(part, rank * inputs.message.receive_elements)),
    Op.ALL_GATHER: _gathered,
    Op.GATHER: _gathered,
    Op.ALL_TO_ALL: _exchanged,
    Op.BROADCAST: lambda inputs, rank, part, root: inputs.sent(root, part),
    Op.SCATTER: lambda inputs, rank, part, root: inputs.sent(root, _shifted(part, rank * inputs.message.receive_elements)),
    Op.SEND_RECV: lambda inputs, rank, part, root: inputs.sent((rank - 1) % inputs.message.ranks, part),
}
