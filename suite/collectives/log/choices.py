"""What a library says that it chose for one operation, in the form of every version.

2.20-2.22   65536 Bytes -> Algo 0 proto 1 time 51.6
2.23        AllReduce: 65536 Bytes -> Algo 0 proto 1 time 51.6
from 2.24   AllReduce: 65536 Bytes -> Algo TREE proto LL128 channel{Lo..Hi}={0..15}
newer       the same, then cgaClusterSize 4 or comm 0x5580, which are passed over
from 2.27   AllReduce [Symmetric]: 65536 Bytes -> Kernel NAME nchannels 16 nthreads 512
from 2.29   AllGather [Copy Engine]: 65536 Bytes -> cudaMemcpyAsync
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from suite.collectives.names import Algo, Op, Proto, algo_of, op_of, proto_of
from suite.collectives.version import NAMED_CHOICES, NcclVersion

_Name = TypeVar("_Name")
_HEAD = r"^(?:(?P<op>\w+)(?: \[(?P<engine>[^\]]+)\])?: )?(?P<bytes>\d+) Bytes -> "
_CHOICE = re.compile(
    _HEAD + r"Algo (?P<algo>\w+) proto (?P<proto>\w+) "
    r"(?:time (?P<time_us>[\d.]+)|channel\{Lo\.\.Hi\}=\{(?P<low>\d+)\.\.(?P<high>\d+)\}(?: (?:cgaClusterSize|comm) \S+)*)$"
)
_KERNEL = re.compile(
    _HEAD + r"Kernel (?P<kernel>\S+) nchannels (?P<channels>\d+) nthreads (?P<threads>\d+)(?: nWorks (?P<works>\d+))?$"
)
_ENGINE = re.compile(_HEAD + r"(?P<what>(?:cudaMemcpy|RMA ).*)$")


class LoggedChoice(NamedTuple):
    """One line of the log.

    ``logged_bytes`` count as the library does: see ``logged_bytes``.  ``op`` is ``None`` where the version does not say it.
    A kernel of symmetric memory or a copy engine has no algorithm and protocol: ``kernel`` says what it was.  ``predicted_s``
    is the library's own estimate, seconds; where it prints 0 it made none.
    """

    op: Op | None
    logged_bytes: int
    algo: Algo | None = None
    proto: Proto | None = None
    channels: int | None = None
    predicted_s: float | None = None
    kernel: str | None = None
    threads: int | None = None
    works: int | None = None


def parse_choice(text: str) -> LoggedChoice | None:
    """The choice that a message tells of; ``None`` for any other message, and for one that is cut."""
    found = _CHOICE.match(text)
    if found:
        return _algorithm(found)
    found = _KERNEL.match(text)
    if found:
        numbers = [found[name] and int(found[name]) for name in ("channels", "threads", "works")]
        channels, threads, works = (number if number else None for number in numbers)
        op, size = op_of(found["op"] or ""), int(found["bytes"])
        return LoggedChoice(op, size, channels=channels, kernel=found["kernel"], threads=threads, works=works)
    found = _ENGINE.match(text)
    if found:
        return LoggedChoice(op_of(found["op"] or ""), int(found["bytes"]), kernel=f"{found['engine']}: {found['what']}")
    return None


def _algorithm(found: re.Match[str]) -> LoggedChoice:
    algo = _numbered(tuple(Algo), found["algo"]) if found["algo"].isdigit() else algo_of(found["algo"])
    proto = _numbered(tuple(Proto), found["proto"]) if found["proto"].isdigit() else proto_of(found["proto"])
    channels = int(found["high"]) - int(found["low"]) + 1 if found["low"] else None
    time_us = float(found["time_us"] or 0)
    predicted_s = time_us * 1e-6 if time_us else None
    return LoggedChoice(op_of(found["op"] or ""), int(found["bytes"]), algo, proto, channels, predicted_s)


def _numbered(names: Sequence[_Name], number: str) -> _Name | None:
    return names[int(number)] if int(number) < len(names) else None


def logged_bytes(op: Op, message_bytes: int, ranks: int, version: NcclVersion) -> int:
    """What the log calls ``message_bytes`` of an operation: from 2.24 on the share of one rank where ranks have shares."""
    shared = op in (Op.ALL_GATHER, Op.REDUCE_SCATTER) and version >= NAMED_CHOICES
    return message_bytes // ranks if shared else message_bytes
