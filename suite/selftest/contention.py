"""Contention: whether processes of others used the device while it was measured."""

from collections import Counter
from collections.abc import Sequence

from suite.backend import DeviceInfo
from suite.hardware.makers import is_cpu
from suite.measure.others import Unknown, unknown
from suite.selftest.record import CONTENTION, Finding, Status
from suite.selftest.taken import Passes, Taken
from suite.selftest.tally import among, named

NAME = CONTENTION
MOST = 0.5


def finding(passes: Passes, info: DeviceInfo) -> Finding:
    """Warns where others were there for some measurements, or nobody can tell of some; fails where they were for most."""
    measured = passes.timed
    if not measured:
        return Finding(NAME, Status.UNAVAILABLE, "nobody can tell whose processes use the device: no case was timed")
    known = [taken for taken in measured if taken.row.contended is not None]
    reasons = Counter(unknown(each.row.load, each.measurement, is_cpu(info)) for each in measured if each.row.contended is None)
    if not known:
        ((first, _),) = reasons.most_common(1)
        return Finding(NAME, Status.UNAVAILABLE, f"nobody can tell whose processes use the device: {_clause(first)}")
    contended = [taken for taken in known if taken.row.contended]
    figures = {
        "measurements": len(measured),
        "contended": len(contended),
        "unknown": len(measured) - len(known),
    }
    unsure = "".join(f"; of {count} it is not known: {_clause(reason)}" for reason, count in reasons.most_common())
    if not contended:
        status = Status.WARN if unsure else Status.OK
        return Finding(NAME, status, f"nobody else used the device in {among(known, measured)}{unsure}", figures)
    status = Status.FAIL if len(contended) > MOST * len(known) else Status.WARN
    return Finding(NAME, status, f"{_company(contended, measured)}{unsure}", figures)


def _company(contended: Sequence[Taken], measured: Sequence[Taken]) -> str:
    return (
        f"others used the device in {among(contended, measured)}, such as {named(contended)}: "
        "stop them, or measure when it is idle"
    )


def _clause(reason: Unknown) -> str:
    return f"{reason.why}: {reason.remedy}" if reason.remedy else reason.why
