"""Which environment variables change what a compiler makes of the same program."""

from pathlib import Path

import pytest

from backends.variables import variables, with_flag
from suite.targets.names import TRITON, XLA


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((XLA, name) for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "JAX_DEFAULT_MATMUL_PRECISION", "TPU_MEGACORE", "NPROC")),
        (TRITON, "TRITON_DEFAULT_FP_FUSION"),
        (TRITON, "TRITON_F32_DEFAULT"),
        (TRITON, "TRITON_PTXAS_PATH"),
        (TRITON, "DISABLE_PTXAS_OPT"),
        (TRITON, "DISABLE_MMA_V3"),
        (TRITON, "PTXAS_OPTIONS"),
        (TRITON, "AMDGCN_USE_BUFFER_OPS"),
        (TRITON, "DISABLE_LLVM_OPT"),
    ],
)
def test_what_a_compiler_reads_counts_for_it_alone(kind: str, name: str) -> None:
    assert variables(kind, {name: "1", "HOME": "/root"}) == {name: "1"}
    assert variables(TRITON if kind == XLA else XLA, {name: "1"}) == {}
    assert variables(kind, {name: ""}) == {}


@pytest.mark.parametrize(
    "name",
    [
        "TRITON_CACHE_DIR",
        "TRITON_HOME",
        "TRITON_REDIS_HOST",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
        "XLA_CLIENT_MEM_FRACTION",
        "JAX_PLATFORMS",
        "JAX_ENABLE_X64",
        "JAX_COMPILATION_CACHE_DIR",
        "JAX_COORDINATOR_ADDRESS",
        "JAX_PROCESS_ID",
        "JAX_LOG_COMPILES",
        "JAX_TRACEBACK_FILTERING",
        "JAX_DUMP_IR_TO",
        "MLIR_ENABLE_DUMP",
        "LLVM_ENABLE_TIMING",
        "TRITON_KERNEL_DUMP",
        "TRITON_DUMP_DIR",
        "TPU_VISIBLE_CHIPS",
        "TPU_SKIP_MDS_QUERY",
    ],
)
def test_where_files_are_kept_what_is_printed_and_from_whom_memory_is_taken_changes_no_program(name: str) -> None:
    assert variables(TRITON, {name: "1"}) == variables(XLA, {name: "1"}) == {}


def test_flags_in_a_file_are_what_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "flags"
    file.write_text("--xla_cpu_enable_fast_math=true\n--xla_dump_to=x\n")
    assert variables(XLA, {"XLA_FLAGS": str(file)}) == {"XLA_FLAGS": f"{file}: --xla_cpu_enable_fast_math=true --xla_dump_to=x"}
    assert variables(XLA, {"XLA_FLAGS": str(tmp_path / "none")}) == {"XLA_FLAGS": str(tmp_path / "none")}


@pytest.mark.parametrize("name", ["TPU_NAME", "TPU_WORKER_HOSTNAMES", "TPU_PROCESS_ADDRESSES", "TPU_WORKER_ID"])
def test_which_host_this_is_is_not_recorded(name: str) -> None:
    assert variables(XLA, {name: "tpu-a.corp.example:8476"}) == {}


def test_nobody_and_no_place_is_recorded_with_a_variable(tmp_path: Path) -> None:
    given = {"XLA_FLAGS": "--xla_dump_to=/home/alice/dump", "JAX_COMPILER_URL": "http://10.2.3.4/", "JAX_X_TOKEN": "token=a1b2"}
    assert variables(XLA, given) == {
        "JAX_COMPILER_URL": "http://<address>/",
        "JAX_X_TOKEN": "left out: it looks like a secret",
        "XLA_FLAGS": "--xla_dump_to=~/dump",
    }


def test_a_flag_is_added_to_those_in_a_file(tmp_path: Path) -> None:
    file, empty = tmp_path / "flags", tmp_path / "empty"
    file.write_text("--a=1\n--b=2\n")
    empty.write_text("")
    assert with_flag("", "--c=3") == with_flag(str(empty), "--c=3") == "--c=3"
    assert with_flag("--a=1", "--c=3") == "--a=1 --c=3"
    assert with_flag(str(file), "--c=3") == "--a=1 --b=2 --c=3"
    missing = str(tmp_path / "none")
    assert with_flag(missing, "--c=3") == missing
