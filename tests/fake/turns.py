"""Turns for a slope on a clock of their own: no host is quick or slow enough to change what a test reads."""

from typing import Any

import pytest


class ScriptedTurns:
    """Turns of a known length after a fixed cost, on a clock of their own; one run can be disturbed."""

    method = "scripted"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, turn_ns: int = 1_000, noise_ns: int = 0, rotations: int = 1) -> None:
        self.rotations = rotations
        self.now_ns = 0
        self.turn_ns = turn_ns
        self.noise_ns = noise_ns
        self.disturbed: int | None = None
        self.ran: list[int] = []
        monkeypatch.setattr("backends.jax.slope.time.perf_counter_ns", lambda: self.now_ns)

    def ready(self, turns: int) -> None:
        """Nothing to compile."""

    def run(self, turns: int) -> None:
        self.ran.append(turns)
        self.now_ns += 50_000 + self.turn_ns * turns + self.noise_ns * (len(self.ran) % 2)
        if turns == self.disturbed:
            self.disturbed = None
            self.now_ns += 10_000_000

    def details(self) -> dict[str, Any]:
        return {}
