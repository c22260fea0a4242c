"""A sweep on the fake backend in a process of its own, for tests that kill it, interrupt it or lock it out.

Processes are forked from a server that has loaded everything, so that twenty of them take seconds.
"""

import json
import multiprocessing
import os
import sys
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from suite.errors import RoofbenchError
from suite.events import CaseFinished, Event, PhaseStarted, SweepStarted
from suite.hardware.catalogue import all_specs
from suite.jobs.gemm import GemmSettings
from suite.plan import plan
from suite.planned import DeviceSlot
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.patience import PATIENCE_S
from tests.processes.bench import TARGET, quick, slots

REGIME = "cold/sustained/device"

all_specs()  # read once, in the server


def planned_sweep(spec: dict[str, Any]) -> Sweep:
    """A gemm sweep over ``shapes`` on every device of the fake backend; the other keys change settings."""
    options = spec.get("options", {})
    target = spec.get("target", TARGET)
    places: tuple[DeviceSlot, ...] = tuple(slots(options, target))
    measure = quick(spec.get("interleave", 1), **spec.get("deadlines", {}))
    measure.regimes = [REGIME]
    config = RunConfig(
        jobs={"gemm": GemmSettings(shapes=spec["shapes"], formats=["bf16"])},
        backends={"fake": BackendSettings("fake", target, options)},
        measure=measure,
        oversize="record",
        **spec.get("run", {}),
    )
    return Sweep(config, places, plan(config, places), resume=spec.get("resume"))


class Program:
    """One sweep under way.  It prints a line an event, and ends with 0, 1 (an error, told) or 130 (interrupted)."""

    def __init__(self, store: Path, **spec: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.processes.driver"])
        self._printed = store.with_name(f"{store.name}.{time.monotonic_ns()}.out")
        self._printed.touch()
        self._seen = 0
        arguments = (str(store), json.dumps(spec), str(self._printed))
        self.process: ForkServerProcess = context.Process(target=_program, args=arguments)
        self.process.start()
        assert self.process.pid is not None
        self.pid = self.process.pid

    def wait_for(self, words: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait for a line that begins so, after those that were waited for before."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            lines = self.printed.splitlines(keepends=True)
            for number in range(self._seen, len(lines)):
                if lines[number].startswith(words) and lines[number].endswith("\n"):
                    self._seen = number + 1
                    return
            time.sleep(0.002)
        raise AssertionError(f"'{words}' never came after line {self._seen} of:\n{self.printed}")

    @property
    def printed(self) -> str:
        return self._printed.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def end(self, timeout_s: float = PATIENCE_S) -> int:
        """Wait for the end and return the status."""
        self.process.join(timeout_s)
        assert self.process.exitcode is not None, f"it did not end:\n{self.printed}"
        return self.process.exitcode


def _program(store: str, spec: str, printed: str) -> None:
    descriptor = os.open(printed, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.exit(_run(Path(store), json.loads(spec)))


def _run(path: Path, spec: dict[str, Any]) -> int:
    try:
        with Store.open(str(path)) as store:
            end = sweep(planned_sweep(spec), store, lambda event: print(_told(event), flush=True))
    except RoofbenchError as error:
        print(f"{type(error).__name__}: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    return 130 if end.by_signal else 0


def _told(event: Event) -> str:
    match event:
        case SweepStarted():
            return f"started {event.run} {event.total} {event.already_done}"
        case PhaseStarted():
            return f"phase {event.phase} {dict(event.case.workload.params).get('m')}"
        case CaseFinished():
            return f"finished {event.row.outcome} {event.done}/{event.total}"
        case _:
            return f"{type(event).__name__} {event}"


def reader(store: Path) -> Reader:
    return Reader.open(str(store))
