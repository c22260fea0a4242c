"""Precision switches and emulation on the device: each does what it says, in its own case alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from backends.cuda import CudaBackend
from backends.torch.libraries import blas_workspaces
from backends.torch.overrides import workspaces
from tests.backends.cases import fresh_verdict, run_all, verdict
from tests.backends.cuda.helpers import NEEDS_DEVICE, SAMPLE_S, WARM, on_cuda, prepared

pytestmark = NEEDS_DEVICE


@pytest.mark.parametrize("fast", [True, False])
def test_fp8_accumulation_is_a_switch(backend: CudaBackend, fast: bool) -> None:
    case = on_cuda("fp8_e4m3", 512, 512, 4096, switches={"fp8_fast_accum": fast})
    assert fresh_verdict(prepared(backend, case, 1), case, seed=7).passed


def test_tf32_is_where_it_is_asked_for_and_nowhere_else(backend: CudaBackend) -> None:
    """Two kernels launched in turn keep their own switches."""
    cases = [on_cuda(name, 512, 512, 512) for name in ("tf32", "fp32")]
    kernels = [prepared(backend, case, 1) for case in cases]
    for _ in range(2):
        for kernel in kernels:
            run_all(kernel)
        errors = [verdict(kernel, case).error_rel or 0.0 for kernel, case in zip(kernels, cases, strict=True)]
        assert 1e-4 < errors[0] < 2e-3
        assert errors[1] < 5e-6


def test_fp16_sums_are_less_exact_and_within_their_tolerance(backend: CudaBackend) -> None:
    errors = []
    for on in (False, True):
        case = on_cuda("fp16", 512, 512, 4096, switches={"fp16_accumulation": on, "reduced_precision_reduction": True})
        result = fresh_verdict(prepared(backend, case, 1), case, seed=7)
        assert result.passed, result.reason
        errors.append(result.error_rel or 0.0)
    print(errors)
    assert errors[1] > 2 * errors[0]


@pytest.mark.parametrize(("format_name", "name"), [("fp64", "int8"), ("fp32", "bf16x9")])
@pytest.mark.parametrize("layout", ["nt", "nn", "tn", "tt"])
def test_an_emulated_product_is_right(backend: CudaBackend, format_name: str, name: str, layout: str) -> None:
    case = on_cuda(format_name, 300, 272, 1000, layout=layout, switches={"emulation": name})
    kernel = prepared(backend, case, 2)
    result = fresh_verdict(kernel, case, seed=7)
    assert result.passed, result.reason
    print(kernel.describe())
    assert kernel.execution == "emulated"


def test_emulation_is_in_its_own_case_and_in_no_other(backend: CudaBackend) -> None:
    """Launched in turn: the bits that the emulated product kept are read back, and the native one is bit for bit as before."""
    cases = [on_cuda("fp64", 512, 512, 2048, switches=switches) for switches in ({}, {"emulation": "int8"})]
    native, emulated = (prepared(backend, case, 1) for case in cases)
    run_all(native)
    before = native.input_sets[0].output.clone()
    for _ in range(2):
        emulated.poison()
        run_all(emulated)
        assert verdict(emulated, cases[1]).passed
        assert emulated.describe()["retained_mantissa_bits"] >= 53
        native.poison()
        run_all(native)
        assert torch.equal(native.input_sets[0].output, before)


def test_an_emulated_product_is_timed_and_checked_through_the_timed_path(backend: CudaBackend) -> None:
    case = on_cuda("fp64", 1024, 1024, 1024, regime=WARM, switches={"emulation": "int8"})
    kernel = prepared(backend, case, 1)
    run_all(kernel)
    sampler = backend.sampler(kernel, case, SAMPLE_S)
    reserved = torch.cuda.memory_reserved()
    print(sampler.method, dict(sampler.details), sampler.sample(20)[:3])
    assert torch.cuda.memory_reserved() == reserved
    assert fresh_verdict(kernel, case, 9, sampler.replay).passed


SCRIPT = """
import sys
from backends.cuda import CudaBackend
from tests.backends.cases import fresh_verdict, gemm_case
backend = CudaBackend()
backend.select(0)
case = gemm_case("bf16", 256, 256, 256, backend="cuda", switches={"tunable_op": sys.argv[1] == "on"})
reason = backend.supports(case)
print(reason or fresh_verdict(backend.prepare(case, 1, 3), case, seed=4).passed)
facts = backend.environment()
print(facts["cublas_workspace_bytes"].value, facts["cublaslt_workspace_bytes"].value)
"""


def said_with(folder: Path, tunable: str, **variables: str) -> list[str]:
    """What the script prints in an empty folder with these variables; a file left behind is an error."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tunable],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{root}:{os.environ.get('PYTHONPATH', '')}", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert list(folder.iterdir()) == []
    return done.stdout.splitlines()


def test_tunable_op_leaves_no_file_and_reads_none(tmp_path: Path) -> None:
    assert said_with(tmp_path, "on")[0] == "True"


def test_a_tunable_op_of_the_environment_is_refused(tmp_path: Path) -> None:
    assert "PYTORCH_TUNABLEOP_ENABLED=1" in said_with(tmp_path, "off", PYTORCH_TUNABLEOP_ENABLED="1")[0]


def test_workspaces_of_the_environment_are_recorded(tmp_path: Path) -> None:
    lines = said_with(tmp_path, "off", CUBLAS_WORKSPACE_CONFIG=":8192:2", CUBLASLT_WORKSPACE_SIZE="4096")
    assert lines[1] == f"{16 << 20} {4 << 20}"


def test_workspaces_are_what_torch_says_where_it_can_be_asked() -> None:
    sizes, status = blas_workspaces(torch.cuda.get_device_capability(0))
    print(sizes, status)
    assert sizes == workspaces(torch.cuda.get_device_capability(0))
