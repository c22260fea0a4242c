"""Contention: whether processes of others used the device while it was measured."""

from suite.report.words import counted
from suite.selftest.channels import why_missing
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes
from suite.selftest.words import listed
from suite.telemetry import UNITS

NAME = "contention"
MOST = 0.5


def finding(passes: Passes) -> Finding:
    """Warns where others were there for some measurements; fails where they were for most of them."""
    measured = passes.timed
    known = [taken for taken in measured if taken.row.contended is not None]
    if not known:
        return Finding(NAME, Status.UNAVAILABLE, f"nobody can tell whose processes use the device: {_why(passes)}")
    contended = [taken for taken in known if taken.row.contended]
    figures = {
        "measurements": len(measured),
        "contended": len(contended),
        "unknown": len(measured) - len(known),
    }
    unsure = f"; {counted(figures['unknown'], 'measurement')} told nothing" if figures["unknown"] else ""
    if not contended:
        return Finding(NAME, Status.OK, f"nobody else used the device in {counted(len(known), 'measurement')}{unsure}", figures)
    status = Status.FAIL if len(contended) > MOST * len(known) else Status.WARN
    says = (
        f"others used the device in {len(contended)} of {counted(len(known), 'measurement')}, such as "
        f"{listed([taken.name for taken in contended])}: stop them, or measure when it is idle{unsure}"
    )
    return Finding(NAME, status, says, figures)


def _why(passes: Passes) -> str:
    if not passes.timed:
        return "no case was timed"
    reasons = {why_missing(passes.timed, channel) for channel in UNITS}
    if len(reasons) == 1 and "" not in reasons:
        return reasons.pop()  # telemetry as a whole is not there
    return "the device lists none, or by numbers of another process namespace"
