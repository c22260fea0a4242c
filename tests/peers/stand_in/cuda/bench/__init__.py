"""Stands in for the package cuda-bench in tests: the same calls, the same file, no device.

``NVBENCH_STAND_IN`` is JSON: ``mean_s`` and ``wall_s`` of every state; ``fail`` a list of states that raise; ``exit`` a status
to end with before anything is written.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PLANTED: dict[str, Any] = json.loads(os.environ.get("NVBENCH_STAND_IN", "{}"))
_registered: list["Benchmark"] = []


class Benchmark:
    def __init__(self, function: Callable[["State"], None]) -> None:
        self.function = function
        self.axis: tuple[str, list[int]] = ("", [])

    def add_int64_axis(self, name: str, values: Sequence[int]) -> "Benchmark":
        self.axis = (name, list(values))
        return self


class State:
    def __init__(self, name: str, value: int) -> None:
        self.name, self.value = name, value
        self.skipped = ""
        self.launches = 0

    def get_int64(self, name: str) -> int:
        assert name == self.name
        return self.value

    def skip(self, reason: str) -> None:
        self.skipped = reason

    def exec(self, launcher: Callable[[Any], None]) -> None:
        if self.value in PLANTED.get("fail", ()):
            raise RuntimeError("planted")
        for _ in range(3):
            launcher(None)
            self.launches += 1

    def to_json(self) -> dict[str, Any]:
        axis = [{"name": self.name, "type": "int64", "value": str(self.value)}]
        if self.skipped:
            return {"axis_values": axis, "summaries": None, "is_skipped": True, "skip_reason": self.skipped}
        mean_s, wall_s = PLANTED.get("mean_s", 1e-3), PLANTED.get("wall_s", 0.5)
        figures = {"cold/time/gpu/mean": mean_s, "cold/time/gpu/median": mean_s, "cold/walltime": wall_s}
        figures |= {"batch/time/gpu/mean": mean_s, "batch/walltime": wall_s}
        tags = {f"nv/{tag}": str(value) for tag, value in figures.items()}
        counts = {"nv/cold/sample_size": str(self.launches), "nv/batch/sample_size": str(self.launches)}
        summaries = [{"tag": tag, "data": [{"name": "value", "value": value}]} for tag, value in (tags | counts).items()]
        return {"axis_values": axis, "summaries": summaries, "is_skipped": False}


def register(function: Callable[[State], None]) -> Benchmark:
    _registered.append(Benchmark(function))
    return _registered[-1]


def run_all_benchmarks(argv: Sequence[str]) -> None:
    (benchmark,) = _registered
    name, values = benchmark.axis
    states = [State(name, value) for value in values]
    for state in states:
        try:
            benchmark.function(state)
        except RuntimeError as error:
            state.skip(f"Unexpected error: {type(error).__name__}: {error}")
    if PLANTED.get("exit"):
        sys.exit(PLANTED["exit"])
    content = {
        "meta": {"argv": list(argv), "version": {"json": {"major": 1}}},
        "benchmarks": [{"name": "gemm", "states": [state.to_json() for state in states]}],
    }
    Path(argv[argv.index("--json") + 1]).write_text(json.dumps(content))
