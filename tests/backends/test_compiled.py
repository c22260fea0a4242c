"""Products through torch.compile on a CPU: right, compiled once, and nothing left behind."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from backends.torch import jobs
from backends.torch.gemm import compiled
from backends.torch.gemm.compiled import Program
from backends.torch.target import cuda_target
from suite.case import Case
from suite.jobs.gemm import IMPLEMENTATIONS
from tests.backends.cases import any_cpu, fresh_verdict, run_all, verdict
from tests.backends.epilogue_cases import ACTIVATIONS, finished_case, other

HOPPER = cuda_target(0, (9, 0))
NEEDS_COMPILER = pytest.mark.skipif(compiled.no_cpp_compiler() is not None, reason="nothing that compiles C++ here")
CASES = {
    "none": finished_case("fp32", "none", 33, 48, 64, "compiled"),
    "bias_relu": finished_case("fp32", "bias_relu", 33, 48, 64, "compiled", layout="nn"),
    "bias_gelu_tanh": finished_case("bf16", "bias_gelu_tanh", 64, 40, 96, "compiled", layout="tn"),
}


class Ready(NamedTuple):
    """All kernels at once, as in alternating rounds, and what was there before and after they were made."""

    kernels: Mapping[str, compiled.CompiledKernel]
    before: object
    after: object


def outside(folder: Path) -> object:
    """What compiling could leave: files, variables, processes."""
    children = [each for task in Path("/proc/self/task").iterdir() for each in (task / "children").read_text().split()]
    return sorted(folder.iterdir()), {name: os.environ.get(name) for name in compiled.FOLDERS}, children


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    """Temporary files are made in a folder that nobody else uses."""
    folder = tmp_path_factory.mktemp("temporary")
    before = outside(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        made = {name: jobs.prepare(case, any_cpu(), 2, seed=3) for name, case in CASES.items()}
    return Ready(
        {name: each for name, each in made.items() if isinstance(each, compiled.CompiledKernel)}, before, outside(folder)
    )


@pytest.fixture
def kernels(ready: Ready) -> Mapping[str, compiled.CompiledKernel]:
    return ready.kernels


@NEEDS_COMPILER
@pytest.mark.parametrize("name", CASES)
def test_matches_the_reference_on_fresh_data(kernels: Mapping[str, compiled.CompiledKernel], name: str) -> None:
    for seed in (4, 5):
        result = fresh_verdict(kernels[name], CASES[name], seed)
        assert result.passed, result.reason


@NEEDS_COMPILER
@pytest.mark.parametrize("name", CASES)
def test_a_launch_never_compiles(kernels: Mapping[str, compiled.CompiledKernel], name: str) -> None:
    """Whatever has become of the settings that torch otherwise looks at before it launches."""
    threads = torch.get_num_threads()
    run_all(kernels[name])
    try:
        torch.set_num_threads(threads + 1)
        with torch.compiler.set_stance("fail_on_recompile"), torch.inference_mode():
            kernels[name].poison()
            run_all(kernels[name])
            assert verdict(kernels[name], CASES[name]).passed
    finally:
        torch.set_num_threads(threads)


@NEEDS_COMPILER
def test_nothing_is_left_behind(ready: Ready) -> None:
    assert len(ready.kernels) == len(CASES)
    assert ready.after == ready.before


@NEEDS_COMPILER
def test_the_description_says_what_was_chosen_and_what_it_took(kernels: Mapping[str, compiled.CompiledKernel]) -> None:
    described = kernels["bias_gelu_tanh"].describe()
    assert json.loads(json.dumps(described)) == described
    assert described["call"] == "torch.compile, mode default"
    assert any(call.startswith("cpp_fused") for call in described["compiled_calls"])
    assert described["compile_s"] > 0
    assert described["epilogue"] == "separate launches"
    assert described["passing_bytes"] % (64 * 40 * 2) == 0
    plain = kernels["none"].describe()
    assert plain["compiled_calls"] == ["extern_kernels.mm"]
    assert not {"epilogue", "passing_bytes"} & plain.keys()


@NEEDS_COMPILER
def test_results_are_looked_for_where_the_latest_launch_left_them(kernels: Mapping[str, compiled.CompiledKernel]) -> None:
    """What an earlier launch returned is no result of a later one that did nothing."""
    kernel, case = kernels["none"], CASES["none"]
    run_all(kernel)
    assert fresh_verdict(kernel, case, seed=6, run=lambda: None).unwritten == 33 * 48


@NEEDS_COMPILER
def test_wrong_launches_are_caught(kernels: Mapping[str, compiled.CompiledKernel]) -> None:
    kernel, case = kernels["bias_gelu_tanh"], CASES["bias_gelu_tanh"]
    assert fresh_verdict(other(lambda each: each, ACTIVATIONS["gelu_tanh"])(kernel), case, seed=7).passed
    assert not fresh_verdict(other(torch.zeros_like, ACTIVATIONS["gelu_tanh"])(kernel), case, seed=7).passed
    assert not fresh_verdict(other(lambda each: each, ACTIVATIONS[""])(kernel), case, seed=7).passed


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (finished_case("int8", "none", 32, 32, 32, "compiled"), "takes fp32, tf32, bf16, fp16, not int8"),
        (finished_case("fp64", "none", 32, 32, 32, "compiled"), "not fp64"),
        (finished_case("fp16", "none", 32, 32, 32, "compiled", switches={"fp16_accumulation": True}), "no fp16_accumulation: "),
        (finished_case("fp8_e4m3", "bias", 32, 32, 32, "compiled"), "not for fp8_e4m3"),
    ],
)
def test_refusals_say_why(case: Case, words: str) -> None:
    for target in (any_cpu(), HOPPER):
        assert words in (jobs.reason(case, target) or "")


def test_a_cpu_without_a_compiler_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert "there is no no-such-compiler here" in (jobs.reason(CASES["none"], any_cpu()) or "")
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no g++ here" in (jobs.reason(CASES["none"], any_cpu()) or "")


def test_a_gpu_without_triton_is_refused_with_what_triton_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.triton.works.why_not", lambda: "Triton is not installed")
    case = finished_case("bf16", "bias", 32, 32, 32, "compiled")
    assert jobs.reason(case, HOPPER) == "Triton is not installed"
    monkeypatch.setattr("backends.triton.works.why_not", lambda: "")
    assert all(
        jobs.reason(finished_case(name, "none", 8, 8, 8, "compiled"), HOPPER) is None for name in IMPLEMENTATIONS["compiled"]
    )


WRAPPER = """
class Runner:
    def call(self, args):
        arg0_1, arg1_1, arg2_1 = args
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
            buf0 = empty_strided_cuda((64, 48), (48, 1), torch.bfloat16)
{calls}
            del arg0_1
        return (buf0, )

    def other(self):
            extern_kernels.mm(arg0_1, arg1_1, out=buf9)
"""


@pytest.mark.parametrize(
    ("calls", "kind", "expected"),
    [
        (["triton_tem_fused_addmm_relu_0.run(arg0_1, arg1_1, 1, 1, stream=s)"], "cuda", ("triton_tem_fused_addmm_relu_0", 0)),
        (["extern_kernels.bias_addmm(reinterpret_tensor(arg0_1, (64, 48)), a, b)"], "cuda", ("extern_kernels.bias_addmm", 0)),
        (["extern_kernels.addmm(arg2_1, arg0_1, arg1_1, out=buf0)"], "cuda", ("extern_kernels.addmm", 0)),
        (["extern_kernels.addmm(reinterpret_tensor(arg2_1), arg0_1, out=buf0)"], "cuda", ("extern_kernels.addmm", 1)),
        (["extern_kernels.addmm(arg2_1, arg0_1, arg1_1, out=buf0)"], "cpu", ("extern_kernels.addmm", 1)),
        (["buf1 = torch.ops.aten._addmm_activation.default(arg0_1)"], "cuda", ("torch.ops.aten._addmm_activation.default", 0)),
        (
            ["extern_kernels.mm(arg0_1, arg1_1, out=buf0)", "triton_poi_fused_silu_0.run(buf1, 5, stream=stream0)"],
            "cuda",
            ("extern_kernels.mm", "triton_poi_fused_silu_0", 1),
        ),
    ],
)
def test_the_program_that_was_written_tells_its_calls(
    tmp_path: Path, calls: list[str], kind: str, expected: tuple[object]
) -> None:
    (tmp_path / "aa").mkdir()
    (tmp_path / "aa" / "kernel.py").write_text("def triton_tem_fused_addmm_relu_0(arg_A):\n    pass\n")
    (tmp_path / "aa" / "program.py").write_text(WRAPPER.format(calls="\n".join(f"            {call}" for call in calls)))
    *names, passes = expected
    assert compiled._written(tmp_path, kind) == Program(tuple(map(str, names)), int(str(passes)))


def test_a_program_that_cannot_be_read_claims_nothing(tmp_path: Path) -> None:
    assert compiled._written(tmp_path, "cuda") == Program()
