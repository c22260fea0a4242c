"""What can be made to go wrong in a worker, by name, for one shape and in one phase.

``{"64x64x64 bf16": "segfault@measure"}`` plants one fault; a key is a shape label with or without a format.  The phase
is ``compile`` unless it is given.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from suite.case import Case, shape_label


class FakeOutOfMemory(Exception):
    """The device has no room."""


class FakeFatal(Exception):
    """The device context is lost."""


class Fault(NamedTuple):
    kind: str
    argument: str
    phase: str


NO_FAULT = Fault("", "", "")
PASSIVE = ("wrong", "wrong_after", "nan", "unwritten", "stale", "unsupported", "oom_in_company", "slower")


def fault_of(case: Case, faults: Mapping[str, str]) -> Fault:
    label = shape_label(case.workload).split(" ")[0]
    spec = faults.get(f"{label} {case.workload.format}") or faults.get(label)
    return parse(spec) if spec else NO_FAULT


def parse(spec: str) -> Fault:
    """Read ``kind[:argument][@phase]``."""
    kind, _, phase = spec.partition("@")
    name, _, argument = kind.partition(":")
    assert name in PASSIVE or name in ACTIVE, f"unknown fault {name}"
    return Fault(name, argument, phase or "compile")


def strike(fault: Fault, phase: str) -> None:
    """Do what the fault says, if it is due in this phase."""
    if fault.kind in ACTIVE and fault.phase == phase:
        ACTIVE[fault.kind](fault.argument)


def hang(_: str) -> None:
    while True:
        time.sleep(1)


def start_children(pid_file: str) -> None:
    """Start a child in the worker's group and another in a session of its own, as compile workers are."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    children = [subprocess.Popen(sleeper), subprocess.Popen(sleeper, start_new_session=True)]
    Path(pid_file).write_text(" ".join(str(child.pid) for child in children))


def hang_with_children(pid_file: str) -> None:
    start_children(pid_file)
    hang("")


def leave_children(pid_file: str) -> None:
    start_children(pid_file)
    os.abort()


def segfault(_: str) -> None:
    ctypes.string_at(0)


def die_once(flag_file: str) -> None:
    """Crash the first time, and not again."""
    if not Path(flag_file).exists():
        Path(flag_file).touch()
        os.abort()


def die_after_the_first(flag_file: str) -> None:
    """Pass the first time, and leave every time after."""
    if Path(flag_file).exists():
        os._exit(3)
    Path(flag_file).touch()


def meet(folder: str) -> None:
    """Wait for a second process to be here too."""
    (Path(folder) / str(os.getpid())).touch()
    while len(list(Path(folder).iterdir())) < 2:
        time.sleep(0.01)


def chatter(megabytes: str) -> None:
    line = "x" * 1023 + "\n"
    for _ in range(int(float(megabytes) * 1024)):
        sys.stdout.write(line)
    sys.stderr.write("last of many lines\n")


def say_and_die(words: str) -> None:
    print(words)
    os.abort()


def raise_out_of_memory(_: str) -> None:
    raise FakeOutOfMemory("no room for 1 byte")


def raise_error(words: str) -> None:
    raise RuntimeError(words or "the kernel does not like this shape")


def raise_fatal(_: str) -> None:
    raise FakeFatal("the device context is lost")


ACTIVE: dict[str, Callable[[str], None]] = {
    "abort": lambda _: os.abort(),
    "segfault": segfault,
    "exit": lambda status: os._exit(int(status or 3)),
    "sigkill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "hang": hang,
    "hang_with_children": hang_with_children,
    "leave_children": leave_children,
    "die_once": die_once,
    "die_after_the_first": die_after_the_first,
    "meet": meet,
    "chatter": chatter,
    "say_and_die": say_and_die,
    "slow": lambda seconds: time.sleep(float(seconds)),
    "oom": raise_out_of_memory,
    "error": raise_error,
    "fatal": raise_fatal,
}
