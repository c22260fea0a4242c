"""Contention: whether processes of others used the device while it was measured."""

from suite.selftest.channels import why_missing
from suite.selftest.record import CONTENTION, Finding, Status
from suite.selftest.taken import Passes
from suite.selftest.tally import among, named, untold
from suite.telemetry import UNITS

NAME = CONTENTION
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
    unsure = untold(measured, known)
    if not contended:
        return Finding(NAME, Status.OK, f"nobody else used the device in {among(known, measured)}{unsure}", figures)
    status = Status.FAIL if len(contended) > MOST * len(known) else Status.WARN
    says = (
        f"others used the device in {among(contended, measured)}, such as {named(contended)}: "
        f"stop them, or measure when it is idle{unsure}"
    )
    return Finding(NAME, status, says, figures)


def _why(passes: Passes) -> str:
    if not passes.timed:
        return "no case was timed"
    reasons = {why_missing(passes.timed, channel) for channel in UNITS}
    if len(reasons) == 1 and "" not in reasons:
        return reasons.pop()  # telemetry as a whole is not there
    return "the device lists none, or by numbers of another process namespace"
