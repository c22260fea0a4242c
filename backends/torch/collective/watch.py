"""Ranks that have been silent: which of them is stopped, and for which of them the others wait."""

import sys
import time
from collections.abc import Callable, Collection, Sequence

from backends.torch.collective.orders import OUTSIDE, Waits
from backends.torch.collective.starting import Handle

SILENCE_S, LOOKS = 1.0, 3  # of all ranks before they are looked at, and how often in a row the same is to be seen
STALE_S = 2.0  # after which a rank that said that it waits may have gone on


class Watch:
    """One that is stopped has all others wait, and none of them answers; so has one that never comes to where they are."""

    def __init__(self, handles: Sequence[Handle], asked: str, named: Callable[[Sequence[int]], str] | None = None) -> None:
        self._handles, self._asked = handles, asked
        self._named = named or self._numbered
        self._looks: dict[int, int] = {}  # how often in a row a rank was seen stopped
        self._silences = 0
        self._heard: dict[int, tuple[int, float]] = {}  # where a rank waits, and when it said so
        self._seen, self._times = "", 0

    def heard(self, number: int, said: Waits) -> None:
        """A rank stands still."""
        self._heard[number] = said.iteration, time.monotonic()

    def look(self, answered: Collection[int]) -> str:
        """Which ranks stood still, where it was seen ``LOOKS`` times in a row; empty where none did, or not yet.

        Times are no guide: whoever stops all ranks stops this process too, and continues them one by one.
        """
        silent = [number for number in range(len(self._handles)) if number not in answered]
        self._looks = {number: self._looks.get(number, 0) + 1 for number in silent if self._handles[number].is_stopped()}
        self._silences += 1
        self._tell(silent)
        stopped = [number for number, looks in self._looks.items() if looks >= LOOKS]
        return f"{self._named(stopped)} stood still: stopped by a signal, and did not answer {self._asked}" if stopped else ""

    def _tell(self, silent: Sequence[int]) -> None:
        """Write into the log what has been seen ``LOOKS`` times in a row, once: its last line is kept with a case that is
        ended by its deadline.
        """
        found = self._waited_for(silent)
        self._times = self._times + 1 if found == self._seen else 1
        self._seen = found
        if not found and self._silences == LOOKS and len(silent) < len(self._handles):
            found = f"{self._named(silent)} did not answer {self._asked} within {LOOKS * SILENCE_S:g} s, others did"
        elif self._times != LOOKS:
            return
        if found:
            sys.stderr.write(f"{found}\n")
            sys.stderr.flush()

    def _waited_for(self, silent: Sequence[int]) -> str:
        """Who has not come to where others wait, or that all have; empty where nobody waits for another."""
        now = time.monotonic()
        fresh = {number: at for number, (at, when) in self._heard.items() if number in silent and now - when < STALE_S}
        last = max(fresh.values(), default=OUTSIDE)
        if last == OUTSIDE:
            return ""
        where = f"iteration {last + 1} of {self._asked}" if last else self._asked
        if absent := [number for number in silent if fresh.get(number, OUTSIDE) < last]:
            return f"{self._named(absent)} did not come to {where}, others wait there"
        return f"{self._named(silent)} have come to {where}, and none goes on" if len(silent) > 1 else ""

    def _numbered(self, numbers: Sequence[int]) -> str:
        return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))} of {len(self._handles)}"
