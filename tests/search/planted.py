"""The fake backend with a shape that is faster than all others, formats that it lacks, and a gate that holds its work up."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suite.case import Case, shape_label
from tests.fake.backend import Clock, FakeBackend, FakeKernel, FakeSampler

SLOWER = 0.9  # of the format's rate: what every other shape reaches


class PlantedBackend(FakeBackend):
    """``options``: ``best`` (``MxNxK``), ``lacks`` (formats), ``look_s`` (real seconds of preparing a look), and the fake's.

    With ``gate`` only so many ``looks`` and ``finalists`` are let through before that file is there, whatever the host's pace.
    """

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._looks, self._finalists = _Gate(options, "looks"), _Gate(options, "finalists")

    def supports(self, case: Case) -> str | None:
        if case.workload.format in self._options.get("lacks", []):
            return f"planted: no {case.workload.format}"
        return super().supports(case)

    def prepare(self, case: Case, sets: int, seed: int) -> FakeKernel:
        if _is_look(case):
            time.sleep(self._options.get("look_s", 0.0))
        elif case.workload.job == "gemm":
            self._finalists.go_through()
        return super().prepare(case, sets, seed)

    def sampler(self, kernel: FakeKernel, case: Case, sample_s: float) -> FakeSampler:
        if not _is_look(case) or case.regime.dispatch == "call":  # a launch that tells how long one is
            return super().sampler(kernel, case, sample_s)
        return _Looked(kernel, self._clock, self._launch_s(case), self._options.get("noise", 0.001), self._looks)

    def _launch_s(self, case: Case) -> Any:
        launch_s = super()._launch_s(case)
        is_best = shape_label(case.workload).split(" ")[0] == self._options.get("best")
        return launch_s if case.workload.job != "gemm" or is_best else launch_s / SLOWER


class _Gate:
    def __init__(self, options: Any, counted: str) -> None:
        self._file = Path(options["gate"]) if counted in options else None
        self._left = options.get(counted, 0)

    def go_through(self) -> None:
        self._left -= 1
        while self._file is not None and self._left < 0 and not self._file.exists():
            time.sleep(0.01)


class _Looked(FakeSampler):
    """Passes the gate with each look."""

    def __init__(self, kernel: FakeKernel, clock: Clock, launch_s: float, noise: float, gate: _Gate) -> None:
        super().__init__(kernel, clock, launch_s, noise)
        self._gate = gate

    def sample(self, count: int) -> Sequence[int]:
        self._gate.go_through()
        return super().sample(count)


def _is_look(case: Case) -> bool:
    return case.workload.job == "gemm" and case.regime.cache == "warm"
