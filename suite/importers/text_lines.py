"""The lines of a terminal log, by the process that a launcher says printed them, freed of messages that run into them."""

import re
from collections.abc import Mapping
from typing import NamedTuple

# mpirun --tag-output: [1,0]<stdout>:   mpirun -l or a wrapper: [0]   srun -l: 0:
_TAG = re.compile(r"^(?P<tag>\[\d+(?:,\d+)?\](?:<\w+>:?)? ?|\s*\d+: )")
# The host's name begins after the tag or where a word does: tried at every letter of it, a long line takes quadratic time.
_MESSAGE = re.compile(
    r"(?:\[\d+(?:,\d+)?\](?:<\w+>:?)? ?|(?<![^\s:\]]))"
    r"[^\s:\]]+:\d+:\d+ \[[^\]\s]*\] (?:\S+:\d+ )?NCCL (?:INFO|WARN|TRACE)\b"
)
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Line(NamedTuple):
    """``message`` is what a library wrote into the line; ``closed`` is false where the text ends without a line break."""

    text: str
    message: str
    closed: bool


def lines_by_process(text: str) -> Mapping[str, list[Line]]:
    """Lines in order, by launcher's tag; everything is one process where nothing is tagged."""
    found: dict[str, list[Line]] = {}
    for raw in text.replace("\r\n", "\n").splitlines(keepends=True):
        line = _ESCAPE.sub("", raw.rstrip("\r\n"))
        tagged = _TAG.match(line)
        own = line[tagged.end() :] if tagged else line
        message = _MESSAGE.search(own)
        cut = message.start() if message else len(own)
        found.setdefault(tagged["tag"].strip() if tagged else "", []).append(
            Line(own[:cut], own[cut:], raw.endswith(("\n", "\r")))
        )
    return found
