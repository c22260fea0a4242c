"""How a process ended, in words: whatever signal it was, and where nobody knows."""

import signal

import pytest

from suite.ranks.ending import ended


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (-signal.SIGKILL, "died with SIGKILL"),
        (-(signal.SIGRTMIN + 2), f"died with signal {signal.SIGRTMIN + 2}"),  # it has no name
        (1, "left with status 1"),
        (None, "ended"),
    ],
)
def test_every_status_has_words(status: int | None, words: str) -> None:
    assert ended(status) == words
