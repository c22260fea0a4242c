"""A device number that means another chip than when the run was planned: the plan's peaks are not that chip's."""

from suite.launcher.happenings import CaseEnded
from suite.launcher.launch import Launcher
from suite.outcome import Outcome
from suite.settings import BackendSettings
from tests.processes.bench import TARGET, planned, quick, slots


def test_cases_planned_for_one_chip_are_not_measured_on_another() -> None:
    found = {"fake": BackendSettings("fake", TARGET, {"device": {"name": "NVIDIA A100-SXM4-80GB", "uid": "another"}})}
    with Launcher(slots({"device": {"name": "NVIDIA H100 NVL"}}), found, quick(), {}) as launcher:
        launcher.start()
        happenings = list(launcher.run([planned("8x8x8"), planned("9x8x8")], lambda _: 1, None))
    ended = [happening.measurement for happening in happenings if isinstance(happening, CaseEnded)]
    assert [each.outcome for each in ended] == [Outcome.ERROR] * 2
    for each in ended:
        assert each.samples is None
        assert (
            "fake device 0 is now NVIDIA A100-SXM4-80GB (another), not NVIDIA H100 NVL (simulated0) as planned" in each.reason
        )
