"""How far a result is to be trusted beside others, and what the latest selftest of a device says against all of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from suite.backend import DeviceInfo
from suite.errors import StoreUnusable
from suite.report.printable import printable
from suite.report.words import moment, resolved
from suite.rows import ResultRow
from suite.selftest.record import Selftest, Status

TRUSTED = 2  # the rank of a resolved median with the device to itself


class SelftestSource(Protocol):
    """A store's selftests of a device, the newest first."""

    def selftests(self, device_uid: str | None = None) -> Sequence[Selftest]: ...


def trust_rank(row: ResultRow) -> int:
    """``TRUSTED``, 1 of a resolved median that is contended, 0 of one that is not resolved.

    A number that is known to no more than its order of magnitude is the best of nothing that holds one that is known.
    """
    return 0 if not resolved(row) else 1 if row.contended is True else TRUSTED


def distrust(source: SelftestSource, info: DeviceInfo) -> str:
    """One line where the latest selftest of the device under its backend ended FAIL, or cannot be read; else empty."""
    try:
        latest = next((each for each in source.selftests(info.uid) if each.backend == info.backend), None)
    except StoreUnusable:
        return "its selftests cannot be read: `roofbench store check` says what is wrong"
    if latest is None or latest.status is not Status.FAIL:
        return ""
    failed = ", ".join(finding.name for finding in latest.findings if finding.status is Status.FAIL)
    return f"selftest of {moment(latest.finished_at.isoformat())}: {failed} FAIL; see `roofbench selftest --last`"


def distrust_lines(source: SelftestSource, devices: Iterable[DeviceInfo]) -> Iterator[str]:
    """That line of each device that has one, once, under its name."""
    for (backend, name, _), info in {(each.backend, each.name, each.uid): each for each in devices}.items():
        if said := distrust(source, info):
            yield f"{backend} {printable(name)}: {said}"
