"""Reading a machine from its files: limits of containers, caches, cores and whose processes run."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from backends.host import cgroup, cpuinfo
from backends.host.processes import ForeignLoad, run_family


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_version_2_limits_hold_all_the_way_up(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/kubepods/pod1/box\n")
    group = tmp_path / "sys/fs/cgroup"
    write(group / "kubepods/pod1/box/memory.max", "max\n")
    write(group / "kubepods/pod1/memory.max", str(8 << 30))
    write(group / "kubepods/pod1/memory.current", str(3 << 30))
    write(group / "kubepods/pod1/memory.stat", f"anon 5\ninactive_file {1 << 30}\n")
    write(group / "kubepods/memory.max", str(64 << 30))
    write(group / "kubepods/pod1/box/cpu.max", "250000 100000\n")
    write(group / "kubepods/cpu.max", "max 100000\n")
    assert cgroup.memory_limit_bytes(tmp_path) == 8 << 30
    assert cgroup.memory_left_bytes(tmp_path) == 6 << 30
    assert cgroup.cpu_quota(tmp_path) == 2.5


def test_version_1_limits(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n")
    write(tmp_path / "sys/fs/cgroup/memory/box/memory.limit_in_bytes", str(2 << 30))
    write(tmp_path / "sys/fs/cgroup/memory/box/memory.usage_in_bytes", str(1 << 30))
    write(tmp_path / "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "150000\n")
    write(tmp_path / "sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n")
    assert cgroup.memory_limit_bytes(tmp_path) == 2 << 30
    assert cgroup.memory_left_bytes(tmp_path) == 1 << 30
    assert cgroup.cpu_quota(tmp_path) == 1.5


def test_a_container_that_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    write(tmp_path / "sys/fs/cgroup/memory.max", str(1 << 30))
    assert cgroup.memory_limit_bytes(tmp_path) == 1 << 30


def test_no_limits(tmp_path: Path) -> None:
    assert cgroup.memory_limit_bytes(tmp_path) is None
    write(tmp_path / "proc/self/cgroup", "4:cpu:/box\n")
    write(tmp_path / "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n")
    assert cgroup.cpu_quota(tmp_path) is None


CPUINFO = """processor\t: {cpu}
model name\t: Imaginary 9000
cpu MHz\t\t: 2596.{cpu}
flags\t\t: fpu sse4_2 avx2 fma avx512f amx_bf16 smep{guest}

"""


@pytest.fixture
def two_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four cores of two threads each on two sockets, every socket with a cache of its own."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    write(tmp_path / "proc/cpuinfo", "".join(CPUINFO.format(cpu=cpu, guest="") for cpu in range(8)))
    for cpu in range(8):
        core, socket = cpu % 4, cpu % 4 // 2
        base = tmp_path / f"sys/devices/system/cpu/cpu{cpu}"
        write(base / "topology/physical_package_id", f"{socket}\n")
        write(base / "topology/core_id", f"{core % 2}\n")
        for index, kind, level, size, shared in (
            (0, "Data", 1, "48K", f"{core},{core + 4}"),
            (1, "Instruction", 1, "32K", f"{core},{core + 4}"),
            (2, "Unified", 2, "2048K", f"{core},{core + 4}"),
            (3, "Unified", 3, "32M", "0-1,4-5" if socket == 0 else "2-3,6-7"),
        ):
            cache = base / f"cache/index{index}"
            write(cache / "type", kind + "\n")
            write(cache / "level", f"{level}\n")
            write(cache / "size", size + "\n")
            write(cache / "shared_cpu_list", shared + "\n")
    return tmp_path


def test_cores_sockets_and_caches_are_counted_once(two_sockets: Path) -> None:
    cpu = cpuinfo.processors(two_sockets)
    assert (cpu.name, cpu.cores, cpu.sockets) == ("Imaginary 9000", 4, 2)
    assert (cpu.llc_bytes, cpu.llc_instances) == (64 << 20, 2)
    assert {"avx2", "fma", "avx512f", "amx_bf16"} <= set(cpu.isa)
    assert "fpu" not in cpu.isa
    assert not cpu.guest


def test_only_what_this_process_may_use(two_sockets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 4, 1})
    cpu = cpuinfo.processors(two_sockets)
    assert (cpu.cores, cpu.sockets, cpu.llc_bytes) == (2, 1, 32 << 20)


@pytest.mark.parametrize(("quota", "cores"), [("250000", 2), ("50000", 1), ("9900000", 4), ("max", 4)])
def test_a_quota_takes_cores_away(two_sockets: Path, quota: str, cores: int) -> None:
    write(two_sockets / "proc/self/cgroup", "0::/\n")
    write(two_sockets / "sys/fs/cgroup/cpu.max", f"{quota} 100000\n")
    assert cpuinfo.processors(two_sockets).cores == cores


def test_a_clock_says_where_it_is_from(two_sockets: Path) -> None:
    nominal = cpuinfo.processors(two_sockets).max_clock
    assert nominal.hz == pytest.approx(2596.7e6)
    assert "nominal" in nominal.source
    for cpu, khz in ((0, 3_700_000), (1, 3_500_000)):
        write(two_sockets / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq", f"{khz}\n")
    assert cpuinfo.processors(two_sockets).max_clock == (3.7e9, "cpufreq cpuinfo_max_freq")


def test_a_guest_and_a_machine_that_tells_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    write(tmp_path / "proc/cpuinfo", CPUINFO.format(cpu=0, guest=" hypervisor") + CPUINFO.format(cpu=1, guest=" hypervisor"))
    cpu = cpuinfo.processors(tmp_path)
    assert cpu.guest
    assert (cpu.cores, cpu.llc_bytes) == (2, None)


def test_an_arm_part_without_a_model_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    write(
        tmp_path / "proc/cpuinfo",
        "processor\t: 0\nFeatures\t: fp asimd fphp asimdhp sve i8mm bf16\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n",
    )
    cpu = cpuinfo.processors(tmp_path)
    assert cpu.name.endswith("0x41 0xd4f")
    assert {"asimdhp", "sve", "i8mm", "bf16", "fphp"} <= set(cpu.isa)


def test_the_uid_recognises_a_machine_and_hides_its_id(tmp_path: Path) -> None:
    write(tmp_path / "etc/machine-id", "0123456789abcdef\n")
    one, again, other = (cpuinfo.machine_uid(name, 8, tmp_path) for name in ("A", "A", "B"))
    assert one == again != other
    assert cpuinfo.machine_uid("A", 4, tmp_path) != one  # half the cores have other roofs
    assert "0123" not in one
    write(tmp_path / "etc/machine-id", "fedcba9876543210\n")
    assert cpuinfo.machine_uid("A", 8, tmp_path) != one


def stat(pid: int, parent: int, ticks: int, name: str = "x") -> str:
    fields = ["0"] * 40
    fields[0], fields[1], fields[11] = "S", str(parent), str(ticks)
    return f"{pid} ({name}) {' '.join(fields)}\n"


def test_the_family_is_the_starter_and_all_it_started(tmp_path: Path) -> None:
    own = os.getpid()
    table = {
        own: stat(own, 50, 0),
        50: stat(50, 40, 0, "python (run)"),
        51: stat(51, 50, 0),
        52: stat(52, 51, 0, "a) b (c"),
        40: stat(40, 1, 0),
        60: stat(60, 40, 0),
    }
    for pid, text in table.items():
        write(tmp_path / f"proc/{pid}/stat", text)
    assert run_family(tmp_path) == {own, 50, 51, 52}


def test_the_family_of_ranks_that_a_launcher_started_is_all_it_started_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFBENCH_RANKS", "[]")
    own = os.getpid()
    for pid, parent in ((own, 50), (50, 40), (51, 40), (52, 51), (40, 30), (30, 1), (60, 30)):
        write(tmp_path / f"proc/{pid}/stat", stat(pid, parent, 0))
    assert run_family(tmp_path) == {own, 50, 51, 52, 40}


def test_an_orphan_does_not_claim_every_child_of_the_first_process(tmp_path: Path) -> None:
    own = os.getpid()
    for pid, parent in ((own, 1), (60, 1), (61, own)):
        write(tmp_path / f"proc/{pid}/stat", stat(pid, parent, 0))
    assert run_family(tmp_path) == {own, 61}


class World(NamedTuple):
    """Files of a machine, and a function that moves its clock and its tick counts."""

    root: Path
    at: Callable[..., None]


class TestForeignLoad:
    """By a scripted clock and tick counts of 100 a second."""

    @pytest.fixture
    def world(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
        now = [100.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        monkeypatch.setattr(os, "sysconf", lambda name: 100)

        def at(seconds: float, busy: tuple[int, int, int], own: int, steal: int = 0) -> None:
            now[0] = 100.0 + seconds
            lines = [f"cpu{index} {user} 0 0 7 9 0 0 {steal} 3 0\n" for index, user in enumerate(busy)]
            write(tmp_path / "proc/stat", "cpu 1 1 1 1 1 1 1 1 1 1\n" + "".join(lines) + "intr 5\n")
            write(tmp_path / f"proc/{os.getpid()}/stat", stat(os.getpid(), 1, own))

        at(0.0, (0, 0, 0), 0)
        return World(tmp_path, at)

    def test_all_work_of_its_own(self, world: World) -> None:
        root, at = world
        load = ForeignLoad({0, 1}, 2, 2, root)
        load.start()
        at(1.0, (100, 100, 100), 200)
        assert load.cpus_used() == 0.0
        assert load.processes() == 0

    def test_another_process_takes_a_core(self, world: World) -> None:
        root, at = world
        load = ForeignLoad({0, 1}, 2, 2, root)
        load.start()
        at(2.0, (200, 200, 200), 200)
        assert load.cpus_used() == pytest.approx(1.0)
        assert load.processes() == 1

    def test_time_stolen_by_the_hypervisor_counts(self, world: World) -> None:
        root, at = world
        load = ForeignLoad({0, 1}, 2, 2, root)
        load.start()
        at(1.0, (50, 50, 0), 100, steal=40)
        assert load.processes() == 1

    def test_work_that_finds_a_free_core_takes_nothing(self, world: World) -> None:
        root, at = world
        load = ForeignLoad({0, 1}, 2, 1, root)
        load.start()
        at(1.0, (100, 90, 0), 100)
        assert load.cpus_used() == pytest.approx(0.9)
        assert load.processes() == 0

    def test_too_soon_to_tell(self, world: World) -> None:
        root, at = world
        load = ForeignLoad({0, 1}, 2, 2, root)
        assert load.processes() is None
        load.start()
        at(0.19, (19, 19, 0), 0)
        assert load.processes() is None
        at(0.2, (20, 20, 0), 0)
        assert load.processes() == 2

    def test_short_windows_with_idle_times_between_are_one_stretch(self, world: World) -> None:
        """A burst: five windows of 20 ms, a second apart.  The last alone tells nothing, all of them do."""
        root, at = world
        load = ForeignLoad({0, 1}, 2, 2, root)
        for index in range(5):
            at(index, (100 * index, 0, 0), 0)
            load.start()
        at(4.02, (402, 0, 0), 0)
        assert load.processes() == 1


def test_a_real_busy_child_of_this_process_is_family() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)"])
    try:
        time.sleep(0.05)
        assert {os.getpid(), child.pid} <= run_family()
    finally:
        child.kill()
        child.wait()
