"""Telemetry of one result as one blob: the series as packed doubles, bytes of equal weight together, compressed.

Channels that were read at the same moments share one series of times.
"""

import json
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence

from suite.backend import Channel

_LENGTH = struct.Struct("<I")
_DOUBLE_BYTES = 8


def pack(channels: Mapping[str, Channel]) -> bytes:
    """Pack channels in their order; ``unpack`` gives back exactly the same numbers, NaN included."""
    series: dict[bytes, int] = {}

    def place(numbers: Sequence[float]) -> int:
        return series.setdefault(_to_bytes(numbers), len(series))

    heads = [[name, c.unit, c.unavailable, place(c.times_s), place(c.values)] for name, c in channels.items()]
    lengths = [len(packed) // _DOUBLE_BYTES for packed in series]
    head = json.dumps([heads, lengths], separators=(",", ":")).encode()
    return zlib.compress(_LENGTH.pack(len(head)) + head + _shuffle(b"".join(series)), level=1)


def unpack(blob: bytes) -> dict[str, Channel]:
    """Undo ``pack``; ``ValueError`` where the blob is not one."""
    try:
        raw = zlib.decompress(blob)
        (size,) = _LENGTH.unpack_from(raw)
        heads, lengths = json.loads(raw[_LENGTH.size : _LENGTH.size + size])
        series = list(_split(_unshuffle(raw[_LENGTH.size + size :]), lengths))
        return {name: Channel(unit, series[times], series[values], why) for name, unit, why, times, values in heads}
    except (zlib.error, struct.error, IndexError, TypeError) as error:
        raise ValueError(f"not packed telemetry: {error}") from error


def _to_bytes(numbers: Sequence[float]) -> bytes:
    packed = array("d", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _split(raw: bytes, lengths: Sequence[int]) -> Iterator[tuple[float, ...]]:
    numbers = array("d")
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    if sum(lengths) != len(numbers):
        raise ValueError(f"not packed telemetry: {len(numbers)} numbers where {sum(lengths)} were announced")
    start = 0
    for length in lengths:
        yield tuple(numbers[start : start + length])
        start += length


def _shuffle(raw: bytes) -> bytes:
    # Neighbouring readings differ in their low bytes only: put together, the high bytes compress to nearly nothing.
    return b"".join(raw[i::_DOUBLE_BYTES] for i in range(_DOUBLE_BYTES))


def _unshuffle(raw: bytes) -> bytes:
    if len(raw) % _DOUBLE_BYTES:
        raise ValueError(f"not packed telemetry: {len(raw)} bytes are no whole number of doubles")
    return _shuffle_back(raw, len(raw) // _DOUBLE_BYTES)


def _shuffle_back(raw: bytes, count: int) -> bytes:
    out = bytearray(len(raw))
    for i in range(_DOUBLE_BYTES):
        out[i::_DOUBLE_BYTES] = raw[i * count : (i + 1) * count]
    return bytes(out)
