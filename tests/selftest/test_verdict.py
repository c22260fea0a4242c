"""A selftest as it is printed: a line a finding, and what follows from them."""

from datetime import UTC, datetime

import pytest

from suite.selftest.judge import judge
from suite.selftest.record import Finding, Repeatability, Selftest, Status
from suite.selftest.verdict import closing, verdict_lines
from suite.show.screen import Screen
from tests.selftest.material import INFO, passes

WHEN = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


def of(*findings: Finding, known: Repeatability | None = None, **facts: str) -> Selftest:
    return Selftest("d0d0cafe", "Testium T1", "cuda", ("r1", "r2"), WHEN, findings, known, facts)


def finding(status: Status, name: str = "timer", says: str = "it steps by 20 ns") -> Finding:
    return Finding(name, status, says)


MIXED = (
    finding(Status.OK),
    finding(Status.WARN, "load", "sustained is 18 % under burst: power limit 700 W reached"),
    finding(Status.FAIL, "flush", "cold is not cold"),
    finding(Status.UNAVAILABLE, "clock", "nothing counts here"),
)


def test_each_finding_is_one_line_with_a_mark_where_lines_may_be_long() -> None:
    assert list(verdict_lines(of(*MIXED), Screen(None))) == [
        "selftest of cuda Testium T1, 2031-05-06 07:08 UTC",
        "  ok    timer  it steps by 20 ns",
        "  warn  load   sustained is 18 % under burst: power limit 700 W reached",
        "  FAIL  flush  cold is not cold",
        "  n/a   clock  nothing counts here",
        "Do not trust results of this device yet: flush failed.",
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_long_sentences_are_wrapped_beside_their_mark(width: int) -> None:
    verdict = judge(passes(), INFO)
    lines = list(verdict_lines(of(*verdict.findings, known=verdict.repeatability), Screen(width)))
    indent = len("  ok    repeatability  ")
    assert max(map(len, lines[1:])) <= max(width, indent + 32)
    assert lines[1].startswith("  ok    cases          all 59 measurements")
    assert len(lines) > len(verdict.findings) + 2


def test_marks_have_colours_where_they_are_welcome() -> None:
    lines = list(verdict_lines(of(*MIXED), Screen(None, color=True)))
    assert [line.count("\033[") for line in lines] == [2] * 6
    assert "\033[31mFAIL\033[0m" in lines[3]


def test_text_from_a_store_moves_no_cursor() -> None:
    lines = list(verdict_lines(of(finding(Status.WARN, "load", "a\x1b[2Jb"), evidence="measured"), Screen(None)))
    assert not any("\x1b" in line for line in lines)


def test_a_simulated_device_says_so() -> None:
    assert "Testium T1, simulated, 2031" in next(verdict_lines(of(*MIXED, evidence="simulated"), Screen(None)))


KNOWN = Repeatability(0.004, 0.013, True, 20)
IN_CYCLES = "1 % in cycles where arithmetic bounds a case, as times follow the clock"
NONE = "is no difference to `roofbench compare`."
ENDINGS = [
    ((Status.OK, Status.OK), KNOWN, f"trusted. Between two runs, less than {IN_CYCLES}, or 1.3 % in time elsewhere {NONE}"),
    ((Status.OK, Status.OK), Repeatability(0.002, None, True, 9), f"trusted. Between two runs, less than {IN_CYCLES} {NONE}"),
    ((Status.OK,), Repeatability(None, 0.03, False, 9), f"Between two runs, less than 3 % in time {NONE}"),
    ((Status.OK,), Repeatability(0.02, None, False, 9), f"Between two runs, less than 2 % in time {NONE}"),
    ((Status.OK,), Repeatability(0.002, 0.003, False, 9), f"Between two runs, less than 1 % in time {NONE}"),
    (
        (Status.OK,), Repeatability(0.02, 0.03, False, 9),
        f"less than 2 % in time where arithmetic bounds a case, or 3 % in time elsewhere {NONE}",
    ),
    ((Status.OK, Status.UNAVAILABLE), None, "Results of this device can be trusted."),
    ((Status.WARN, Status.OK), KNOWN, f"can be used, with what is said of q0 in mind. Between two runs, less than {IN_CYCLES}"),
    ((Status.WARN, Status.WARN, Status.WARN), None, "with what is said of q0, q1 and q2 in mind."),
    ((Status.FAIL, Status.WARN, Status.FAIL), KNOWN, "Do not trust results of this device yet: q0 and q2 failed."),
    ((Status.UNAVAILABLE,), None, "Nothing could be asked of this device."),
]  # fmt: skip


@pytest.mark.parametrize(("statuses", "known", "says"), ENDINGS)
def test_one_sentence_says_what_to_do(statuses: tuple[Status, ...], known: Repeatability | None, says: str) -> None:
    findings = [finding(status, f"q{number}") for number, status in enumerate(statuses)]
    assert says in closing(of(*findings, known=known))


def test_a_verdict_survives_json() -> None:
    verdict = judge(passes(), INFO)
    whole = of(*verdict.findings, known=verdict.repeatability, driver="580")
    assert Selftest.from_json(whole.to_json()) == whole


def test_what_a_difference_means_is_said_in_one_place() -> None:
    """It was said twice, of different margins: above 0.27 % they meant something, and under 1 % nothing."""
    verdict = judge(passes(), INFO)
    (repeats,) = (each for each in verdict.findings if each.name == "repeatability")
    assert not any(word in repeats.says for word in ("mean", "difference", "compare"))
    assert closing(of(*verdict.findings, known=verdict.repeatability)).count("`roofbench compare`") == 1
