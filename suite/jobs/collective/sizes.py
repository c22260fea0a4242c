"""Message sizes as people write them: bytes, or with a binary unit."""

import re

from suite.collectives.message import LARGEST_BYTES, SMALLEST_BYTES
from suite.errors import UsageError

_TEXT = re.compile(r"(-?\d+) ?(B|KiB|MiB|GiB|)")
_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse_size(text: str) -> int:
    """Read ``8``, ``64KiB``, ``4MiB`` or ``1GiB`` as bytes.

    Raises ``UsageError`` for anything else, below ``SMALLEST_BYTES`` and beyond ``LARGEST_BYTES``.
    """
    found = _TEXT.fullmatch(str(text).strip())
    if not found:
        raise UsageError(
            f"size '{text}' in jobs.collective.sizes is not a number of bytes; write for instance 8, 64KiB or 1GiB"
        )
    size = int(found[1]) * _UNITS[found[2]]
    if not SMALLEST_BYTES <= size <= LARGEST_BYTES:
        limits = f"{size_text(SMALLEST_BYTES)} to {size_text(LARGEST_BYTES)}"
        raise UsageError(f"size '{text}' in jobs.collective.sizes is {size} bytes; sizes go from {limits}")
    return size


def size_text(size: int) -> str:
    """Exactly, in the largest unit that divides it: ``1020 B``, ``64 KiB``."""
    unit, factor = max((each for each in _UNITS.items() if each[0] and size % each[1] == 0), key=lambda each: each[1])
    return f"{size // factor} {unit}"
