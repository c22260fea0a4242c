"""Reading nvbench's results, and letting it take turns: against a stand-in with the calls of cuda-bench 0.3.0.

``data/nvbench_0.1.0_gv100_simple.json`` is one benchmark of the results that nvbench's own scripts are tested with;
``data/cuda_bench_0.3.0_skipped.json`` was written by the package itself on a machine without a device.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from suite.case import Case
from tests.patience import PATIENCE_S
from tests.peers import nvbench
from tests.peers.child import PeerFailed
from tests.peers.stand_in.device import gemm_case

DATA = Path(__file__).parent / "data"
STAND_IN = Path(__file__).parent / "stand_in"
ROOT = Path(__file__).parent.parent.parent
FAKE = "tests.fake.backend:FakeBackend"


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stand-in where children find it, with what it is told."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{STAND_IN}")
    return lambda **told: monkeypatch.setenv("NVBENCH_STAND_IN", json.dumps(told))


@pytest.fixture
def cases() -> list[Case]:
    return [gemm_case(side) for side in (16, 32, 64)]


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATA / name).read_text())
    return content


def test_times_counts_and_walltimes_are_read_from_strings() -> None:
    first, _second = nvbench.parse(read("nvbench_0.1.0_gv100_simple.json"))
    assert first.cold_samples == 499
    assert first.cold_mean_s == pytest.approx(1.0034715849794225e-3)
    assert first.batch_mean_s == pytest.approx(1.001475909284053e-3)
    assert (first.cold_wall_s, first.batch_wall_s) == (pytest.approx(0.51435071), pytest.approx(0.524782268))
    assert first.sampling_s == pytest.approx(0.51435071 + 0.524782268)
    assert first.cold_median_s is None, "this version reported no median"


def test_a_skipped_state_says_why_and_has_no_figures() -> None:
    failed, unasked = nvbench.parse(read("cuda_bench_0.3.0_skipped.json"))
    assert failed.skipped.startswith("Unexpected error: RuntimeError")
    assert "\n" not in failed.skipped
    assert (unasked.case_index, unasked.skipped) == (3, "no longer asked for")
    assert failed.sampling_s is None


def test_results_of_another_version_or_shape_are_refused() -> None:
    newer = read("nvbench_0.1.0_gv100_simple.json")
    newer["meta"]["version"]["json"]["major"] = 2
    with pytest.raises(PeerFailed, match="version 2"):
        nvbench.parse(newer)
    for path in (("meta",), ("benchmarks",)):
        broken = copy.deepcopy(read("nvbench_0.1.0_gv100_simple.json"))
        broken[path[0]] = []
        with pytest.raises(PeerFailed, match="cannot be read"):
            nvbench.parse(broken)


def test_it_is_absent_where_there_is_no_package_or_no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not backend cpu" in nvbench.why_absent("cpu")
    monkeypatch.setattr(nvbench, "find_spec", lambda name: None)
    assert "cuda-bench is not installed" in nvbench.why_absent("cuda")
    monkeypatch.setattr(nvbench, "find_spec", _no_parent)
    assert "cuda-bench is not installed" in nvbench.why_absent("cuda")
    monkeypatch.setattr(nvbench, "find_spec", lambda name: object())
    assert nvbench.why_absent("cuda") == ""


def _no_parent(name: str) -> None:
    raise ModuleNotFoundError(name)


def test_cases_are_measured_in_turn_and_those_without_a_turn_are_skipped(plant: Any, cases: list[Case]) -> None:
    plant(mean_s=2e-3, wall_s=0.4, fail=[1])
    with nvbench.started(cases, FAKE, options=("--timeout", "3")) as peer:
        peer.get_ready(PATIENCE_S)
        peer.take_turn(PATIENCE_S)
        peer.take_turn(PATIENCE_S)
        states, content = peer.results(PATIENCE_S)
    assert [state.case_index for state in states] == [0, 1, 2]
    assert (states[0].batch_mean_s, states[0].sampling_s, states[0].cold_samples) == (2e-3, pytest.approx(0.8), 3)
    assert "planted" in states[1].skipped, "what fails is the reason of its own state"
    assert states[2].skipped == "no longer asked for"
    argv = content["meta"]["argv"]
    assert argv[argv.index("--devices") + 1] == "0"
    assert argv[-2:] == ["--timeout", "3"]


def test_a_process_that_ends_without_results_is_one_line(plant: Any, cases: list[Case]) -> None:
    plant(exit=3)
    with nvbench.started(cases[:1], FAKE) as peer:
        peer.take_turn(PATIENCE_S)
        with pytest.raises(PeerFailed, match="nvbench ended with status 3"):
            peer.results(PATIENCE_S)
