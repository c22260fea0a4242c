"""One side of a comparison: a run with its devices, the system it ran on and its results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from suite.backend import Fact
from suite.compare.noise import UNKNOWN, Noise
from suite.rows import DeviceRow, ResultRow, RunInfo


class Entry(NamedTuple):
    """One result as a comparison sees it: its row, and by which version of its job's method it was measured."""

    row: ResultRow
    method_version: int

    @property
    def regime_key(self) -> tuple[str, str]:
        """What results of several devices and implementations have in common."""
        return self.row.workload_key, self.row.regime


class Looked(NamedTuple):
    """What the raw measurement of a result says beyond its row: the noise of its median, and what was executed.

    ``description`` is the kernel's own, JSON values; ``noise_cycles`` is the median's in cycles, where they were counted.
    """

    noise: Noise
    description: Mapping[str, Any]
    noise_cycles: Noise | None = None


NOTHING = Looked(UNKNOWN, {})


@dataclass(frozen=True, slots=True)
class Side:
    """``environments`` are the systems that the run was on: several where it was resumed elsewhere."""

    info: RunInfo
    devices: Sequence[DeviceRow]
    environments: Sequence[Mapping[str, Mapping[str, Fact]]]
    entries: Sequence[Entry]

    @property
    def chips(self) -> frozenset[tuple[str, str]]:
        """Uid and backend of each device that has results; where there are none yet, of each that they were to come from."""
        if not self.entries:
            return frozenset((device.info.uid, device.info.backend) for device in self.devices)
        return frozenset((entry.row.device_uid, entry.row.backend) for entry in self.entries)

    @property
    def names(self) -> tuple[str, ...]:
        """Backend and name of each kind of device that has results, each once."""
        return tuple(dict.fromkeys(f"{entry.row.backend} {entry.row.device}" for entry in self.entries))
