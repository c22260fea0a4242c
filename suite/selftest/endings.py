"""Cases: whether every measurement of the selftest ended with a number."""

from suite.outcome import Outcome
from suite.report.words import counted
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes

NAME = "cases"
# What says something of the device or the request, and not of the instrument.
REFUSED = (Outcome.UNSUPPORTED, Outcome.OUT_OF_MEMORY)


def finding(passes: Passes) -> Finding:
    """Warns where the device refused a case; fails where one ended incorrect, impossible, crashed or in an error."""
    taken = list(passes)
    if not taken:
        return Finding(NAME, Status.FAIL, "no case was measured at all")
    ended = {outcome: [each for each in taken if each.row.outcome == outcome] for outcome in Outcome}
    counts = ", ".join(f"{len(group)} {outcome.value.replace('_', ' ')}" for outcome, group in ended.items() if group)
    figures = {outcome.value: len(group) for outcome, group in ended.items() if group}
    other = [each for each in taken if each.row.outcome != Outcome.OK]
    if not other:
        return Finding(NAME, Status.OK, f"all {counted(len(taken), 'measurement')} were verified and timed", figures)
    grave = [each for each in other if each.row.outcome not in REFUSED]
    first = (grave or other)[0]
    says = f"{counts}; first {first.name}: {first.row.outcome.replace('_', ' ')}, {first.row.reason or 'no reason given'}"
    return Finding(NAME, Status.FAIL if grave else Status.WARN, says, figures)
