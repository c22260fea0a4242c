"""The process of one rank other than 0: it keeps a child that is the rank, for as long as rank 0 measures."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from suite.errors import RoofbenchError
from suite.killing import end
from suite.ranks.cores import usable_cores
from suite.ranks.hub import HELLO_S, NAME, meeting_ports
from suite.ranks.launched import Launched
from suite.ranks.lines import Line, Lost, Said

RANK_MODULE = "backends.torch.collective.rank"
PAUSE_S = 0.2
KEY_VARIABLE = "ROOFBENCH_KEY"  # by which a crew knows its ranks; other users can read a command line, and not this
# A crew may set nothing else of a rank's environment.
SETTABLE = ("NCCL_", "RCCL_", "GLOO_")
_NUMBERS = ("rank", "ranks", "port", "meet", "threads")


class HubNotFound(RoofbenchError):
    """Rank 0 is not there."""


def find_hub(launched: Launched, host: str, limit_s: float) -> Line:
    """Connect to rank 0, which may still be starting.  Raises ``HubNotFound`` after the limit."""
    hello = {
        "job": launched.job,
        "world": launched.world,
        "rank": launched.rank,
        "local_rank": launched.local_rank,
        "host": host,
        "cores": sorted(usable_cores()),
    }
    until, told = time.monotonic() + limit_s, "nobody listens"
    while time.monotonic() < until:
        for port in meeting_ports(launched.port):
            try:
                line = Line.to(launched.address, port, HELLO_S)
            except OSError as error:
                told = str(error)
                continue
            with suppress(Lost):
                line.limit(HELLO_S)
                line.send(hello)
                if line.receive() == {"hub": NAME, "job": launched.job}:
                    line.limit(None)
                    return line
            line.close()
        time.sleep(PAUSE_S)
    raise HubNotFound(
        f"rank {launched.rank} of {launched.world} did not find rank 0 at {launched.address} above port {launched.port} within "
        f"{limit_s:g} s (measure.deadlines.start_s): {told}; all ranks must be given the same command"
    )


class Keeper:
    """Starts, kills and buries one rank after the other, as it is told.  ``record`` is the file that the rank writes."""

    def __init__(self, line: Line, record: str, module: str = RANK_MODULE) -> None:
        self._line, self._record, self._module = line, record, module
        self._child: subprocess.Popen[bytes] | None = None
        self._birth = -1
        self.births = 0

    def serve(self) -> bool:
        """Until rank 0 says that all is done; false where it was lost instead."""
        try:
            while True:
                said = self._line.receive()
                if "leave" in said:
                    return True
                if "start" in said:
                    self._start(said)
                elif said.get("kill") == self._birth:
                    self.kill()
        except Lost:
            return False
        finally:
            self.kill()
            self._line.close()

    def kill(self) -> None:
        """Kill the rank, if there is one."""
        if self._child is not None:
            end(self._child)

    def _start(self, said: Said) -> None:
        self.kill()
        self._birth = said["start"]
        self.births += 1
        # The child dies with the thread that starts it: this one, which lasts as long as the process.
        self._child = subprocess.Popen(
            self._command(said), stdin=subprocess.DEVNULL, env=environment(said, self._line.own_address)
        )
        threading.Thread(target=self._bury, args=(self._child, self._birth), daemon=True).start()

    def _command(self, said: Said) -> list[str]:
        numbers = {name: int(said[name]) for name in _NUMBERS if name in said}
        words = {**numbers, "host": str(said["host"]), "device": str(said["device"])}
        words |= {"parent": os.getpid(), "record": self._record}
        command = [sys.executable, "-m", self._module]
        return command + [f"--{name.replace('_', '-')}={value}" for name, value in words.items()]

    def _bury(self, child: "subprocess.Popen[bytes]", birth: int) -> None:
        status = child.wait()
        with suppress(Lost):
            self._line.send({"ended": birth, "status": status})


def environment(said: Mapping[str, Any], address: str) -> dict[str, str]:
    """A rank's environment: this process's, with what rank 0 sets of the libraries, on the interface that reaches rank 0."""
    asked = {name: str(value) for name, value in dict(said.get("environment", {})).items() if name.startswith(SETTABLE)}
    own = {"PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", KEY_VARIABLE: str(said["key"])}
    return {**os.environ, **own, **interface_environment(address), **asked}


def interface_environment(address: str) -> dict[str, str]:
    """What keeps gloo to the interface of this address, where the user has not said otherwise."""
    import psutil

    if "GLOO_SOCKET_IFNAME" in os.environ:
        return {}
    names = [name for name, known in psutil.net_if_addrs().items() if any(each.address == address for each in known)]
    return {"GLOO_SOCKET_IFNAME": names[0]} if names else {}
