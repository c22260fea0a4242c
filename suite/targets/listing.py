"""What can be compiled here, asked of a child: the rooms of kernels are none that this process may load."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

from suite.errors import RoofbenchError
from suite.targets.names import XLA, Program, Target
from suite.targets.pool import MODULE, said_last

TIME_LIMIT_S = 120.0
CPU = "cpu"


class Listing(NamedTuple):
    """``versions`` of the tools and ``missing`` reasons, empty where nothing is missing, both by kind; ``host`` is the CPU."""

    programs: tuple[Program, ...]
    versions: Mapping[str, Mapping[str, str]]
    missing: Mapping[str, str]
    host: str

    def versions_for(self, target: Target) -> dict[str, str]:
        """What a cell depends on beside its sources; of XLA on the CPU also which CPU this is."""
        own = dict(self.versions[target.kind])
        return own | {CPU: self.host} if target.name == CPU and target.kind == XLA else own

    def missing_for(self, target: Target) -> str:
        """Why nothing can be compiled for a target; empty where it can."""
        return "; ".join(why for kind in target.needs if (why := self.missing[kind]))


def listing() -> Listing:
    """Ask a child; ``RoofbenchError`` where it does not answer."""
    command = [sys.executable, "-m", MODULE, "list", "--parent", str(os.getpid())]
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            stdin=subprocess.DEVNULL,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise RoofbenchError(f"which programs there are was not known within {TIME_LIMIT_S:g} s; try again") from error
    if done.returncode:
        why = said_last(done.stderr) or f"status {done.returncode}"
        raise RoofbenchError(f"which programs there are cannot be told: {why}; install roofbench anew")
    told = json.loads(done.stdout)
    programs = tuple(Program(**each) for each in told["programs"])
    return Listing(programs, told["versions"], told["missing"], told["host"])
