"""Work of a lane whose cases follow from what it finds on the way: a search."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from suite.launcher.happenings import CaseEnded, Happening
from suite.launcher.seat import Seat
from suite.planned import PlannedCase


class Desk(NamedTuple):
    """What a quest works with.

    ``measure`` takes one case from preparation to its end, which is told like any other's, and gives it; ``None`` when the run
    ended first.  ``over`` says whether the run has ended, or may begin nothing more.
    """

    seat: Seat
    tell: Callable[[Happening], None]
    measure: Callable[[PlannedCase], CaseEnded | None]
    over: Callable[[], bool]


class Quest(Protocol):
    """Runs after the cases of its slot, in the same worker."""

    @property
    def slot(self) -> int:
        """The slot it is for."""
        ...

    def run(self, desk: Desk) -> None:
        """Find, and measure what was found; return once done, or once the run is over."""
        ...
