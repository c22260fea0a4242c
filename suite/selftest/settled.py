"""Steady and converged: cases whose load kept moving, and cases whose interval stayed wider than was asked for."""

from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes, Taken
from suite.selftest.tally import among, company, named, untold
from suite.selftest.words import per_cent

STEADY, CONVERGED = "steady", "converged"


def steady(passes: Passes) -> Finding:
    """Warns where clock and power (or time) were still moving when sampling began."""
    sustained = [taken for taken in passes.timed if taken.row.load == "sustained"]
    known = [taken for taken in sustained if taken.row.steady is not None]
    moving = [taken for taken in known if taken.row.steady is False]
    if not known:
        return Finding(STEADY, Status.UNAVAILABLE, "no sustained case was timed")
    figures = {"measurements": len(sustained), "moving": len(moving), "unknown": len(sustained) - len(known)}
    unsure = untold(sustained, known)
    if not moving:
        settled = f"{among(known, sustained, 'sustained')} settled in the time allowed{unsure}"
        return Finding(STEADY, Status.OK, settled, figures)
    says = (
        f"{among(moving, sustained, 'sustained')} did not settle in measure.steady_timeout_s: "
        f"{named(moving)}{company(moving)}{unsure}"
    )
    return Finding(STEADY, Status.WARN, says, figures)


def converged(passes: Passes) -> Finding:
    """Warns where the interval did not become as narrow as ``measure.target`` in the time allowed."""
    timed = passes.timed
    known = [taken for taken in timed if taken.row.converged is not None]
    wide = [taken for taken in known if taken.row.converged is False]
    if not known:
        return Finding(CONVERGED, Status.UNAVAILABLE, "no case was timed")
    worst = max(known, key=lambda taken: taken.half_width)
    figures: dict[str, float | str | None] = {
        "measurements": len(timed),
        "not_converged": len(wide),
        "unknown": len(timed) - len(known),
        "widest_half_width_rel": worst.half_width,
        "widest_case": worst.name,
    }
    if not wide:
        widest = f"the widest interval is {_width(worst)}"
        reached = f"{among(known, timed)} reached the target; {widest}{untold(timed, known)}"
        return Finding(CONVERGED, Status.OK, reached, figures)
    says = (
        f"{among(wide, timed)} did not reach measure.target in measure.max_time_s; the widest is of {worst.name}: "
        f"{_width(worst)}{company(wide)}{untold(timed, known)}"
    )
    return Finding(CONVERGED, Status.WARN, says, figures)


def _width(taken: Taken) -> str:
    """How far a median may be from the truth; past the median itself a percentage says nothing."""
    half_width = taken.half_width
    return f"± {per_cent(half_width)} of the median" if half_width <= 1 else "wider than twice its median, so not resolved"
