"""The messages of a debug log, freed of what stands before them and of each other."""

import re
from collections.abc import Iterator
from typing import NamedTuple

# host:process:thread [device] NCCL INFO message; several processes may write into one line, a launcher may tag it in front, and
# a warning names its place in the source between device and level.
_MESSAGE = re.compile(r"[^\s:\]]+:\d+:\d+ \[[^\]\s]*\] (?:\S+:\d+ )?NCCL (?P<level>INFO|WARN|TRACE|VERSION) ?")


class Message(NamedTuple):
    """One message, without its prefix."""

    level: str
    text: str


def messages(text: str) -> Iterator[Message]:
    """Every message of a log in order; a line without the library's prefix comes as it is, with an empty level.

    A prefix that is cut off after it began ends the log: nothing is known of what would have followed.
    """
    for line in text.splitlines():
        starts = list(_MESSAGE.finditer(line))
        before = line[: starts[0].start()] if starts else line
        if before.strip():
            yield Message("", before.strip())
        for start, following in zip(starts, (*starts, None)[1:], strict=True):
            yield Message(start["level"], line[start.end() : following.start() if following else None].strip())
