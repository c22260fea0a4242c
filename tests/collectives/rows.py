"""Rows of collectives that never ran, at times that a test chooses."""

from collections.abc import Callable
from typing import Any

from suite.rows import ResultRow
from tests.report.builders import result

Times = Callable[[int, int], float]


def collective(op: str, ranks: int, size: int, time_s: float, **fields: Any) -> ResultRow:
    """A verified time, known to 1 %."""
    switches = {"algo": "library", "proto": "library", "in_place": True, "transport": "host"} | fields.pop("switches", {})
    given = {
        "job": "collective", "format": "fp32", "implementation": "library", "backend": "cpu", "cache": "warm",
        "dispatch": "call", "pipe": "host", "bound": "link", "p50_s": time_s, "interval_s": (time_s * 0.99, time_s * 1.01),
    }  # fmt: skip
    params = {"op": op, "message_bytes": size, "world_size": ranks}
    return result(**{**given, "params": params, "switches": switches, **fields})


def curve(op: str, algo: str, worlds: list[int], sizes: list[int], times: Times, **fields: Any) -> list[ResultRow]:
    """One algorithm's times, by ``times(ranks, size)``."""
    implementation = "library" if algo == "library" else "own"
    return [
        collective(op, ranks, size, times(ranks, size), implementation=implementation, switches={"algo": algo}, **fields)
        for ranks in worlds
        for size in sizes
    ]
