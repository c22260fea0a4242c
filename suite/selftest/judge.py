"""From the results of a selftest's passes to its findings: pure, and the same for stored results as for fresh ones."""

from typing import NamedTuple

from suite.backend import DeviceInfo
from suite.selftest import channels, clock, contention, endings, flush, load, repeat, settled, timer
from suite.selftest.record import Finding, Repeatability
from suite.selftest.taken import Passes


class Verdict(NamedTuple):
    """The findings, in the order in which a reader doubts, and the repeatability that they rest on."""

    findings: tuple[Finding, ...]
    repeatability: Repeatability | None


def judge(passes: Passes, info: DeviceInfo) -> Verdict:
    """Answer every question.  ``info.llc_bytes`` must be the cache that flushes were planned for."""
    pairs = repeat.pairs(passes)
    findings = (
        endings.finding(passes),
        timer.finding(passes),
        flush.finding(passes, info, repeat.undisturbed(pairs)),
        load.finding(passes, info),
        clock.finding(passes, info),
        repeat.finding(passes),
        settled.steady(passes),
        settled.converged(passes),
        contention.finding(passes, info),
        channels.finding(passes, info),
    )
    return Verdict(findings, repeat.repeatability(pairs))
