"""A selftest as text: a line for each finding, and a sentence that says what follows."""

import textwrap
from collections.abc import Iterator

from suite.report.printable import printable
from suite.report.words import moment
from suite.selftest.record import Finding, Repeatability, Selftest, Status
from suite.selftest.usable import unusable
from suite.selftest.words import per_cent
from suite.show.screen import Screen

MARKS = {Status.OK: "ok", Status.WARN: "warn", Status.FAIL: "FAIL", Status.UNAVAILABLE: "n/a"}
STYLES = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "red", Status.UNAVAILABLE: "dim"}
MARK_WIDTH = max(map(len, MARKS.values()))
LEAST_MARGIN = 0.01  # what `roofbench compare` asks of a difference at least
LEAST_ROOM = 32  # characters for a sentence beside its mark, however narrow the screen is


def verdict_lines(selftest: Selftest, screen: Screen) -> Iterator[str]:
    """Which device, its findings, and whether its results can be trusted."""
    when = moment(selftest.finished_at.isoformat())
    simulated = ", simulated" if selftest.facts.get("evidence") == "simulated" else ""
    title = printable(f"selftest of {selftest.backend} {selftest.device}{simulated}")
    yield f"{screen.paint(title, 'bold')}, {when}"
    widest = max((len(finding.name) for finding in selftest.findings), default=0)
    for finding in selftest.findings:
        yield from _finding(finding, widest, screen)
    style = STYLES[selftest.status]
    yield from (screen.paint(line, style) for line in _wrapped(closing(selftest), "", screen))


def closing(selftest: Selftest) -> str:
    """What a cluster engineer should do with this device's results."""
    failed, warned = _named(selftest, Status.FAIL), _named(selftest, Status.WARN)
    if failed:
        return f"Do not trust results of this device yet: {failed} failed."
    known = None if unusable(selftest) else selftest.repeatability
    spread = f" {_margins(known)}" if known is not None and known.worst_rel is not None else ""
    if warned:
        return f"Results of this device can be used, with what is said of {warned} in mind.{spread}"
    if selftest.status is Status.OK:
        return f"Results of this device can be trusted.{spread}"
    return "Nothing could be asked of this device."


def _margins(known: Repeatability) -> str:
    """What a difference must exceed to mean something: the margin of `roofbench compare`, in the unit that it compares in."""
    compute, memory = (None if rel is None else max(rel, LEAST_MARGIN) for rel in (known.cycles_rel, known.bytes_rel))
    if known.in_cycles:
        parts = [
            (compute, "in cycles where arithmetic bounds a case, as times follow the clock"),
            (memory, "in time elsewhere"),
        ]
    elif compute is None or compute == memory:
        parts = [(memory, "in time")]
    else:
        parts = [
            (compute, "in time" if memory is None else "in time where arithmetic bounds a case"),
            (memory, "in time elsewhere"),
        ]
    margins = ", or ".join(f"{per_cent(margin)} {where}" for margin, where in parts if margin is not None)
    return f"Between two runs, less than {margins} is no difference to `roofbench compare`."


def _named(selftest: Selftest, status: Status) -> str:
    names = [finding.name for finding in selftest.findings if finding.status is status]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _finding(finding: Finding, widest: int, screen: Screen) -> Iterator[str]:
    mark = f"{MARKS[finding.status]:<{MARK_WIDTH}}"
    head = f"  {mark}  {printable(finding.name):<{widest}}  "
    painted = head.replace(mark, screen.paint(mark, STYLES[finding.status]), 1)
    first, *rest = _wrapped(printable(finding.says), " " * len(head), screen)
    yield painted + first
    yield from (" " * len(head) + line for line in rest)


def _wrapped(text: str, indent: str, screen: Screen) -> list[str]:
    """The text in lines that fit beside ``indent``; in one where lines may be as long as they like."""
    if screen.width is None:
        return [text]
    return textwrap.wrap(text, max(LEAST_ROOM, screen.width - len(indent))) or [""]
