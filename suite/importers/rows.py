"""What an import yields: rows that say where they come from, and facts of the run that they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from suite.case import Items
from suite.collectives.names import Op
from suite.outcome import Evidence


class Checked(StrEnum):
    """What the tool says of the result: three states, of which only one is correct."""

    GOOD = "good"
    BAD = "bad"
    UNCHECKED = "unchecked"


class LogStatus(StrEnum):
    """How much of a run the text holds."""

    COMPLETE = "complete"
    PARTIAL = "partial"  # rows are missing, or the text is cut
    ABORTED = "aborted"  # the writer never closed its document
    FAILED = "failed"  # the tool says that the test failed
    EMPTY = "empty"  # no row at all


class IterationTimes(NamedTuple):
    """How single iterations spread, seconds; ``cv`` is standard deviation over mean, 1 for 100 %."""

    min_s: float
    max_s: float
    p99_s: float
    cv: float


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One timed collective as another tool printed it.

    ``format`` is roofbench's name where it has one.  Bandwidths are bytes per second, ``None`` where there is none to have:
    over one rank, or of no bytes.  ``wrong`` counts wrong elements, ``None`` where nothing was checked or the tool printed a
    difference instead, ``error_delta``.  ``extra`` holds columns that not every version has.
    """

    op: Op | None
    format: str
    size_bytes: int
    count: int | None
    redop: str | None
    root: int | None
    in_place: bool
    ranks: int | None
    time_s: float | None
    algbw_bytes_s: float | None
    busbw_bytes_s: float | None
    wrong: int | None = None
    error_delta: float | None = None
    checked: Checked = Checked.UNCHECKED
    iterations: IterationTimes | None = None
    extra: Items = ()
    evidence: Evidence = Evidence.IMPORTED


class Device(NamedTuple):
    """One line of a device list; ``host`` and ``pid`` are for telling processes apart and are never published."""

    rank: int
    group: int
    pid: int
    host: str
    device: int
    pci: str
    name: str


@dataclass(frozen=True, slots=True)
class CollectiveLog:
    """One run of nccl-tests or rccl-tests.

    ``op_source`` and ``ranks_source`` say what the two rest on; ``parameters`` are the tool's own names and values.
    """

    tool: str
    tool_version: str | None = None
    library_version: str | None = None
    headers_version: str | None = None
    op: Op | None = None
    op_source: str | None = None
    ranks: int | None = None
    ranks_source: str | None = None
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    rows: tuple[CollectiveRow, ...] = ()
    average_busbw_bytes_s: float | None = None
    out_of_bounds: int | None = None
    status: LogStatus = LogStatus.EMPTY
    warnings: tuple[str, ...] = ()

    @property
    def hosts(self) -> int | None:
        """How many machines the device list names; ``None`` without a list."""
        return len({device.host for device in self.devices}) or None

    @property
    def device_names(self) -> tuple[str, ...]:
        """The kinds of device, each once."""
        return tuple(dict.fromkeys(device.name for device in self.devices))

    def placed(self, in_place: bool) -> tuple[CollectiveRow, ...]:
        """Rows of one half of the table."""
        return tuple(row for row in self.rows if row.in_place is in_place)
