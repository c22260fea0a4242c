"""The program that Nsight Compute profiles: every case prepared as roofbench prepares it, then launched after a marker."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suite.backend import Kernel
from suite.case import Case
from suite.plan import data_seed
from tests.peers.device import selected

WARM_UP = 2  # libraries load their kernels and allocate their workspace at the first launch


def launch_all(kernels: Sequence[Kernel], calls: int, cuda: Any) -> None:
    """Between start and stop of profiling nothing runs but markers and the kernels' own launches."""
    for kernel in kernels:
        for _ in range(WARM_UP):
            kernel.enqueue(0)
    cuda.synchronize()
    cuda.profiler.start()
    for kernel in kernels:
        cuda._sleep(0)
        for _ in range(calls):
            kernel.enqueue(0)
    cuda.synchronize()
    cuda.profiler.stop()


def main(argv: Sequence[str] | None = None) -> None:
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", required=True)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--calls", type=int, required=True)
    given = parser.parse_args(argv)
    backend = selected(given.backend)
    cases = [Case.from_json(each) for each in json.loads(given.cases.read_text())]
    kernels = [backend.prepare(case, 1, data_seed(0, case.workload.key)) for case in cases]
    torch.cuda._sleep(0)  # loads the marker
    launch_all(kernels, given.calls, torch.cuda)


if __name__ == "__main__":
    main()
