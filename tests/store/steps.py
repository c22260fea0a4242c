"""Steps of SQLite's virtual machine, counted: on a busy machine a question takes as many as on an idle one."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from suite.store import sqlite

STEPS_A_CALL = 100
# With room for other versions of it: about 100 and 200 were counted with 3.40.
ROW_STEPS = 250  # putting one row of an answer together
QUESTION_STEPS = 10_000


def counted_steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many were taken since the last call, by every connection opened from now on."""
    calls, connect = [0], sqlite.connect

    def count() -> int:
        calls[0] += 1
        return 0

    def counted(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_progress_handler(count, STEPS_A_CALL)
        return connection

    def since() -> int:
        taken, calls[0] = calls[0], 0
        return taken * STEPS_A_CALL

    monkeypatch.setattr(sqlite, "connect", counted)
    return since
