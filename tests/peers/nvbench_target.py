"""The program in which nvbench measures: each case's own launch, on nvbench's stream, when a line on standard input says so.

It prints ``ready N`` before case N and ``done N`` after it.  Once standard input ends, the cases that are left are skipped
and nvbench still writes what it has.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TextIO

from suite.backend import Backend, Kernel
from suite.case import Case
from suite.plan import data_seed
from tests.peers.device import selected
from tests.peers.nvbench import DONE, READY

SETTLE_LAUNCHES = 16  # queued at a time: enough that the device never waits for the host, few enough to end on time


class Turns:
    """Measures one case for each state that nvbench offers, after ``settle_s`` of its launches."""

    def __init__(self, backend: Backend, cases: Sequence[Case], settle_s: float) -> None:
        self._backend, self._cases, self._settle_s = backend, cases, settle_s

    def __call__(self, state: Any, told: TextIO, said: TextIO) -> None:
        index = state.get_int64("case")
        print(f"{READY} {index}", file=said, flush=True)
        if not told.readline():
            state.skip("no longer asked for")
            return
        try:
            self._measure(state, self._cases[index])
        finally:
            print(f"{DONE} {index}", file=said, flush=True)

    def _measure(self, state: Any, case: Case) -> None:
        reason = self._backend.supports(case)
        if reason is not None:
            state.skip(reason)
            return
        kernel = self._backend.prepare(case, 1, data_seed(0, case.workload.key))
        try:
            with stream_of(state, self._backend):
                self._backend.synchronize()  # the case was filled on another stream
                self._settle(kernel)
                state.exec(lambda launch: kernel.enqueue(0))
        finally:
            kernel.close()

    def _settle(self, kernel: Kernel) -> None:
        kernel.enqueue(0)  # loads the kernel: behind nvbench's blocking kernel that would never end
        self._backend.synchronize()
        ends = time.monotonic() + self._settle_s
        while time.monotonic() < ends:
            for _ in range(SETTLE_LAUNCHES):
                kernel.enqueue(0)
            self._backend.synchronize()


def stream_of(state: Any, backend: Backend) -> Any:
    """A context in which the backend's launches go to nvbench's stream; a CPU has none."""
    if backend.name != "cuda":
        return nullcontext()
    import torch

    return torch.cuda.stream(torch.cuda.ExternalStream(state.get_stream().addressof()))


def main(argv: Sequence[str] | None = None) -> None:
    import cuda.bench as bench  # type: ignore[import-not-found]

    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", required=True)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--settle", type=float, required=True)
    parser.add_argument("options", nargs="*", help="nvbench's own, after --")
    given = parser.parse_args(argv)
    cases = [Case.from_json(each) for each in json.loads(given.cases.read_text())]
    turns = Turns(selected(given.backend), cases, given.settle)

    def gemm(state: Any) -> None:
        turns(state, sys.stdin, sys.stdout)

    bench.register(gemm).add_int64_axis("case", list(range(len(cases))))
    bench.run_all_benchmarks(["nvbench", "--devices", "0", "--json", given.json, "--quiet", *given.options])


if __name__ == "__main__":
    main()
