"""A case for which no time was measured has no rate: ``inf, inf, 0`` came from no iterations at all (hipBLASLt#1786)."""

from suite.launcher.examine import examined
from suite.measurement import Measurement, SampleSet
from suite.outcome import Outcome


def test_a_backend_that_took_no_sample_has_measured_nothing() -> None:
    nothing = Measurement(Outcome.OK, samples=SampleSet((), 1, "host", 1e-9, 0, 0, 0), converged=True)
    ended = examined(nothing)
    assert (ended.outcome, ended.samples) == (Outcome.ERROR, None)
    assert ended.reason == "the backend's measurement cannot be used: it has no samples"


def test_a_sample_of_no_launch_is_no_time_of_one() -> None:
    empty = Measurement(Outcome.OK, samples=SampleSet((5, 5), 0, "host", 1e-9, 2, 10, 5), converged=True)
    ended = examined(empty)
    assert (ended.outcome, ended.samples) == (Outcome.ERROR, None)
    assert "launches of its samples is 0" in ended.reason
