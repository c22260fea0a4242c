"""System facts from a described machine; nothing in them says who or where."""

import getpass
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.backend import Fact
from suite.environment import VARIABLES, source_state, system_facts, without_identity

CPUINFO = """\
processor : 0
model name : Example 9000
microcode : 0x2b
flags : fpu avx2 hypervisor

processor : 1
model name : Example 9000
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A two-socket guest in a version 2 control group with 8 GiB and two CPUs."""
    root = tmp_path / "machine"
    files = {
        "proc/cpuinfo": CPUINFO,
        "proc/meminfo": "MemTotal:       16384 kB\nSwapTotal:          0 kB\n",
        "proc/sys/kernel/numa_balancing": "1\n",
        "proc/mounts": "/dev/root / ext4 rw 0 0\nserver:/export /nfs nfs4 rw 0 0\n",
        "proc/self/cgroup": "0::/user/job7\n",
        "sys/fs/cgroup/user/job7/memory.max": "8589934592\n",
        "sys/fs/cgroup/user/job7/cpu.max": "200000 100000\n",
        "sys/fs/cgroup/user/job7/cpuset.cpus.effective": "0-1\n",
        "sys/devices/system/node/node0/x": "",
        "sys/devices/system/node/node1/x": "",
        "sys/devices/system/cpu/cpu0/topology/physical_package_id": "0",
        "sys/devices/system/cpu/cpu0/topology/core_id": "0",
        "sys/devices/system/cpu/cpu1/topology/physical_package_id": "1",
        "sys/devices/system/cpu/cpu1/topology/core_id": "0",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3600000\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/class/dmi/id/sys_vendor": "QEMU\n",
        "sys/class/net/eth0/speed": "25000\n",
        "sys/class/net/lo/speed": "",
        "sys/class/infiniband/mlx5_0/x": "",
        "etc/os-release": 'NAME="Example"\nPRETTY_NAME="Example OS 1"\n',
        "run/.containerenv": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_machine_is_described_from_its_files(machine: Path) -> None:
    facts = system_facts(machine, {"ROOFBENCH_IMAGE": "roofbench:cuda13"})
    assert facts["cpu"]["model"] == Fact.measured("Example 9000")
    assert facts["cpu"]["sockets"] == Fact.measured(2)
    assert facts["cpu"]["cores"] == Fact.measured(2)
    assert facts["cpu"]["governor"] == Fact.measured("performance")
    assert facts["cpu"]["max_clock_khz"] == Fact.measured(3600000)
    assert facts["memory"]["total_bytes"] == Fact.measured(16384 * 1024)
    assert facts["memory"]["numa_nodes"] == Fact.measured(2)
    assert facts["memory"]["numa_balancing"] == Fact.measured(1)
    assert facts["memory"]["transparent_hugepages"] == Fact.measured("madvise")
    assert facts["storage"]["file_system"] == Fact.measured("ext4")
    assert facts["network"]["interfaces"] == Fact.measured("eth0 25000 Mbit/s")
    assert facts["network"]["rdma_adapters"] == Fact.measured("mlx5_0")
    assert facts["system"]["os"] == Fact.measured("Example OS 1")
    assert facts["system"]["virtualisation"] == Fact.measured("QEMU")
    assert facts["container"]["kind"] == Fact.measured("podman")
    assert facts["container"]["image"] == Fact("roofbench:cuda13", "declared")
    assert facts["container"]["memory_limit_bytes"] == Fact.measured(8589934592)
    assert facts["container"]["cpu_limit"] == Fact.measured("200000 100000")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("sys/fs/cgroup/memory.max", "max\n"),
        ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n"),
    ],
)
def test_no_limit_is_said_not_shown_as_a_number(tmp_path: Path, path: str, text: str) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/job\n0::/\n")
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    assert system_facts(tmp_path, {})["container"]["memory_limit_bytes"] == Fact.measured("no limit")


def test_what_is_not_there_is_unavailable_with_a_reason(tmp_path: Path) -> None:
    facts = system_facts(tmp_path / "nothing", {})
    missing = [fact for section in facts.values() for fact in section.values() if fact.value is None]
    assert len(missing) > 20
    assert all(fact.status == "unavailable" and fact.reason for fact in missing)


def test_without_cpufreq_nothing_is_said_of_its_driver(tmp_path: Path, machine: Path) -> None:
    cpu = system_facts(tmp_path / "nothing", {})["cpu"]
    assert cpu["boost"].reason == cpu["governor"].reason == "no cpufreq: a virtual machine, or a fixed clock"
    (machine / "sys/devices/system/cpu/cpufreq/boost").unlink(missing_ok=True)
    assert system_facts(machine, {})["cpu"]["boost"].reason == "not offered by the cpufreq driver"


def test_every_fact_of_this_machine_is_json_and_says_nothing_of_who_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={Path.home()}/dump --other=/home/somebody/x")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth0")
    monkeypatch.setenv("NCCL_COMM_ID", "10.1.2.3:4567")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefgh")
    facts = system_facts()
    text = json.dumps({section: {name: list(fact) for name, fact in named.items()} for section, named in facts.items()})
    assert facts["variables"]["OMP_NUM_THREADS"] == Fact.measured("2")
    assert facts["variables"]["XLA_FLAGS"] == Fact.measured("--xla_dump_to=~/dump --other=~/x")
    for private in ("hf_abcdefgh", "10.1.2.3", "somebody", f"/{getpass.getuser()}/", str(Path.cwd())):
        assert private not in text
    assert socket.gethostname() not in text.replace(str(facts["system"]["kernel"].value), "")
    assert all(fact.status in ("measured", "declared", "unavailable") for named in facts.values() for fact in named.values())


def test_only_listed_variables_are_kept() -> None:
    variables = {"AWS_SECRET_ACCESS_KEY": "x", "PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0", "NCCL_ALGO": "Ring"}
    assert set(system_facts(variables=variables)["variables"]) == {"CUDA_VISIBLE_DEVICES", "NCCL_ALGO"}
    assert {"MKL_CBWR", "GOMP_CPU_AFFINITY", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_HW_SUBSET"} <= set(VARIABLES)
    assert {"MKL_THREADING_LAYER", "MKL_DOMAIN_NUM_THREADS", "LD_PRELOAD", "GLIBC_TUNABLES"} <= set(VARIABLES)
    assert {"TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "DISABLE_ADDMM_CUDA_LT", "CXX"} <= set(VARIABLES)
    of_inductor = ("MAX_AUTOTUNE", "MAX_AUTOTUNE_GEMM_BACKENDS", "FREEZING", "CPP_WRAPPER")
    assert {f"TORCHINDUCTOR_{name}" for name in of_inductor} <= set(VARIABLES)
    assert len(set(VARIABLES)) == len(VARIABLES)
    assert not {"NCCL_COMM_ID", "NCCL_HOSTID", "PATH", "HOME", "USER", "HOSTNAME"} & set(VARIABLES)


@pytest.mark.parametrize(
    "value",
    ["--token=abc", "https://user:pw@host/x", "my_api_key=1", "PASSWORD=1", "-----BEGIN RSA PRIVATE KEY-----", "Bearer abc"],
)
def test_a_listed_variable_that_looks_like_a_secret_is_left_out(value: str) -> None:
    fact = system_facts(variables={"XLA_FLAGS": value})["variables"]["XLA_FLAGS"]
    assert fact.value is None
    assert "secret" in fact.reason


@given(st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8), st.ip_addresses(v=4))
def test_homes_and_addresses_never_survive(user: str, address: object) -> None:
    text = without_identity(f"--a=/home/{user}/x:{address}:5 /Users/{user} /root/y")
    assert str(address) not in text
    assert "/home/" not in text
    assert "/Users/" not in text
    assert "/root" not in text


def test_versions_are_read_without_importing(tmp_path: Path) -> None:
    script = "import sys; from suite.environment import system_facts; system_facts(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_source_is_named_by_commit_and_whether_it_was_changed(tmp_path: Path) -> None:
    assert source_state(tmp_path) == (None, None, "not running from a git checkout")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    (tmp_path / "file").write_text("1")
    for arguments in (["init", "-q"], ["add", "file"], ["commit", "-qm", "one"]):
        subprocess.run(
            [*git, *arguments], check=True, capture_output=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
        )
    clean = source_state(tmp_path)
    assert (len(clean.commit or ""), clean.dirty) == (40, False)
    (tmp_path / "store.db").write_text("results lie beside the source")
    assert source_state(tmp_path).dirty is False
    (tmp_path / "file").write_text("2")
    assert source_state(tmp_path) == (clean.commit, True, "")


def test_a_checkout_without_git_is_unavailable_not_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    state = source_state(tmp_path)
    assert (state.commit, state.dirty) == (None, None)
    assert "git" in state.reason
