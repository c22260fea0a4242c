"""Backends that write to the socket behind the worker's back, fork, measure what cannot be, or do not leave."""

import atexit
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suite.backend import DeviceInfo
from suite.case import Case
from tests.fake.backend import FakeBackend, FakeKernel, FakeSampler


class Garbling(FakeBackend):
    """Sends a length that no message has."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        os.write(int(sys.argv[sys.argv.index("--fd") + 1]), b"\xff" * 8)


class Leaving(FakeBackend):
    """Writes the process id to ``leaving`` when its worker is told to leave, and takes longer than it is given."""

    def select(self, index: int) -> DeviceInfo:
        atexit.register(self._leave)
        return super().select(index)

    def _leave(self) -> None:
        Path(self._options["leaving"]).write_text(str(os.getpid()))
        time.sleep(600.0)


class Speechless(Exception):
    """Cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class OddKernel(FakeKernel):
    """Carries the oddity of its case to the sampler."""

    mode = ""

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "mode": self.mode}


class OddSampler(FakeSampler):
    """Forks itself, or measures what no store can hold."""

    def sample(self, count: int) -> Sequence[int]:
        kernel = self._kernel
        mode = kernel.mode if isinstance(kernel, OddKernel) else ""
        if isinstance(kernel, OddKernel) and mode == "fork_once":
            kernel.mode = ""
            os.fork()
        lasted = {"negative": -5, "huge": 2**62}.get(mode)
        return super().sample(count) if lasted is None else [lasted] * count


class Odd(FakeBackend):
    """``modes`` says by the case's m what is odd about it."""

    def prepare(self, case: Case, sets: int, seed: int) -> FakeKernel:
        mode = self._options["modes"].get(str(case.workload.param("m")), "")
        if mode == "speechless":
            raise Speechless
        if mode == "raw":
            raise RuntimeError("\x1b[31m\u202ered " + "y" * 5_000_000)
        self._alive += 1
        kernel = OddKernel(self, case, sets, seed)
        kernel.mode = mode
        if mode == "no_execution":
            setattr(kernel, "execution", None)  # noqa: B010
        return kernel

    def sampler(self, kernel: FakeKernel, case: Case, sample_s: float) -> FakeSampler:
        return OddSampler(kernel, self._clock, self._launch_s(case), 0.001)
