"""Ranks of a peer: processes that need one another, so that all of them end when one fails or the time is up."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.peers.child import Deadline, PeerFailed, end, last_line

LOOK_S = 0.05


class Rank(NamedTuple):
    """How one of them is started; ``environment`` comes on top of this process's own."""

    argv: Sequence[str]
    environment: Mapping[str, str]


def run_ranks(ranks: Sequence[Rank], printed: Path, deadline: Deadline) -> None:
    """Start them all with everything they print in ``printed``, and wait; ``PeerFailed`` for anything but success in time."""
    started: list[subprocess.Popen[str]] = []
    with printed.open("w") as output:
        try:
            for argv, environment in ranks:
                told = {**os.environ, **environment}
                started.append(
                    subprocess.Popen(argv, env=told, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True)
                )
            failed = _first_to_fail(started, deadline)
        finally:
            for each in started:
                end(each)
    if failed is not None:
        said = last_line(printed.read_text(errors="replace"))
        raise PeerFailed(f"rank {failed} of {len(ranks)} ended with status {started[failed].returncode}: {said}")


def _first_to_fail(started: Sequence["subprocess.Popen[str]"], deadline: Deadline) -> int | None:
    """The rank that ended badly, at once; ``None`` when all have ended well."""
    while True:
        ends = [each.poll() for each in started]
        failed = next((rank for rank, status in enumerate(ends) if status), None)
        if failed is not None or None not in ends:
            return failed
        if not deadline.left_s():
            raise PeerFailed(f"{ends.count(None)} of {len(started)} ranks were still running when the time was up")
        time.sleep(LOOK_S)
