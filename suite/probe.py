"""Which devices a backend offers, asked in a child process so that no framework is loaded here.

Answers are kept in the user's cache directory under everything that can change them: driver, boot, device nodes,
visibility variables, Python and package versions.  A failure may pass (a device that another process holds), so that a kept
one only serves who would rather know at once.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

from suite.backend import DeviceInfo
from suite.errors import UsageError
from suite.killing import KILLED_S, has_ended
from suite.launcher.reaper import MARK, kill_marked
from suite.loading import loaded
from suite.plugins.place import sources
from suite.worker.lifeline import bind_to_parent, leave_no_core

TIME_LIMIT_S = 90.0  # the first import of a framework from a cold network disk takes most of a minute
FAILURE_SERVES_S = 600.0
LEAVE_S = 1.0
MAX_ANSWER_BYTES = 2**20
CACHE_VERSION = 1

_IDENTITY_FILES = (
    "proc/sys/kernel/random/boot_id",
    "proc/driver/nvidia/version",
    "sys/module/amdgpu/version",
    "sys/module/amdgpu/srcversion",
    "proc/cpuinfo",
)
# Device nodes come and go when a device is reset, a partition is made, or a container is given another.
_IDENTITY_NODES = (
    "dev/nvidia[0-9]*",
    "proc/driver/nvidia/capabilities/gpu*/mig/gi*",
    "dev/dri/render*",
    "dev/kfd",
    "dev/accel*",
)
# Variables by which a user chooses devices, or what drives them; each vendor keeps adding some.
_CHOOSING = ("CUDA_", "NVIDIA_", "HIP_", "HSA_", "ROCR_", "GPU_", "JAX_", "XLA_", "TPU_", "LIBTPU_")
_CHOOSING_TOO = ("LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONPATH")
# A checkout's version does not change with every edit.
_BACKENDS = Path(__file__).parent.parent / "backends"
_PACKAGES = ("roofbench", "torch", "jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "libtpu", "nvidia-ml-py")


class ProbeResult(NamedTuple):
    """The devices a backend offers, in its own order; or one line that says why it could not be asked."""

    devices: tuple[DeviceInfo, ...]
    error: str = ""


def probe(
    target: str,
    options: Mapping[str, Any] | None = None,
    *,
    time_limit_s: float = TIME_LIMIT_S,
    cache: bool = True,
    at_once: bool = False,
    root: Path = Path("/"),
) -> ProbeResult:
    """Return the devices of the backend ``target`` (``module:Class``), from the cache where nothing has changed.

    ``at_once`` takes a failure of the last minutes from there too: whoever plans one thing after another need not wait each
    time for a backend that cannot be asked.
    """
    kept = _kept(target, options or {}, root)
    known = _recall(kept) if cache else None
    if known is not None and (not known.error or (at_once and _age_s(kept) < FAILURE_SERVES_S)):
        return known
    result = _ask(target, options or {}, time_limit_s)
    if cache:
        _keep(kept, result)
    return result


def forget(target: str, options: Mapping[str, Any] | None = None, *, root: Path = Path("/")) -> None:
    """Have the backend asked anew next time: a device was not what the kept answer says it is."""
    with contextlib.suppress(OSError):
        _kept(target, options or {}, root).unlink()


def _ask(target: str, options: Mapping[str, Any], time_limit_s: float) -> ProbeResult:
    """Run the child and read its one answer; it is killed with its children when it takes too long.

    A process that waits within the kernel dies of nothing: one that would not die is not waited for, and the answer says so.
    """
    ours, theirs = socket.socketpair()
    mark = f"probe-{os.getpid()}-{secrets.token_hex(4)}"
    with ours, tempfile.TemporaryFile() as printed:
        with theirs:
            child = subprocess.Popen(
                _command(theirs.fileno(), target, options),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env={**os.environ, "PYTHONSAFEPATH": "1", MARK: mark},
            )
        ours.settimeout(time_limit_s)
        leave_s = 0.0
        try:
            answer = _read_all(ours)
            leave_s = LEAVE_S
        except TimeoutError:
            answer = None
        finally:
            stays = _end(child, mark, leave_s)
        if answer is None:
            return ProbeResult((), f"backend {target} did not say within {time_limit_s:g} s which devices there are{stays}")
        printed.seek(0)
        return _understood(answer, target, child.returncode, printed.read(), stays)


def _command(fd: int, target: str, options: Mapping[str, Any]) -> list[str]:
    command = [sys.executable, "-m", "suite.probe", "--fd", str(fd), "--parent", str(os.getpid())]
    return [*command, "--target", target, "--options", json.dumps(dict(options))]


def _read_all(sock: socket.socket) -> bytes:
    answer = bytearray()
    while (data := sock.recv(2**16)) and len(answer) < MAX_ANSWER_BYTES:
        answer += data
    return bytes(answer)


def _end(child: subprocess.Popen[bytes], mark: str, leave_s: float) -> str:
    """Give a child that has answered ``leave_s`` to leave, so that its exit status tells; then kill it and what it started.

    Returns what to say of a child that cannot be killed; empty where it is gone.
    """
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(leave_s)
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        has_ended(child, KILLED_S)
    kill_marked(mark)
    if child.poll() is None:
        return f"; its process {child.pid} was killed and did not end within {KILLED_S:g} s, as under a driver that is wedged"
    return ""


def _understood(answer: bytes, target: str, status: int | None, printed: bytes, stays: str) -> ProbeResult:
    """The child's answer.  Devices of a backend whose process cannot be killed are not to be measured: a driver holds it."""
    try:
        found = _from_json(json.loads(answer))
    except (ValueError, KeyError, TypeError):
        lines = printed.decode(errors="replace").strip().splitlines()
        said = f"; it printed last: {lines[-1][:200]}" if lines else ""
        ended = "said nothing" if status is None else f"ended with status {status}"
        return ProbeResult((), f"backend {target} {ended} before it named its devices{said}{stays}")
    return ProbeResult((), found.error or f"backend {target} named its devices{stays}") if stays else found


def _identity(target: str, options: Mapping[str, Any], root: Path) -> str:
    """A hash of everything that the answer depends on."""
    content = {
        "version": CACHE_VERSION,
        "target": target,
        "options": dict(options),
        "files": {name: _text(root / name) for name in _IDENTITY_FILES},
        "nodes": sorted(str(path) for pattern in _IDENTITY_NODES for path in root.glob(pattern)),
        "chosen": {name: value for name, value in os.environ.items() if name.startswith(_CHOOSING) or name in _CHOOSING_TOO},
        "python": [sys.version, sys.prefix],
        "packages": {name: _version(name) for name in _PACKAGES},
        "sources": sorted((str(path), path.stat().st_mtime_ns) for path in _sources(target)),
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _sources(target: str) -> Iterator[Path]:
    """Those of our backends, and of a backend of another package, whose version may stay the same while it is written."""
    yield from _BACKENDS.rglob("*.py")
    module = target.partition(":")[0]
    if not module.startswith(f"{_BACKENDS.name}."):
        yield from (path for path in sources(module) if path.is_file())  # what is built into Python lies nowhere


def _text(path: Path) -> str | None:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    # The clock that /proc/cpuinfo shows changes from one reading to the next.
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("cpu MHz"))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _kept(target: str, options: Mapping[str, Any], root: Path) -> Path:
    return _cache_directory() / f"{_identity(target, options, root)}.json"


def _cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  # no raise without a home
    return Path(base) / "roofbench" / "probe"


def _recall(path: Path) -> ProbeResult | None:
    """The kept answer; ``None`` where there is none, or none that can be read."""
    try:
        return _from_json(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _age_s(path: Path) -> float:
    try:
        return abs(time.time() - path.stat().st_mtime)
    except OSError:  # another process has just forgotten it
        return math.inf


def _keep(path: Path, result: ProbeResult) -> None:
    """Write beside and rename, so that no reader sees half of it.  A cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(json.dumps(_to_json(result)))
        Path(file.name).replace(path)


def _to_json(result: ProbeResult) -> dict[str, Any]:
    return {"devices": [device.to_json() for device in result.devices], "error": result.error}


def _from_json(data: Mapping[str, Any]) -> ProbeResult:
    return ProbeResult(tuple(DeviceInfo.from_json(device) for device in data["devices"]), data["error"])


def _refuse_no_class(target: str) -> None:
    """``UsageError`` for a target that is not in its module: no driver or device would make it one.

    What importing the module raises escapes as it is.
    """
    module, _, name = target.partition(":")
    import_module(module)
    try:
        there = callable(loaded(target))
    except AttributeError:
        there = False
    if not there:
        raise UsageError(f"module {module} has no class {name}; a target is MODULE:CLASS, such as backends.cpu:CpuBackend")


def main() -> int:
    """The child: load the backend, write its devices to the inherited socket, leave."""
    parser = argparse.ArgumentParser(prog="python -m suite.probe")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--options", type=json.loads, default={})
    given = parser.parse_args()
    bind_to_parent(given.parent)
    leave_no_core()
    os.set_inheritable(given.fd, False)

    # Loaded here: this module is also imported by the command line, which must stay quick.
    from suite.worker.serve import caught, describe, made

    found: list[DeviceInfo] = []

    def find() -> None:
        _refuse_no_class(given.target)
        found.extend(made(given.target, given.options).devices())

    failure = caught(find, describe)
    result = ProbeResult((), f"backend {given.target}: {failure.reason}") if failure else ProbeResult(tuple(found))
    with socket.socket(fileno=given.fd) as sock:
        sock.sendall(json.dumps(_to_json(result)).encode())
        sock.shutdown(socket.SHUT_WR)  # a process forked by the framework may hold a copy of the socket open
    return 0


if __name__ == "__main__":
    sys.exit(main())
