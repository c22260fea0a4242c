"""How long a test waits for what comes unless something hangs: no test passes sooner or later for it."""

import time
from collections.abc import Callable

# A shared host takes ten times as long as a quick one, and what a test waits for waits for other tests in its turn.
PATIENCE_S = 120.0


def until(happened: Callable[[], object]) -> None:
    """Wait for another thread or process to do something."""
    gives_up_s = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < gives_up_s, "nothing happened"
        time.sleep(0.001)
