"""How far a rank has come with the order under way, told to the crew by a thread for as long as the rank stands still.

The rank's own thread waits for the others in a library, which answers nobody.  A rank that goes on says nothing, so that
nothing is sent within the times of a measurement.
"""

import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from backends.torch.collective.orders import OUTSIDE, Waits

LOOK_EVERY_S = 0.4  # two looks, after which a rank counts as standing still, are over before the crew looks for the first time


class Progress:
    """The rank's side of its connection, which two threads write to."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._writing = threading.Lock()
        self._over = threading.Event()
        self._orders, self._is_busy, self._entered = 0, False, OUTSIDE
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def begin(self) -> None:
        """An order has come; nothing that ranks do together has begun."""
        with self._writing:
            self._orders, self._is_busy, self._entered = self._orders + 1, True, OUTSIDE

    def enter(self, iteration: int) -> None:
        """This rank now waits for the others, in this iteration of the order."""
        self._entered = iteration

    def answer(self, message: Any) -> None:
        """Answer the order: nothing is said of it after that."""
        with self._writing:
            self._is_busy = False
            self._connection.send(message)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        before = (0, OUTSIDE)
        with suppress(OSError):  # the crew is gone
            while not self._over.wait(LOOK_EVERY_S):
                with self._writing:
                    now = (self._orders, self._entered)
                    if self._is_busy and now == before:
                        self._connection.send(Waits(self._entered))
                    before = now
