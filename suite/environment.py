"""The system that a run was made on, as facts that say how they are known.

No host name, user name, address or home path is recorded, and of the environment only the variables listed here.
Everything is read from files below ``root``, so that another machine's tree can be described in a test.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from suite.backend import Fact

Facts = dict[str, Fact]

PACKAGES = (
    "roofbench",
    "torch",
    "triton",
    "triton-rocm",
    "pytorch-triton-rocm",
    "jax",
    "jaxlib",
    "libtpu",
    "numpy",
    "nvidia-ml-py",
    "amdsmi",
    "nvidia-cublas-cu12",
    "nvidia-cublas",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "sqlalchemy",
)

# Variables that change what is measured.  NCCL_COMM_ID and NCCL_HOSTID are left out: they hold addresses and host names.
VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_MODULE_LOADING", "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "TORCH_CUBLASLT_UNIFIED_WORKSPACE",
    "NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY",
    "CUBLAS_EMULATION_SPECIAL_VALUES_SUPPORT_MASK", "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT",
    "CUBLASLT_HEURISTICS_LUT_FILE", "CUBLASLT_HEURISTICS_CACHE_CAPACITY",
    "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_MAX_HW_QUEUES",
    "HSA_OVERRIDE_GFX_VERSION", "HIPBLASLT_TENSILE_LIBPATH", "PYTORCH_TUNABLEOP_ENABLED", "PYTORCH_TUNABLEOP_TUNING",
    "PYTORCH_TUNABLEOP_RECORD_UNTUNED", "PYTORCH_TUNABLEOP_MAX_TUNING_DURATION_MS", "PYTORCH_TUNABLEOP_MAX_TUNING_ITERATIONS",
    "PYTORCH_TUNABLEOP_ROTATING_BUFFER_SIZE", "PYTORCH_TUNABLEOP_ICACHE_FLUSH_ENABLED", "PYTORCH_TUNABLEOP_ROCBLAS_ENABLED",
    "PYTORCH_TUNABLEOP_HIPBLASLT_ENABLED",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT", "TORCH_BLAS_PREFER_HIPBLASLT", "TORCHINDUCTOR_MAX_AUTOTUNE", "JAX_PLATFORMS",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS", "TORCHINDUCTOR_FREEZING", "TORCHINDUCTOR_CPP_WRAPPER", "TORCHDYNAMO_DISABLE",
    "TORCH_COMPILE_DISABLE", "DISABLE_ADDMM_CUDA_LT", "CXX",
    "JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION", "XLA_FLAGS", "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE", "LIBTPU_INIT_ARGS", "TPU_ACCELERATOR_TYPE", "OMP_NUM_THREADS", "OMP_PROC_BIND",
    "OMP_PLACES", "OMP_THREAD_LIMIT", "OMP_DYNAMIC", "OMP_WAIT_POLICY", "OMP_SCHEDULE", "OMP_MAX_ACTIVE_LEVELS", "OMP_NESTED",
    "GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT", "KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_HW_SUBSET", "KMP_LIBRARY",
    "MKL_DYNAMIC", "MKL_NUM_THREADS", "MKL_DOMAIN_NUM_THREADS", "MKL_THREADING_LAYER", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS",
    "MKL_DEBUG_CPU_TYPE", "MKL_VERBOSE", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_CPU_ISA_HINTS", "ONEDNN_VERBOSE",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE", "ATEN_CPU_CAPABILITY",
    "LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_", "MALLOC_PERTURB_", "MALLOC_CONF", "NCCL_ALGO", "NCCL_PROTO", "NCCL_DEBUG", "NCCL_IB_DISABLE",
    "NCCL_IB_HCA", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_SOCKET_IFNAME", "NCCL_NET",
    "NCCL_NET_GDR_LEVEL", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_BUFFSIZE", "NCCL_NVLS_ENABLE",
    "NCCL_CROSS_NIC", "NCCL_NTHREADS", "NCCL_TOPO_FILE", "NCCL_CUMEM_ENABLE", "RCCL_MSCCL_ENABLE", "RCCL_MSCCLPP_ENABLE",
    "RCCL_MSCCLPP_THRESHOLD", "ROCBLAS_USE_HIPBLASLT", "TORCH_ROCM_FA_PREFER_CK", "HIPBLASLT_ALLOW_TF32",
    "HIP_FORCE_DEV_KERNARG", "HSA_ENABLE_SDMA", "HSA_NO_SCRATCH_RECLAIM",
)  # fmt: skip
IMAGE_VARIABLE = "ROOFBENCH_IMAGE"
LEFT_OUT = "left out: it looks like a secret"

_SECRET = re.compile(r"(token|secret|passw|credential|api[_-]?key|bearer |-----begin|://[^/\s]*:[^/\s]*@)", re.IGNORECASE)
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
_HOME = re.compile(r"/(?:home|Users)/[^/:\s,=]+|/root(?=[/:\s]|$)")


class SourceState(NamedTuple):
    """The roofbench source in use: its commit and whether it was changed since; ``None`` and why when it is no checkout."""

    commit: str | None
    dirty: bool | None
    reason: str = ""


def system_facts(root: Path = Path("/"), variables: Mapping[str, str] = os.environ) -> dict[str, Facts]:
    """Describe the host, the operating system, containment, Python, the listed variables, and the roofbench source."""
    return {
        "cpu": _cpu(root),
        "memory": _memory(root),
        "storage": _storage(root),
        "network": _network(root),
        "system": _system(root),
        "container": _container(root, variables),
        "python": _python(),
        "variables": _variables(variables),
        "source": _source(),
    }


def source_state(directory: Path = Path(__file__).parent.parent) -> SourceState:
    """Ask git about the checkout that this package runs from."""
    if not (directory / ".git").exists():
        return SourceState(None, None, "not running from a git checkout")
    commit = _git(directory, "rev-parse", "HEAD")
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    if commit is None or changes is None:
        return SourceState(None, None, "git is missing or refuses this checkout")
    return SourceState(commit.strip(), bool(changes.strip()))


def _git(directory: Path, *arguments: str) -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    try:
        done = subprocess.run([git, "-C", str(directory), *arguments], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _source() -> Facts:
    state = source_state()
    if state.commit is None or state.dirty is None:
        return {"commit": Fact.unavailable(state.reason), "dirty": Fact.unavailable(state.reason)}
    return {"commit": Fact.measured(state.commit), "dirty": Fact.measured(state.dirty)}


_NO_CPUFREQ = "no cpufreq: a virtual machine, or a fixed clock"


def _cpu(root: Path) -> Facts:
    info = _fields(root / "proc/cpuinfo")
    cpus = root / "sys/devices/system/cpu"
    packages = {_read(path) for path in cpus.glob("cpu[0-9]*/topology/physical_package_id")} - {None}
    cores = {
        (_read(path / "physical_package_id"), _read(path / "core_id"))
        for path in cpus.glob("cpu[0-9]*/topology")
        if _read(path / "core_id") is not None
    }
    frequency = cpus / "cpu0/cpufreq"
    no_boost = "not offered by the cpufreq driver" if frequency.is_dir() else _NO_CPUFREQ
    return {
        "model": _given(info.get("model name") or info.get("Model"), "/proc/cpuinfo has no model name"),
        "sockets": _given(len(packages) or None, "the kernel shows no topology"),
        "cores": _given(len(cores) or None, "the kernel shows no topology"),
        "threads": _given(os.cpu_count(), "not reported"),
        "usable_threads": Fact.measured(len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else _UNREPORTED,
        "governor": _given(_read(frequency / "scaling_governor"), _NO_CPUFREQ),
        "max_clock_khz": _given(_integer(frequency / "cpuinfo_max_freq"), _NO_CPUFREQ),
        "boost": _given(_read(cpus / "cpufreq/boost"), no_boost),
        "smt": _given(_read(cpus / "smt/active"), "the kernel does not say"),
        "microcode": _given(info.get("microcode"), "/proc/cpuinfo has none"),
    }


_UNREPORTED = Fact.unavailable("not reported on this system")


def _memory(root: Path) -> Facts:
    info = _fields(root / "proc/meminfo")
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    return {
        "total_bytes": _kib(info.get("MemTotal"), "/proc/meminfo has no MemTotal"),
        "swap_bytes": _kib(info.get("SwapTotal"), "/proc/meminfo has no SwapTotal"),
        "numa_nodes": _given(len(nodes) or None, "the kernel shows no NUMA nodes"),
        # Collectives on MI300X took twice the time with it on (ROCm/rccl#1562).
        "numa_balancing": _given(_integer(root / "proc/sys/kernel/numa_balancing"), "the kernel has no NUMA balancing"),
        "transparent_hugepages": _given(
            _chosen(root / "sys/kernel/mm/transparent_hugepage/enabled"), "the kernel has no transparent huge pages"
        ),
    }


def _storage(root: Path) -> Facts:
    """The file system of the working directory, without its path."""
    here = Path.cwd()
    mounts = [line.split()[1:3] for line in (_read(root / "proc/mounts") or "").splitlines()]
    around = [(len(point), kind) for point, kind in mounts if here.is_relative_to(point.replace("\\040", " "))]
    return {
        "file_system": _given(max(around)[1] if around else None, "/proc/mounts does not show the working directory"),
        "free_bytes": Fact.measured(shutil.disk_usage(here).free),
    }


def _network(root: Path) -> Facts:
    """Interfaces and their speeds, without addresses."""
    speeds = {path.name: _integer(path / "speed") for path in sorted((root / "sys/class/net").glob("*")) if path.name != "lo"}
    named = ", ".join(f"{name} {speed} Mbit/s" if speed and speed > 0 else name for name, speed in speeds.items())
    adapters = sorted(path.name for path in (root / "sys/class/infiniband").glob("*"))
    return {
        "interfaces": _given(named or None, "only the loopback interface"),
        "rdma_adapters": _given(", ".join(adapters) or None, "no RDMA adapter seen"),
    }


def _system(root: Path) -> Facts:
    release = dict(line.split("=", 1) for line in (_read(root / "etc/os-release") or "").splitlines() if "=" in line)
    return {
        "os": _given(release.get("PRETTY_NAME", "").strip('"') or None, "no /etc/os-release"),
        "kernel": Fact.measured(f"{platform.system()} {platform.release()}"),
        "architecture": Fact.measured(platform.machine()),
        "virtualisation": _virtualisation(root),
        "machine": _given(_machine(root), "no DMI table, or not readable"),
    }


def _virtualisation(root: Path) -> Fact:
    if "hypervisor" not in _fields(root / "proc/cpuinfo").get("flags", "").split():
        kind = _read(root / "sys/hypervisor/type")
        return Fact.measured(kind) if kind else Fact.measured("none seen")
    return Fact.measured(_read(root / "sys/class/dmi/id/sys_vendor") or "a hypervisor that does not name itself")


def _machine(root: Path) -> str | None:
    parts = [_read(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name")]
    return " ".join(part for part in parts if part) or None


def _container(root: Path, variables: Mapping[str, str]) -> Facts:
    image = variables.get(IMAGE_VARIABLE)
    limits = {name: _cgroup_limit(root, *files) for name, files in _CGROUP_LIMITS.items()}
    return {
        "kind": _given(_container_kind(root, variables), "no container seen"),
        "image": Fact(image, "declared") if image else Fact.unavailable(f"set {IMAGE_VARIABLE} to record it"),
        **limits,
    }


_CGROUP_LIMITS = {
    "memory_limit_bytes": ("memory.max", "memory/memory.limit_in_bytes"),
    "cpu_limit": ("cpu.max", "cpu/cpu.cfs_quota_us"),
    "cpuset": ("cpuset.cpus.effective", "cpuset/cpuset.effective_cpus"),
}
_NO_LIMIT = ("max", "-1", "")
_UNLIMITED_BYTES = 2**60  # version 1 writes "no limit" as the largest multiple of a page


def _container_kind(root: Path, variables: Mapping[str, str]) -> str | None:
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "kubernetes"
    return "apptainer" if "APPTAINER_NAME" in variables else None


def _cgroup_limit(root: Path, *files: str) -> Fact:
    """A limit of this process's control group, version 2 or 1, as written there."""
    groups = [line.split(":", 2)[2].lstrip("/") for line in (_read(root / "proc/self/cgroup") or "").splitlines()]
    for name in files:
        controller, _, file = name.rpartition("/")
        for group in [*groups, ""]:
            text = _read(root / "sys/fs/cgroup" / controller / group / file)
            if text is None:
                continue
            unlimited = text.split()[:1] in [[word] for word in _NO_LIMIT] or not text
            if unlimited or (text.isdigit() and int(text) >= _UNLIMITED_BYTES):
                return Fact.measured("no limit")
            return Fact.measured(int(text) if text.isdigit() else text)
    return Fact.unavailable("no control group says")


def _python() -> Facts:
    facts = {"python": Fact.measured(platform.python_version()), "implementation": Fact.measured(sys.implementation.name)}
    for name in PACKAGES:
        try:
            facts[name] = Fact.measured(metadata.version(name))
        except metadata.PackageNotFoundError:
            facts[name] = Fact.unavailable("not installed")
    return facts


def _variables(variables: Mapping[str, str]) -> Facts:
    return {name: _variable(variables[name]) for name in VARIABLES if name in variables}


def _variable(value: str) -> Fact:
    return Fact.unavailable(LEFT_OUT) if is_secret(value) else Fact.measured(without_identity(value))


def is_secret(value: str) -> bool:
    """Whether a variable's value looks like one."""
    return bool(_SECRET.search(value))


def without_identity(text: str) -> str:
    """Replace home directories and IPv4 addresses, which say who and where rather than what."""
    home = os.path.expanduser("~")  # noqa: PTH111  # Path.home() raises where there is no entry for the user
    if home not in ("~", "/"):
        text = text.replace(home, "~")
    return _ADDRESS.sub("<address>", _HOME.sub("~", text))


def _given(value: str | int | None, otherwise: str) -> Fact:
    return Fact.unavailable(otherwise) if value is None else Fact.measured(value)


def _kib(text: str | None, otherwise: str) -> Fact:
    return Fact.unavailable(otherwise) if text is None else Fact.measured(int(text.split()[0]) * 1024)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def _integer(path: Path) -> int | None:
    text = _read(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _chosen(path: Path) -> str | None:
    """The bracketed word of a kernel switch such as ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", _read(path) or "")
    return found.group(1) if found else None


def _fields(path: Path) -> dict[str, str]:
    """``name : value`` lines, the first of each name."""
    fields: dict[str, str] = {}
    for line in (_read(path) or "").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return fields
