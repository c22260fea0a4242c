"""Threads of OpenMP that share processors, in processes of their own: OpenMP reads its variables when it is loaded."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from backends.cpu import CpuBackend
from backends.host import cpuinfo
from backends.host.openmp import BINDING, cores_at_work, refuse_crowded
from suite.environment import VARIABLES
from suite.errors import UsageError

PROCESSORS = sorted(cpuinfo.processors().cpus)
SELECT = "from backends.cpu import CpuBackend; CpuBackend({'threads': %d}).select(0); print('selected')"
needs_two = pytest.mark.skipif(cpuinfo.processors().cores < 2, reason="one core has nothing to share")


def selected(threads: int, **variables: str) -> str:
    """What is said when the CPU is selected: an error's last line, or ``selected``."""
    clean = {name: value for name, value in os.environ.items() if name not in BINDING and not name.startswith("OMP_")}
    done = subprocess.run(
        [sys.executable, "-c", SELECT % threads],
        env={**clean, **variables},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).strip().splitlines()[-1]


@needs_two
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GOMP_CPU_AFFINITY", str(PROCESSORS[0])),
        pytest.param("OMP_PLACES", f"{{{PROCESSORS[-1]}}}", marks=pytest.mark.thorough),
        pytest.param("OMP_PROC_BIND", "master", marks=pytest.mark.thorough),
    ],
)
def test_threads_that_are_bound_to_one_processor_are_refused(name: str, value: str) -> None:
    told = selected(2, **{name: value})
    assert told.startswith("suite.errors.UsageError: ")
    assert f"with {name}={value} OpenMP leaves 1 core to the 2 threads" in told
    assert told.endswith("backends.cpu.options.threads=1")
    assert selected(1, **{name: value}) == "selected"


@needs_two
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"GOMP_CPU_AFFINITY": " ".join(map(str, PROCESSORS))},
        pytest.param({"OMP_PROC_BIND": "spread", "OMP_PLACES": "threads"}, marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_threads_with_a_processor_each_are_taken(variables: dict[str, str]) -> None:
    assert selected(2, **variables) == "selected"


def test_more_threads_than_processors_are_refused() -> None:
    """They take turns, and nothing in a result tells."""
    most = cpuinfo.processors().most_threads
    assert f"threads={most + 1} is more than the " in selected(most + 1)


@needs_two
def test_only_this_thread_and_those_that_were_started_are_looked_at() -> None:
    """The threads that a test before this one left may run anywhere."""
    all_of_them = os.sched_getaffinity(0)
    one, stop = {PROCESSORS[0]}, threading.Event()
    os.sched_setaffinity(0, one)
    started: list[threading.Thread] = []

    def start() -> None:
        started.append(threading.Thread(target=stop.wait))
        started[0].start()

    try:
        assert cores_at_work(start) == 1
    finally:
        os.sched_setaffinity(0, all_of_them)
        stop.set()
        started[0].join()


def described(root: Path, cores: dict[int, tuple[int, int]]) -> Path:
    """A machine whose logical CPUs lie in these sockets and cores."""
    for cpu, (socket, core) in cores.items():
        topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{socket}\n")
        (topology / "core_id").write_text(f"{core}\n")
    return root


@pytest.mark.parametrize(("second", "cores"), [((0, 0), 1), ((0, 1), 2), ((1, 0), 2)])
@pytest.mark.skipif(len(PROCESSORS) < 2, reason="one processor has no sibling")
def test_siblings_of_one_core_are_one_core(tmp_path: Path, second: tuple[int, int], cores: int) -> None:
    all_of_them = os.sched_getaffinity(0)
    root = described(tmp_path, {PROCESSORS[0]: (0, 0), PROCESSORS[1]: second})
    stop = threading.Event()
    started = threading.Thread(target=stop.wait)
    os.sched_setaffinity(0, set(PROCESSORS[:2]))
    try:
        assert cores_at_work(started.start, root) == cores
    finally:
        os.sched_setaffinity(0, all_of_them)
        stop.set()
        started.join()


@pytest.mark.skipif(cpuinfo.processors().most_threads < 2, reason="one processor has no sibling")
@pytest.mark.parametrize("at_work", [1, None])
def test_a_thread_for_each_sibling_is_the_users_own_choice(monkeypatch: pytest.MonkeyPatch, at_work: int | None) -> None:
    """Of a machine whose CPUs are all of one core: nothing bound its threads to it."""
    monkeypatch.setattr(cpuinfo, "places", lambda *given: {cpuinfo.Place("0", "0")})
    monkeypatch.setattr("backends.cpu.cores_at_work", lambda work: at_work)
    before = torch.get_num_threads()
    try:
        assert CpuBackend({"threads": 2}).select(0)
    finally:
        torch.set_num_threads(before)


def test_a_system_that_does_not_say_refuses_nothing() -> None:
    refuse_crowded(8, None, {"GOMP_CPU_AFFINITY": "0"})
    refuse_crowded(8, 8, {"GOMP_CPU_AFFINITY": "0-7"})


def test_every_variable_that_is_set_is_named() -> None:
    variables = {"OMP_PLACES": "{0:2}", "OMP_PROC_BIND": "close", "PATH": "/bin"}
    with pytest.raises(UsageError, match=r"^with OMP_PLACES=\{0:2\} and OMP_PROC_BIND=close OpenMP leaves 2 cores to the 8"):
        refuse_crowded(8, 2, variables)
    with pytest.raises(UsageError, match=r"^OpenMP leaves 1 core to the 8 .* let more be used, or set .*threads=1$"):
        refuse_crowded(8, 1, {})


def test_what_binds_threads_is_recorded() -> None:
    assert set(BINDING) <= set(VARIABLES)
