"""What stands around a table of nccl-tests or rccl-tests: versions, options, devices, footers, failures."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from suite.collectives.names import Op, op_of
from suite.collectives.version import NcclVersion
from suite.importers.rows import Device

_NCCL_TESTS = re.compile(
    r"(?P<tool>[nr]ccl-tests) version (?P<version>\S+)(?: \(\w+\))? "
    r"[nr]ccl-headers=(?P<headers>\d{1,18}) [nr]ccl-library=(?P<library>\d{1,18})"
)
_RCCL_TESTS = re.compile(r"rccl-tests: Version (?P<version>\S+)")
_LIBRARY = re.compile(r"\b[NR]CCL version\s*:?\s*(?P<version>\d+\.\d+\.\d+)")
_PROGRAM = re.compile(r"Collective test starting: (?P<program>\w+)")
_CONCLUDED = re.compile(r"Collective test concluded: (?P<program>\w+)")
_COMMAND = re.compile(r"(?:^|[\s/])(?P<program>[a-z_]+_perf)\b")
_OPTIONS = re.compile(r"^\s*#?\s*nThread \d+ ")
_OPTION = re.compile(r"(?P<name>[A-Za-z]+(?: iters)?):? (?P<value>\d{1,18})(?:\((?P<kind>factor|bytes)\))?")
_DEVICE = re.compile(
    r"^\s*#?\s*Rank\s+(?P<rank>\d{1,18})(?:\s+Group\s+(?P<group>\d{1,18}))?\s+Pid\s+(?P<pid>\d{1,18}) on\s+(?P<host>\S+) "
    r"device\s+(?P<device>\d{1,18}) \[(?P<pci>[^\]]*)\] (?P<name>.*?)\s*$"
)
_BOUNDS = re.compile(r"Out of bounds values\s*: (?P<count>\d{1,18})")
_AVERAGE = re.compile(r"Avg bus bandwidth\s*: (?P<average>[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?)")
_FAILURE = re.compile(r"Test (?:NCCL |CUDA |HIP )?failure|invalid usage|Segmentation fault", re.IGNORECASE)
_NOTE = re.compile(r"(?:# error: (?P<error>.+))|(?P<blocking>Blocking Enabled)|(?P<skipping>skipping json output.*)")


@dataclass
class Header:
    """What the lines said so far; ``options`` are the tool's own names and values."""

    tool: str | None = None
    tool_version: str | None = None
    library_version: str | None = None
    headers_version: str | None = None
    program: str | None = None
    command: str | None = None
    options: dict[str, int | str] = field(default_factory=dict)
    option_lines: int = 0
    devices: list[Device] = field(default_factory=list)
    out_of_bounds: int | None = None
    average_gb_s: float | None = None
    failures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def take(self, text: str) -> bool:
        """Read one line; false where it says nothing of the kind."""
        taken = [reader(self, text) for reader in (_versions, _programs, _options, _device, _footer, _failed)]
        return any(taken)

    @property
    def op(self) -> Op | None:
        """The operation that the tool names, or the command line that started it."""
        return op_of(self.program or self.command or "")


def starts_run(text: str) -> bool:
    """Whether a line is one that a tool prints once at the start of a run."""
    return bool(_NCCL_TESTS.search(text) or _PROGRAM.search(text) or _OPTIONS.match(text))


def communicators(devices: Sequence[Device]) -> list[list[Device]]:
    """The devices of each communicator: a rank is in one once, a process in one only, and so is a group."""
    found: list[list[Device]] = []
    for device in devices:
        open_ = [each for each in found if all(other.rank != device.rank and other.group == device.group for other in each)]
        same = [each for each in open_ if any((other.host, other.pid) == (device.host, device.pid) for other in each)]
        chosen = (same or open_)[:1]
        if chosen:
            chosen[0].append(device)
        else:
            found.append([device])
    return found


def _versions(header: Header, text: str) -> bool:
    found = _NCCL_TESTS.search(text)
    if found:
        header.tool, header.tool_version = found["tool"], found["version"].strip("-") or None
        header.headers_version = str(NcclVersion.of_code(int(found["headers"])))
        header.library_version = str(NcclVersion.of_code(int(found["library"])))
        return True
    found = _RCCL_TESTS.search(text)
    if found:  # a build outside a repository prints no version but the separators
        header.tool, header.tool_version = "rccl-tests", found["version"] if re.search(r"\w", found["version"]) else None
        return True
    found = _LIBRARY.search(text)
    if found:
        header.library_version = header.library_version or found["version"]
    return bool(found)


def _programs(header: Header, text: str) -> bool:
    found, command = _PROGRAM.search(text) or _CONCLUDED.search(text), _COMMAND.search(text)
    if found:
        header.program = found["program"]
    elif command and not text.lstrip().startswith("#"):
        header.command = header.command or command["program"]
    return bool(found or command)


def _options(header: Header, text: str) -> bool:
    if not _OPTIONS.match(text):
        return False
    header.option_lines += 1
    for found in _OPTION.finditer(text):
        header.options[found["name"]] = int(found["value"])
        if found["kind"]:
            header.options["step kind"] = found["kind"]
    return True


def _device(header: Header, text: str) -> bool:
    found = _DEVICE.match(text)
    if found:
        rank, group, pid, device = (int(found[name] or 0) for name in ("rank", "group", "pid", "device"))
        header.devices.append(Device(rank, group, pid, found["host"], device, found["pci"], found["name"]))
    return bool(found)


def _footer(header: Header, text: str) -> bool:
    bounds, average = _BOUNDS.search(text), _AVERAGE.search(text)
    if bounds:
        header.out_of_bounds = int(bounds["count"])
    if average:
        header.average_gb_s = float(average["average"])
    return bool(bounds or average)


def _failed(header: Header, text: str) -> bool:
    note = _NOTE.search(text)
    if note and note["error"]:
        header.errors.append(note["error"].strip())
    if _FAILURE.search(text):
        header.failures.append(text.strip())
        return True
    return bool(note)
