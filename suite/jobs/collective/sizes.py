"""Message sizes as people write them: bytes, or with a binary unit."""

import re

from suite.collectives.message import LARGEST_BYTES
from suite.errors import UsageError

_TEXT = re.compile(r"(-?\d+) ?(B|KiB|MiB|GiB|)")
_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse_size(text: str) -> int:
    """Read ``8``, ``64KiB``, ``4MiB`` or ``1GiB`` as bytes; raises ``UsageError`` for anything else, 0 and beyond 8 GiB."""
    found = _TEXT.fullmatch(str(text).strip())
    if not found:
        raise UsageError(
            f"size '{text}' in jobs.collective.sizes is not a number of bytes; write for instance 8, 64KiB or 1GiB"
        )
    size = int(found[1]) * _UNITS[found[2]]
    if not 1 <= size <= LARGEST_BYTES:
        raise UsageError(f"size '{text}' in jobs.collective.sizes is {size} bytes; sizes go from 1 byte to 8GiB")
    return size
