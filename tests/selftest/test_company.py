"""Contention, and cases that did not settle or converge; that what is listed adds up to what is counted."""

import re
from dataclasses import replace

import pytest

from suite.backend import Channel
from suite.measure import others
from suite.measure.others import LISTED_ELSEWHERE, TELEMETRY_OFF, Unknown
from suite.measurement import Span
from suite.selftest import channels, contention, settled
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes, Taken
from suite.selftest.tally import among, named
from suite.telemetry import UNITS, NoTelemetry
from tests.selftest.material import INFO, altered, passes, with_row, with_samples, with_telemetry


def test_a_device_of_one_s_own_is_a_pass() -> None:
    finding = contention.finding(passes(), INFO)
    assert (finding.status, finding.says) == (Status.OK, "nobody else used the device in all 59 measurements")


def test_company_for_a_while_is_a_warning_with_the_cases() -> None:
    finding = contention.finding(altered(passes(), lambda taken: with_row(taken, contended=True), ["again"], "4096"), INFO)
    assert finding.status is Status.WARN
    assert "others used the device in 4 of 59 measurements, such as 4096x4096x4096 fp8_e4m3 warm, " in finding.says
    assert "and 1 more: stop them, or measure when it is idle" in finding.says


def test_company_for_most_of_the_time_fails() -> None:
    finding = contention.finding(altered(passes(), lambda taken: with_row(taken, contended=True), ["first", "doubled"]), INFO)
    assert finding.status is Status.FAIL


def unknown(taken: Taken) -> Taken:
    return with_row(taken, contended=None)


def brief(taken: Taken) -> Taken:
    """Sampled for 0.16 s, all of it, and so too short for a CPU to tell who else was at work."""
    return with_samples(unknown(taken), spans=(Span(0, 0.01, 0.17),))


CPU = replace(INFO, backend="cpu")
TOO_SHORT = "it was sampled for under 0.2 s, too short to count the work of others: measure it anew with "


def test_what_cannot_be_told_is_no_pass_and_says_why_and_what_to_do() -> None:
    """A row of 0.16 s, sampled beside a busy loop, was 78 times too slow within 0.37 %, and counted as quiet."""
    nothing = contention.finding(altered(passes(), unknown), INFO)
    assert nothing.status is Status.UNAVAILABLE
    assert nothing.says == (
        "nobody can tell whose processes use the device: the driver lists no processes here, or by the numbers of another "
        "process namespace: start roofbench in the host's process namespace (docker run --pid=host)"
    )
    partly = contention.finding(altered(passes(), brief, ["load"]), CPU)
    assert (partly.status, partly.figures["unknown"]) == (Status.WARN, 4)
    assert partly.says == (
        "nobody else used the device in 55 of 59 measurements"
        f"; of 2 it is not known: {TOO_SHORT}more or longer measure.burst_windows"
        f"; of 2 it is not known: {TOO_SHORT}a measure.max_time_s of 0.2 or more"
    )


def test_the_reason_is_the_real_one() -> None:
    """Telemetry that is off tells nothing however long a case was sampled; nor is length a reason where others are listed."""
    long = with_samples(passes().first[5], spans=(Span(0, 0.01, 0.4),))
    off = with_telemetry(long, NoTelemetry(TELEMETRY_OFF).stop())
    assert why(off, is_cpu=True) == why(off, is_cpu=False) == (TELEMETRY_OFF, "give measure.telemetry=true")
    assert why(with_telemetry(long, NoTelemetry("JAX reads nothing of a TPU").stop()), is_cpu=False).remedy == ""
    assert why(brief(long), is_cpu=False).why == LISTED_ELSEWHERE
    assert why(brief(long), is_cpu=True).why.startswith("it was sampled for under 0.2 s")
    assert why(long, is_cpu=True).remedy == "measure it anew"
    assert why(with_telemetry(long, {}), is_cpu=True).why == "nothing was read beside it"


def why(taken: Taken, is_cpu: bool) -> Unknown:
    return others.unknown(taken.row.load, taken.measurement, is_cpu)


def test_cases_that_kept_moving_are_named_once() -> None:
    moving = altered(passes(), lambda taken: with_row(taken, steady=False), only="4096x4096x4096 bf16 cold")
    finding = settled.steady(moving)
    assert finding.status is Status.WARN
    assert finding.says == (
        "3 of 57 sustained measurements did not settle in measure.steady_timeout_s: 4096x4096x4096 bf16 cold (3 times)"
    )
    assert settled.steady(passes()).says == "all 57 sustained measurements settled in the time allowed"


def test_cases_that_stayed_wide_are_counted_and_the_widest_is_named() -> None:
    def wide(share: float):
        return lambda taken: with_row(
            taken, converged=False, interval_s=(taken.row.p50_s * (1 - share), taken.row.p50_s * (1 + share))
        )

    whole = altered(altered(passes(), wide(0.03), ["first"], "2048"), wide(0.08), ["again"], "16x3840x3840 bf16 warm")
    finding = settled.converged(whole)
    assert finding.status is Status.WARN
    assert finding.says == (
        "5 of 59 measurements did not reach measure.target in measure.max_time_s; "
        "the widest is of 16x3840x3840 bf16 warm: ± 8 % of the median"
    )


def test_an_interval_wider_than_its_median_has_no_percentage() -> None:
    def lost(taken: Taken) -> Taken:
        return with_row(taken, converged=False, interval_s=(0.0, 50 * taken.row.p50_s))

    says = settled.converged(altered(passes(), lost, ["again"], "16x3840x3840 bf16 warm")).says
    assert says.endswith("the widest is of 16x3840x3840 bf16 warm: wider than twice its median, so not resolved")


def contended(only: str = "") -> Passes:
    """Other work was beside those of a name, and of three cases it is not known."""
    whole = altered(passes(), lambda taken: with_row(taken, contended=True, steady=False), only=only)
    return altered(whole, lambda taken: with_row(taken, contended=None, steady=None), ["first"], "16x3840x3840 bf16")


def counted(finding: Finding, introduction: str) -> tuple[int, int]:
    """How many measurements are counted, and how many the list that follows adds up to."""
    listed = finding.says.partition(introduction)[2].split(":")[0].split(";")[0]
    names, _, more = listed.partition(" and ")
    times = [int(found[1]) if (found := re.search(r"\((\d+) times\)", name)) else 1 for name in names.split(", ")]
    number = re.search(r"(\d+)(?: of \d+)? (?:sustained )?measurements", finding.says)
    assert number
    return int(number[1]), sum(times) + int((more or "0 more").split()[0])


@pytest.mark.parametrize("only", ["", "4096", "8192x8192x8192 bf16 cold"])
def test_what_is_listed_adds_up_to_what_is_counted_everywhere(only: str) -> None:
    busy = contended(only)
    for finding, introduction in ((contention.finding(busy, INFO), "such as "), (settled.steady(busy), "steady_timeout_s: ")):
        count, listed = counted(finding, introduction)
        assert count == listed == finding.figures[{"contention": "contended"}.get(finding.name, "moving")], finding.says


def test_all_that_were_measured_are_counted_and_those_of_which_it_is_not_known_are_among_them() -> None:
    says = contention.finding(contended(), INFO).says
    assert says.startswith("others used the device in 57 of 59 measurements, such as ")
    assert "; of 2 it is not known: the driver lists no processes here" in says


def test_a_case_of_several_passes_is_named_once_with_how_often() -> None:
    taken = [*passes().first[5:7], *passes().again[-2:]]
    assert named(taken[:1]) == "8192x8192x8192 bf16 cold"
    assert named(taken) == "8192x8192x8192 bf16 cold (2 times), 8192x8192x8192 bf16 warm (2 times)"
    assert (among(taken[:2], taken), among(taken, taken, "cold")) == ("2 of 4 measurements", "all 4 cold measurements")


def test_a_cpu_is_not_said_to_lack_what_only_an_accelerator_has() -> None:
    lacking = {name: Channel(unit, (), (), "not offered") for name, unit in UNITS.items()}
    read = {name: Channel(UNITS[name], (0.0, 0.1), (1.0, 1.0)) for name in ("power", "energy", "memory_used")}
    some = altered(passes(), lambda taken: with_telemetry(taken, {**lacking, **read}))
    of_cpu = channels.finding(some, replace(INFO, backend="cpu"))
    assert (of_cpu.status, of_cpu.says.startswith("not read: core clock and ")) == (Status.WARN, True)
    assert not any(word in of_cpu.says for word in ("pcie", "hotspot", "sm clock"))
    of_gpu = channels.finding(some, INFO)
    assert all(word in of_gpu.says for word in ("pcie tx", "hotspot temperature", "sm clock"))
