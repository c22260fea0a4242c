"""The CPU backend with strange ranks."""

import json
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from backends.cpu import CpuBackend
from suite.outcome import Evidence
from tests.backends.collective.helpers import STRANGE_RANK


class PlantedRanks(CpuBackend):
    """The option ``plant`` lists faults of ``strange_rank``."""

    evidence = Evidence.SIMULATED

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__({name: value for name, value in options.items() if name != "plant"})
        os.environ["ROOFBENCH_PLANTED"] = json.dumps(options["plant"])

    def select(self, index: int) -> Any:
        from backends.torch.collective.crew import Crew
        from backends.torch.collective.port import CREWS

        CREWS.start = partial(Crew, module=STRANGE_RANK)
        return super().select(index)
