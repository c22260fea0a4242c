"""Reading Nsight Compute's tables, picking launches by their place, and what its failures become."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.case import Case
from tests.patience import PATIENCE_S
from tests.peers import ncu
from tests.peers.child import PeerFailed
from tests.peers.ncu import Launch, Reading
from tests.peers.ncu_target import WARM_UP, launch_all
from tests.peers.stand_in.device import gemm_case

STAND_IN = Path(__file__).parent / "stand_in" / "ncu.py"

# The layout of ncu 2025's --page raw: messages, names, units, then a line a launch; thousands are grouped.
RAW = """\
==PROF== Connected to process 4242 (/usr/bin/python3.12)
==PROF== Profiling "spin_kernel": 0%....50%....100% - 1 pass
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"gpu__time_duration.sum","sm__cycles_elapsed.max"
"","","","","","","","","","","","ns","cycle"
"0","4242","python3.12","127.0.0.1","_Z11spin_kernell","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","1,184","1,702"
"1","4242","python3.12","127.0.0.1","nvjet_hsh_256x128","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0","1,357,216","2,234,374"
==PROF== Disconnected from process 4242
"""

# The details page has a line for each metric of a launch.
DETAILS = """\
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value"
"0","4242","python3.12","127.0.0.1","k","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0","Command line profiler metrics",\
"gpu__time_duration.sum","us","1,357.22"
"0","4242","python3.12","127.0.0.1","k","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0","Command line profiler metrics",\
"sm__cycles_elapsed.max","cycle","2,234,374"
"""

MARKER = Launch("_Z11spin_kernell", 1700, 1.2e-6, True)


def kernel(cycles: float, name: str = "gemm") -> Launch:
    return Launch(name, cycles, cycles * 1e-9, False)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A copy of the stand-in in a folder of its own, beside which a plant can be laid."""
    path = tmp_path / "ncu"
    path.write_text(STAND_IN.read_text())
    path.chmod(0o755)
    return path


@pytest.fixture
def cases() -> list[Case]:
    return [gemm_case(side) for side in (16, 32)]


def test_metrics_that_are_columns_are_read_in_base_units() -> None:
    marker, launch = ncu.parse(RAW)
    assert launch == Launch("nvjet_hsh_256x128", 2234374, pytest.approx(1357.216e-6), False)
    assert marker.is_marker


def test_metrics_that_are_lines_are_joined_by_launch_and_their_units_scaled() -> None:
    (launch,) = ncu.parse(DETAILS)
    assert launch == Launch("k", 2234374, pytest.approx(1357.22e-6), False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no table"),
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "ERR_NVGPUCTRPERM"),
        ("\n".join(RAW.splitlines()[:4]), "no launch"),
        (RAW.replace('"1,357,216"', '"n/a"'), "launch 1 cannot be read"),
        (RAW.replace('"ns"', '"fortnight"'), "launch 0 cannot be read"),
    ],
)
def test_what_is_no_table_of_launches_is_refused(text: str, says: str) -> None:
    with pytest.raises(PeerFailed, match=says):
        ncu.parse(text)


def test_a_case_is_what_lies_between_its_marker_and_the_next_whatever_it_is_called() -> None:
    launches = [kernel(7, "stray"), MARKER, *map(kernel, (9, 5, 5, 6)), MARKER, *(kernel(c, "other") for c in (1, 2, 2, 2))]
    first, second = ncu.readings(launches, 2, calls=4)
    assert (first.cycles, first.kernels, first.calls) == (5, ("gemm",), 3)
    assert (second.cycles, second.kernels) == (2, ("other",))


def test_a_call_of_several_kernels_is_their_sum_and_the_first_call_is_dropped() -> None:
    group = [kernel(100, "split"), kernel(50, "reduce"), kernel(10, "split"), kernel(1, "reduce")]
    (reading,) = ncu.readings([MARKER, *group], 1, calls=2)
    assert reading == Reading(11, pytest.approx(11e-9), ("split", "reduce"), 1)


@pytest.mark.parametrize("launches", [[MARKER, *map(kernel, (1, 2, 3))], [MARKER], [kernel(1), kernel(2)]])
def test_launches_that_cannot_be_shared_out_are_refused(launches: list[Launch]) -> None:
    with pytest.raises(PeerFailed):
        ncu.readings(launches, 1, calls=2)


@pytest.mark.parametrize(("cache", "control"), [("warm", "none"), ("cold", "all")])
def test_clocks_are_left_alone_and_the_cache_is_as_the_regime_says(cache: str, control: str) -> None:
    argv = ncu.command("ncu", cache, Path("log"), Path("cases"), "cuda")
    assert argv[argv.index("--clock-control") + 1] == "none"
    assert argv[argv.index("--cache-control") + 1] == control
    assert "--kernel-name" not in argv


def test_a_profile_goes_through_the_command_and_comes_back_in_order(planted: Path, cases: list[Case]) -> None:
    (planted.parent / "plant.json").write_text(json.dumps({"cycles": 3000, "duration_ns": 2500}))
    readings, text = ncu.profile(str(planted), "warm", cases, "cuda", limit_s=PATIENCE_S)
    assert [(reading.cycles, reading.duration_s) for reading in readings] == [(3000, pytest.approx(2.5e-6))] * 2
    assert text.startswith("==PROF==")


def test_a_profile_that_fails_says_so_in_one_line(planted: Path, cases: list[Case]) -> None:
    (planted.parent / "plant.json").write_text('{"status": 9}')
    with pytest.raises(PeerFailed, match="ncu ended with status 9: ==ERROR== planted"):
        ncu.profile(str(planted), "cold", cases, "cuda", limit_s=PATIENCE_S)
    with pytest.raises(PeerFailed, match="ncu cannot be started: No such file"):
        ncu.profile("/nowhere/ncu", "cold", cases, "cuda", limit_s=PATIENCE_S)


def test_the_target_launches_nothing_but_markers_and_calls_while_it_is_profiled() -> None:
    seen: list[str] = []
    note: Any = lambda word: lambda *_: seen.append(word)  # noqa: E731
    cuda = SimpleNamespace(
        synchronize=note("wait"), _sleep=note("marker"), profiler=SimpleNamespace(start=note("start"), stop=note("stop"))
    )
    kernels: Any = [SimpleNamespace(enqueue=note(name)) for name in "ab"]
    launch_all(kernels, 3, cuda)
    assert seen[: 2 * WARM_UP + 2] == [*"aabb", "wait", "start"]
    assert seen[2 * WARM_UP + 2 :] == ["marker", *"aaa", "marker", *"bbb", "wait", "stop"]
