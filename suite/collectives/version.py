"""Versions of NCCL and RCCL, which decide how they are forced, what they log and which constants they predict with."""

import re
from typing import NamedTuple, Self

from suite.errors import UsageError

_TEXT = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


class NcclVersion(NamedTuple):
    """Orders as versions do."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """``2.28.9``, ``2.28.9+cuda13.0`` or ``v2.28``; raises ``UsageError`` for anything else."""
        found = _TEXT.search(text)
        if not found:
            raise UsageError(f"'{text}' is no NCCL version; write it as 2.28.9")
        return cls(*(int(part or 0) for part in found.groups()))

    @classmethod
    def of_code(cls, code: int) -> Self:
        """The number of ``ncclGetVersion``: 22809 is 2.28.9; up to 2.8 it was 2804 for 2.8.4."""
        unit = 1000 if code < 10_000 else 10_000
        return cls(code // unit, code % unit // 100, code % 100)

    def __str__(self) -> str:
        return ".".join(map(str, self))


SCOPED_TOKENS = NcclVersion(2, 24)  # NCCL_ALGO and NCCL_PROTO by operation; a bad token is an error
NAMED_CHOICES = NcclVersion(2, 24)  # the log names algorithm, protocol and channels that were launched
NUMBERED_CHOICES = NcclVersion(2, 20)  # the log has numbers for algorithm and protocol, before anything is launched
