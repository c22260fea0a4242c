"""The fake backend with a shape that is faster than all others, formats that it lacks, and looks that take real time."""

import time
from typing import Any

from suite.case import Case, shape_label
from tests.fake.backend import FakeBackend, FakeKernel

SLOWER = 0.9  # of the format's rate: what every other shape reaches


class PlantedBackend(FakeBackend):
    """``options``: ``best`` (``MxNxK``), ``lacks`` (formats), ``look_s`` (real seconds of preparing a look); the fake's."""

    def supports(self, case: Case) -> str | None:
        if case.workload.format in self._options.get("lacks", []):
            return f"planted: no {case.workload.format}"
        return super().supports(case)

    def prepare(self, case: Case, sets: int, seed: int) -> FakeKernel:
        if case.regime.cache == "warm":
            time.sleep(self._options.get("look_s", 0.0))
        return super().prepare(case, sets, seed)

    def _launch_s(self, case: Case) -> Any:
        launch_s = super()._launch_s(case)
        is_best = shape_label(case.workload).split(" ")[0] == self._options.get("best")
        return launch_s if case.workload.job != "gemm" or is_best else launch_s / SLOWER
