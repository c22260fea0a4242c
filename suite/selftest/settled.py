"""Steady and converged: cases whose load kept moving, and cases whose interval stayed wider than was asked for."""

from collections.abc import Sequence

from suite.report.words import counted
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes, Taken
from suite.selftest.words import listed, per_cent

STEADY, CONVERGED = "steady", "converged"


def steady(passes: Passes) -> Finding:
    """Warns where clock and power (or time) were still moving when sampling began."""
    known = [taken for taken in passes.timed if taken.row.steady is not None]
    moving = [taken for taken in known if taken.row.steady is False]
    if not known:
        return Finding(STEADY, Status.UNAVAILABLE, "no sustained case was timed")
    figures = {"cases": len(known), "moving": len(moving)}
    if not moving:
        return Finding(STEADY, Status.OK, f"all {counted(len(known), 'sustained case')} settled in the time allowed", figures)
    says = (
        f"{len(moving)} of {counted(len(known), 'sustained case')} did not settle in measure.steady_timeout_s: "
        f"{_names(moving)}{_company(moving)}"
    )
    return Finding(STEADY, Status.WARN, says, figures)


def converged(passes: Passes) -> Finding:
    """Warns where the interval did not become as narrow as ``measure.target`` in the time allowed."""
    known = [taken for taken in passes.timed if taken.row.converged is not None]
    wide = [taken for taken in known if taken.row.converged is False]
    if not known:
        return Finding(CONVERGED, Status.UNAVAILABLE, "no case was timed")
    worst = max(known, key=lambda taken: taken.half_width)
    figures: dict[str, float | str | None] = {
        "cases": len(known),
        "not_converged": len(wide),
        "widest_half_width_rel": worst.half_width,
        "widest_case": worst.name,
    }
    if not wide:
        widest = f"the widest interval is {per_cent(worst.half_width)} either way"
        return Finding(CONVERGED, Status.OK, f"all {counted(len(known), 'case')} reached the target; {widest}", figures)
    says = (
        f"{len(wide)} of {counted(len(known), 'case')} did not reach measure.target in measure.max_time_s; "
        f"the widest is {worst.name} at {per_cent(worst.half_width)} either way{_company(wide)}"
    )
    return Finding(CONVERGED, Status.WARN, says, figures)


def _names(taken: Sequence[Taken]) -> str:
    return listed(list(dict.fromkeys(each.name for each in taken)))


def _company(taken: Sequence[Taken]) -> str:
    contended = sum(bool(each.row.contended) for each in taken)
    return f"; {contended} of them were measured beside other work" if contended else ""
