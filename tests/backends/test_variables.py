"""Which environment variables change what a compiler makes of the same program."""

from pathlib import Path

import pytest

from backends.variables import variables
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
    ],
)
def test_where_files_are_kept_and_from_whom_memory_is_taken_changes_no_program(name: str) -> None:
    assert variables(TRITON, {name: "1"}) == variables(XLA, {name: "1"}) == {}


def test_flags_in_a_file_are_what_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "flags"
    file.write_text("--xla_cpu_enable_fast_math=true\n--xla_dump_to=x\n")
    assert variables(XLA, {"XLA_FLAGS": str(file)}) == {"XLA_FLAGS": f"{file}: --xla_cpu_enable_fast_math=true --xla_dump_to=x"}
    assert variables(XLA, {"XLA_FLAGS": str(tmp_path / "none")}) == {"XLA_FLAGS": str(tmp_path / "none")}
