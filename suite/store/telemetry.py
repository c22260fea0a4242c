"""Telemetry of one result as one blob: the series as packed doubles, bytes of equal weight together, compressed.

Channels that were read at the same moments share one series of times.
"""

import json
import math
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence

from suite.backend import Channel
from suite.store.plausible import UNITS, refuse_beyond

_LENGTH = struct.Struct("<I")
_DOUBLE_BYTES = 8


def pack(channels: Mapping[str, Channel]) -> bytes:
    """Pack channels in their order; ``unpack`` gives back exactly the same numbers, and NaN as NaN.

    Of what was measured the store packs the readings that there are (``suite.measurement.as_read``).  A NaN or an infinity
    in a file is read as a reading that was missing.
    """
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
    except (zlib.error, struct.error, IndexError, TypeError, RecursionError, OverflowError) as error:
        raise ValueError(f"not packed telemetry: {error}") from error


def unpack_plausible(blob: bytes) -> dict[str, Channel]:
    """``unpack``, and ``ValueError`` too for channels that no device can have given; missing readings are let through."""
    channels = unpack(blob)
    for name, channel in channels.items():
        _refuse_odd(name, channel)
    return channels


def missing(channels: Mapping[str, Channel]) -> dict[str, int]:
    """How many readings of each channel are no finite number or have no such time; only channels that have some."""
    counts = {
        name: sum(not all(map(math.isfinite, pair)) for pair in zip(channel.times_s, channel.values, strict=True))
        for name, channel in channels.items()
    }
    return {name: count for name, count in counts.items() if count}


def _refuse_odd(name: str, channel: Channel) -> None:
    if not all(isinstance(text, str) for text in (name, channel.unit, channel.unavailable)):
        raise ValueError(f"a channel's name, unit or reason is no text: {str(name)[:40]}")
    if len(channel.times_s) != len(channel.values):
        raise ValueError(f"channel {name[:40]} has {len(channel.values)} readings at {len(channel.times_s)} times")
    known = [value for value in channel.values if math.isfinite(value)]
    if channel.unit in UNITS and known:
        for value in (min(known), max(known)):
            try:
                refuse_beyond(UNITS[channel.unit], value)
            except ValueError as error:
                raise ValueError(f"channel {name[:40]}: {error}") from error


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
