"""The judge as a whole: every question is answered once, on a sound device, on one that offers nothing, on none at all."""

from dataclasses import replace

from suite.backend import Channel
from suite.measure.others import TELEMETRY_OFF
from suite.measurement import Measurement
from suite.outcome import Outcome
from suite.selftest.judge import judge
from suite.selftest.record import Status
from suite.selftest.taken import Passes
from suite.telemetry import NoTelemetry
from tests.selftest.material import INFO, altered, ended, passes, slower, with_row, with_telemetry

QUESTIONS = (
    "cases", "timer", "flush", "load", "clock", "repeatability", "steady", "converged", "contention", "telemetry",
)  # fmt: skip


def test_a_sound_device_answers_every_question_with_ok() -> None:
    verdict = judge(passes(), INFO)
    assert {finding.name: finding.status for finding in verdict.findings} == dict.fromkeys(QUESTIONS, Status.OK)
    assert verdict.repeatability is not None
    assert verdict.repeatability.in_cycles


def test_every_finding_says_one_sentence_with_figures() -> None:
    for finding in judge(passes(), INFO).findings:
        assert finding.says
        assert "\n" not in finding.says
        assert "None" not in finding.says
        if finding.name != "telemetry":  # which has only what is missing
            assert finding.figures


def test_a_device_that_reads_nothing_passes_no_question_about_readings() -> None:
    dark = NoTelemetry(TELEMETRY_OFF).stop()
    blind = altered(passes(), lambda taken: with_telemetry(with_row(taken, clock_hz=None, power_w=None, contended=None), dark))
    verdict = judge(blind, replace(INFO, power_limit_w=None))
    found = {finding.name: finding for finding in verdict.findings}
    unasked = {"clock", "contention", "telemetry"}
    for name in unasked:
        assert found[name].status is Status.UNAVAILABLE
        assert "measure.telemetry is off" in found[name].says
    for name in ("flush", "repeatability"):
        assert found[name].status is Status.UNAVAILABLE
        assert found[name].says.endswith("what is said of contention has why, and what to do")
    assert verdict.repeatability is None
    ok = {name for name, finding in found.items() if finding.status is Status.OK}
    assert ok == set(QUESTIONS) - unasked - {"flush", "repeatability"}


def test_where_nothing_was_timed_nothing_passes() -> None:
    lost = altered(passes(), lambda taken: ended(taken, "crashed", "signal 9"))
    for nothing in (lost, Passes()):
        verdict = judge(nothing, INFO)
        statuses = {finding.name: finding.status for finding in verdict.findings}
        assert statuses.pop("cases") is Status.FAIL
        assert set(statuses.values()) == {Status.UNAVAILABLE}
        assert verdict.repeatability is None


def test_a_case_that_ended_badly_fails_with_its_reason() -> None:
    spoilt = altered(passes(), lambda taken: ended(taken, "impossible", "1800 TFLOP/s is above the limit"), ["again"], "8192")
    (cases,) = (finding for finding in judge(spoilt, INFO).findings if finding.name == "cases")
    assert cases.status is Status.FAIL
    assert "impossible, 1800 TFLOP/s is above the limit" in cases.says
    assert cases.figures["impossible"] == 4


def test_a_case_that_the_device_refuses_is_a_warning() -> None:
    refused = altered(passes(), lambda taken: ended(taken, "unsupported", "no fp8 unit"), only="16x3840x3840 fp8")
    (cases,) = (finding for finding in judge(refused, INFO).findings if finding.name == "cases")
    assert cases.status is Status.WARN
    assert "unsupported, no fp8 unit" in cases.says


def test_a_warning_says_what_is_not_read_and_why() -> None:
    missing = Channel("J", (), (), "no such counter on this board")

    def without_energy(channels: dict[str, Channel]) -> dict[str, Channel]:
        return {**channels, "energy": missing, "power": missing}

    dim = altered(passes(), lambda taken: with_telemetry(taken, without_energy(dict(taken.measurement.telemetry))))
    (telemetry,) = (finding for finding in judge(dim, INFO).findings if finding.name == "telemetry")
    assert telemetry.status is Status.WARN
    assert telemetry.says == "not read: power and energy (no such counter on this board)"
    assert telemetry.figures == dict.fromkeys(("power", "energy"), "no such counter on this board")


def test_what_only_some_devices_have_is_named_and_no_warning() -> None:
    missing = Channel("C", (), (), "no such sensor")
    dim = altered(
        passes(), lambda taken: with_telemetry(taken, {**taken.measurement.telemetry, "hotspot_temperature": missing})
    )
    (telemetry,) = (finding for finding in judge(dim, INFO).findings if finding.name == "telemetry")
    assert telemetry.status is Status.OK
    assert telemetry.says == "not read: hotspot temperature (no such sensor)"


def test_a_channel_that_one_window_was_long_enough_for_is_read() -> None:
    short = Channel("J", (), (), "the window of 0.2 s is too short")
    dim = altered(
        passes(),
        lambda taken: with_telemetry(taken, {**taken.measurement.telemetry, "energy": short}),
        ["first", "doubled", "again"],
    )
    (telemetry,) = (finding for finding in judge(dim, INFO).findings if finding.name == "telemetry")
    assert telemetry.status is Status.OK


def test_cases_without_a_measurement_are_no_obstacle() -> None:
    """A case that crashed has no samples and no telemetry; the others are judged all the same."""
    lost = altered(
        passes(), lambda taken: taken._replace(row=taken.row, measurement=Measurement(Outcome.CRASHED)), ["doubled"], "4096"
    )
    assert {finding.name for finding in judge(lost, INFO).findings} == set(QUESTIONS)


def test_contended_is_said_wherever_it_explains() -> None:
    busy = altered(
        passes(), lambda taken: slower(with_row(taken, contended=True, steady=False, converged=False), 1.2), ["again"]
    )
    found = {finding.name: finding.says for finding in judge(busy, INFO).findings}
    for name in ("repeatability", "steady", "converged"):
        assert "beside other work" in found[name], name


def test_a_flush_is_judged_by_the_noise_of_what_no_other_work_disturbed() -> None:
    """Too little for the device's repeatability, and still how far those cases differ anyway: 5 %, as with twice the flush."""
    wild = altered(passes(), lambda taken: slower(taken, 1.05), ["again"])
    wild = altered(wild, lambda taken: slower(taken, 1.10), ["doubled"])
    busy = altered(wild, lambda taken: with_row(taken, contended=True), only="4096")
    busy = altered(busy, lambda taken: with_row(taken, contended=True), only="8192")
    verdict = judge(busy, INFO)
    (flush,) = (finding for finding in verdict.findings if finding.name == "flush")
    assert verdict.repeatability is None
    assert flush.status is not Status.FAIL, flush.says
