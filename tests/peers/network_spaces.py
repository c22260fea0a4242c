"""A network of this machine alone: a namespace a rank, joined by a bridge, each link held to a rate by a token bucket."""

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which
from types import TracebackType
from typing import Self

import psutil

PREFIX = "roofbench-net"
NETWORK = "10.213.77"
# A bucket that is smaller loses tokens while a busy machine is late to look at it: with 64 KiB 300 Mbit/s were seen to be 253.
BURST_S, LEAST_BURST_BYTES = 0.01, 64 * 1024  # the least is the largest packet that the kernel hands over whole
LATENCY = "200ms"  # what may wait in a bucket's queue: TCP must fill the link and lose nothing
# Every kernel has it, every namespace may have it, and it sends whenever it may: bbr, which a host may have by default, lets a
# link lie idle for a fifth of a second now and then to see how short its way is, and a ring waits for each of its links.
CONTROL, CONTROL_FILE = "reno", "/proc/sys/net/ipv4/tcp_congestion_control"
_NAME = re.compile(rf"{PREFIX}-(?P<pid>\d+)-\w+")


class NetworkFailed(Exception):
    """A command that makes the network did not work."""


def why_absent() -> str:
    """Why there can be no such network here; empty where there can."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    missing = [name for name in ("ip", "tc") if which(name) is None]
    return f"{' and '.join(missing)} not found; install iproute2" if missing else ""


class Network:
    """``with`` makes it and takes it away again, with every process in it; what a killed one left behind too."""

    def __init__(self, ranks: int, rate_bit_s: int) -> None:
        self.ranks, self.rate_bit_s = ranks, rate_bit_s
        self._bridge = f"{PREFIX}-{os.getpid()}-bridge"

    @property
    def burst_bytes(self) -> int:
        """What a link that was idle lets through at once."""
        return max(LEAST_BURST_BYTES, round(self.rate_bit_s / 8 * BURST_S))

    def space(self, rank: int) -> str:
        """The namespace of a rank."""
        return f"{PREFIX}-{os.getpid()}-{rank}"

    def address(self, rank: int) -> str:
        """Of its only link."""
        return f"{NETWORK}.{rank + 1}"

    def inside(self, rank: int, command: Sequence[str]) -> list[str]:
        """The command that runs ``command`` in a rank's namespace."""
        return ["ip", "netns", "exec", self.space(rank), *command]

    def __enter__(self) -> Self:
        remove_stale()
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._remove()

    def _make(self) -> None:
        _run("ip", "netns", "add", self._bridge)
        _run("ip", "-n", self._bridge, "link", "add", "bridge0", "type", "bridge")
        _run("ip", "-n", self._bridge, "link", "set", "bridge0", "up")
        for rank in range(self.ranks):
            self._join(rank, f"port{rank}")

    def _join(self, rank: int, port: str) -> None:
        """Both ends are held to the rate: what a rank sends by its own, what it receives by the bridge's."""
        own = self.space(rank)
        _run("ip", "netns", "add", own)
        _run("ip", "netns", "exec", own, "sh", "-c", f"echo {CONTROL} > {CONTROL_FILE}")
        _run("ip", "-n", own, "link", "set", "lo", "up")
        _run("ip", "-n", own, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", self._bridge)
        _run("ip", "-n", own, "addr", "add", f"{self.address(rank)}/24", "dev", "eth0")
        _run("ip", "-n", self._bridge, "link", "set", port, "master", "bridge0", "up")
        _run("ip", "-n", own, "link", "set", "eth0", "up")
        for space, link in ((own, "eth0"), (self._bridge, port)):
            bucket = ("rate", f"{self.rate_bit_s}bit", "burst", str(self.burst_bytes), "latency", LATENCY)
            _run("tc", "-n", space, "qdisc", "add", "dev", link, "root", "tbf", *bucket)

    def _remove(self) -> None:
        for name in (*map(self.space, range(self.ranks)), self._bridge):
            remove(name)


def remove(name: str) -> None:
    """A namespace with its processes and links; harmless where there is none."""
    found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
    for pid in found.stdout.split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def remove_stale() -> None:
    """Namespaces of a process that was killed before it could remove them."""
    folder = Path("/run/netns")
    for path in folder.iterdir() if folder.is_dir() else ():
        found = _NAME.fullmatch(path.name)
        if found and not psutil.pid_exists(int(found["pid"])):
            remove(path.name)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkFailed(f"`{' '.join(command)}` ended with status {done.returncode}: {done.stderr.strip()}")
