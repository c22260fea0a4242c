"""Which selftest of a device tells its repeatability: none that failed or that other work disturbed, however long ago."""

from datetime import UTC, datetime

import pytest

from suite.selftest.judge import judge
from suite.selftest.record import Finding, Repeatability, Selftest, Status
from suite.selftest.usable import Standing, standing, unusable
from suite.selftest.verdict import closing
from tests.selftest.material import INFO, altered, passes, slower, with_row

KNOWN = Repeatability(0.002, 0.01, in_cycles=True, cases=20)
WILD = Repeatability(0.95, 0.77, in_cycles=False, cases=20)
REPEATS = Finding("repeatability", Status.OK, "20 of 20 cases repeat within 1 %", {"cases": 20})
# As they were stored when nothing was left out.
DISTURBED = Finding("repeatability", Status.WARN, "18 of 20 cases", {"cases": 20, "contended_cases": 3})
FAILED = Finding("repeatability", Status.FAIL, "1 of 20 cases", {"cases": 20, "contended_cases": 20})
FAILS = "repeatability FAIL (95 % at the 95th percentile)"
CROWDED = Finding("contention", Status.FAIL, "others used the device", {"contended": 56, "measurements": 59, "unknown": 3})
UNTOLD = Finding("contention", Status.OK, "nobody else", {"contended": 0, "measurements": 59, "unknown": 6})
UNLISTED = Finding("contention", Status.UNAVAILABLE, "nobody can tell")
KNOWN_QUIET = Finding("repeatability", Status.OK, "14 of 14 cases", {"cases": 14, "unknown_left_out": 6})
LACKING = Finding("repeatability", Status.UNAVAILABLE, "no case was measured twice that launching does not bound")


def judged(day: int, *findings: Finding, known: Repeatability | None = KNOWN, **facts: str) -> Selftest:
    return Selftest("uid", "Testium T1", "cuda", (), datetime(2031, 5, day, tzinfo=UTC), findings, known, facts)


@pytest.mark.parametrize(
    ("selftest", "why"),
    [
        (judged(1, REPEATS), ""),
        (judged(1), ""),
        (judged(1, Finding("flush", Status.FAIL, "cold is not cold"), REPEATS), ""),
        (judged(1, FAILED, known=WILD), f"{FAILS}, measured beside other work (20 of 20)"),
        (judged(1, DISTURBED), "measured beside other work (3 of 20)"),
        (judged(1, REPEATS, CROWDED), "contention FAIL (56 of 59)"),
        (judged(1, Finding("contention", Status.FAIL, "as some store has it")), "contention FAIL"),
        (judged(1, REPEATS, UNTOLD), "whether other work was there is not known (6 of 59)"),
        (judged(1, REPEATS, UNLISTED), "whether other work was there is not known"),
        (judged(1, KNOWN_QUIET, UNTOLD), ""),
        (judged(1, LACKING, known=None), f"no repeatability was known ({LACKING.says})"),
    ],
    ids=[
        "sound",
        "without findings",
        "fails otherwise",
        "failed",
        "disturbed",
        "crowded",
        "without figures",
        "untold",
        "unlisted",
        "untold left out",
        "lacking",
    ],
)
def test_why_one_is_not_to_be_used(selftest: Selftest, why: str) -> None:
    assert unusable(selftest) == why


def test_an_earlier_one_of_the_device_as_it_is_now_stands_in() -> None:
    latest, other = judged(4, FAILED, known=WILD, driver="590"), judged(3, REPEATS, driver="580")
    disturbed, sound = judged(2, DISTURBED, driver="590"), judged(1, REPEATS, driver="590", pruned_runs="x")
    assert standing([latest, other, disturbed, sound]) == Standing(sound, latest, unusable(latest))
    assert standing([latest, other]) == Standing(None, latest, unusable(latest))
    assert standing([sound, latest]) == Standing(sound)
    assert standing([]) == Standing(None)


def test_a_verdict_reached_beside_other_work_is_not_used_and_says_no_margin() -> None:
    busy = altered(passes(), lambda taken: with_row(slower(taken, 1.9), contended=True), ["again", "doubled", "load"])
    findings, known = judge(busy, INFO)
    found = judged(1, *findings, known=known)
    assert known is None
    assert unusable(found).startswith("contention FAIL (34 of 59), no repeatability was known (20 of 20 cases were measured ")
    assert "no difference" not in closing(judged(1, DISTURBED))
