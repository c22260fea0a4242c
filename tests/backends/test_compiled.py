"""Products through torch.compile on a CPU: right, compiled once, and nothing left behind."""

import json
import os
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from backends.torch import compiling, jobs
from backends.torch.gemm import compiled
from backends.torch.gemm.compiled import Program
from backends.torch.gemm.epilogue import Finished, fuses
from backends.torch.gemm.sizes import Sizes
from backends.torch.kernel import InputSet
from backends.torch.precision import NotInForce, Precision
from backends.torch.target import cuda_target
from suite.case import Case
from suite.jobs.gemm import EPILOGUES, IMPLEMENTATIONS, GemmJob
from tests.backends.cases import any_cpu, fresh_verdict, run_all, verdict
from tests.backends.epilogue_cases import ACTIVATIONS, finished_case, other

HOPPER = cuda_target(0, (9, 0))
NEEDS_COMPILER = pytest.mark.skipif(compiling.no_cpp_compiler() is not None, reason="nothing that compiles C++ here")
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
    return sorted(folder.iterdir()), {name: os.environ.get(name) for name in compiling.FOLDERS}, children


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
    calls = described["compiled_calls"]
    assert len(calls) > 1
    # The product between two calls; before it the bias, where addmm is given a copy of it.
    assert described["passing_bytes"] == (len(calls) - 1 + ("extern_kernels.addmm" in calls)) * 64 * 40 * 2
    assert described["results"] == "in a new matrix for each launch: what allocating it takes is in the time"
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
def test_room_is_planned_for_what_is_kept(kernels: Mapping[str, compiled.CompiledKernel]) -> None:
    for name, kernel in kernels.items():
        run_all(kernel)
        kept = sum(each.nbytes for each in kernel._returned.values())
        footprint = GemmJob().footprint(CASES[name].workload)
        held = kernel.sets * kernel.set_bytes + kept + footprint.scratch_bytes
        assert footprint.total_bytes(kernel.sets, implementation="compiled") == held


def test_what_a_launch_returned_is_gone_before_the_next_of_its_set() -> None:
    """Two would be held at once."""
    alive: list[weakref.ref[torch.Tensor]] = []

    def launch() -> torch.Tensor:
        assert not [each for each in alive if each() is not None]
        made = torch.ones(2, 3)
        alive.append(weakref.ref(made))
        return made

    parts = Finished("nt", EPILOGUES["none"]), "normal", "native", Precision(), {}
    kernel = compiled.CompiledKernel([InputSet((), torch.empty(2, 3), launch)], *parts)
    run_all(kernel)
    run_all(kernel)
    kernel.hand_over([0])
    assert len(alive) == 2
    assert kernel.input_sets[0].output.eq(1).all()


@NEEDS_COMPILER
def test_wrong_launches_are_caught(kernels: Mapping[str, compiled.CompiledKernel]) -> None:
    kernel, case = kernels["bias_gelu_tanh"], CASES["bias_gelu_tanh"]
    assert fresh_verdict(other(lambda each: each, ACTIVATIONS["gelu_tanh"])(kernel), case, seed=7).passed
    assert not fresh_verdict(other(torch.zeros_like, ACTIVATIONS["gelu_tanh"])(kernel), case, seed=7).passed
    assert not fresh_verdict(other(lambda each: each, ACTIVATIONS[""])(kernel), case, seed=7).passed


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (finished_case("int8", "none", 32, 32, 32, "compiled"), "takes fp32, tf32, bf16, fp16, not int8; take the library"),
        (finished_case("fp64", "none", 32, 32, 32, "compiled"), "not fp64"),
        (finished_case("fp16", "none", 32, 32, 32, "compiled", switches={"fp16_accumulation": True}), "no fp16_accumulation: "),
        (finished_case("fp8_e4m3", "bias", 32, 32, 32, "compiled"), "not for fp8_e4m3"),
    ],
)
def test_refusals_say_why(case: Case, words: str) -> None:
    for target in (any_cpu(), HOPPER):
        assert words in (jobs.reason(case, target) or "")


@pytest.mark.parametrize("name", ["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
def test_an_environment_that_keeps_torch_from_compiling_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("backends.triton.works.why_not", lambda: "")
    monkeypatch.setenv(name, "1")
    for target in (any_cpu(), HOPPER):
        assert jobs.reason(CASES["none"], target) == f"{name}=1 keeps torch from compiling; unset it"
    monkeypatch.setenv(name, "0")
    assert jobs.reason(CASES["none"], HOPPER) is None


def test_what_nobody_compiled_is_not_made_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    with pytest.raises(NotInForce, match="compiled nothing; unset TORCHDYNAMO_DISABLE and TORCH_COMPILE_DISABLE, or take"):
        jobs.prepare(CASES["none"], any_cpu(), 1, seed=3)


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


ADDMM, EXPANDED = "extern_kernels.addmm(arg2_1, arg0_1, out=buf0)", "extern_kernels.addmm(reinterpret_tensor(arg2_1), arg0_1)"
ROW_OF_EXPANDED = "extern_kernels.bias_addmm(reinterpret_tensor(arg0_1, (64, 48)), a, b)"
WITH_ACTIVATION = "buf1 = torch.ops.aten._addmm_activation.default(arg0_1)"


def write_program(folder: Path, *calls: str, name: str = "program.py") -> Path:
    path = folder / "aa" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(WRAPPER.format(calls="\n".join(f"            {call}" for call in calls)))
    return path


@pytest.mark.parametrize(
    ("calls", "fuses_bias", "names", "passes"),
    [
        (["triton_tem_fused_addmm_relu_0.run(arg0_1, arg1_1, 1, stream=s)"], True, ["triton_tem_fused_addmm_relu_0"], 0),
        (["triton_tem_fused_addmm_relu_0.run(arg0_1, arg1_1, 1, stream=s)"], False, ["triton_tem_fused_addmm_relu_0"], 0),
        ([ROW_OF_EXPANDED], True, ["extern_kernels.bias_addmm"], 0),
        ([ROW_OF_EXPANDED], False, ["extern_kernels.bias_addmm"], 1),
        ([ADDMM], True, ["extern_kernels.addmm"], 0),
        ([ADDMM], False, ["extern_kernels.addmm"], 1),
        ([EXPANDED], True, ["extern_kernels.addmm"], 1),
        ([EXPANDED], False, ["extern_kernels.addmm"], 1),
        ([WITH_ACTIVATION], True, ["torch.ops.aten._addmm_activation.default"], 0),
        ([WITH_ACTIVATION], False, ["torch.ops.aten._addmm_activation.default"], 2),
        (
            ["extern_kernels.mm(arg0_1, arg1_1, out=buf0)", "triton_poi_fused_silu_0.run(buf1, 5, stream=stream0)"],
            True,
            ["extern_kernels.mm", "triton_poi_fused_silu_0"],
            1,
        ),
    ],
)
def test_the_program_that_was_written_tells_its_calls(
    tmp_path: Path, calls: list[str], fuses_bias: bool, names: list[str], passes: int
) -> None:
    program = write_program(tmp_path, *calls)
    (program.parent / "kernel.py").write_text("def triton_tem_fused_addmm_relu_0(arg_A):\n    pass\n")
    assert compiled._written(tmp_path, fuses_bias) == Program(tuple(names), passes)


@pytest.mark.parametrize("newest", ["a.py", "b.py"])
def test_the_program_that_was_written_last_is_read(tmp_path: Path, newest: str) -> None:
    for name in ("a.py", "b.py"):
        path = write_program(tmp_path, f"extern_kernels.{name[0]}(arg0_1)", name=name)
        os.utime(path, ns=(0, 2_000 if name == newest else 1_000))
    assert compiled._written(tmp_path, True).calls == (f"extern_kernels.{newest[0]}",)


@pytest.mark.parametrize(
    ("shape", "variables", "told"),
    [
        ((64, 64, 64), {}, "fused"),
        ((1, 64, 64), {}, "separate launches"),
        ((64, 1, 64), {}, "separate launches"),
        ((64, 64, 1), {}, "separate launches"),
        ((64, 64, 64), {"DISABLE_ADDMM_CUDA_LT": "1"}, "separate launches"),
    ],
)
def test_a_bias_that_aten_copies_is_not_said_to_be_fused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shape: tuple[int, int, int], variables: dict[str, str], told: str
) -> None:
    """What stands in the compiled program is the same call."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    write_program(tmp_path, ADDMM)
    program = compiled._written(tmp_path, fuses(Sizes(*shape, "nt"), HOPPER))
    facts = compiled.facts(compiled.Built(torch.addmm, program, 1.0), "cuda", EPILOGUES["bias"])
    assert facts["epilogue"] == told


def test_a_program_that_cannot_be_read_claims_nothing(tmp_path: Path) -> None:
    (tmp_path / "wrapper.py").write_text("cpp_wrapper_src = 'void inductor_entry_impl()'\n")
    assert compiled._written(tmp_path, True) == Program()


def test_where_nothing_was_written_nothing_was_compiled() -> None:
    with pytest.raises(NotInForce, match=r"torch\.compile compiled nothing"), compiling.compiling():
        pass


def test_what_the_compiler_says_of_its_own_code_is_no_error_of_a_case() -> None:
    """torch 2.11 reads a class there that it is to stop using; what it says of ours is heard."""

    def warned_by(name: str) -> None:
        exec("import warnings; warnings.warn('of old code', UserWarning)", {"__name__": name})

    with compiling.compiling() as folder:
        (folder / "program.py").touch()
        warned_by("torch._inductor.select_algorithm")
        for name in ("torch.nn.attention.flex_attention", "torch._inductors", "backends.torch.gemm.compiled"):
            with pytest.raises(UserWarning, match="of old code"):
                warned_by(name)


def test_cases_that_are_alike_in_code_are_each_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch finds what it has compiled by the code, and after eight of one code runs the next as it stands."""
    compile_, graphs = torch.compile, []

    def recorded(function: Any, *, options: Any, **more: Any) -> Any:
        return compile_(function, backend=lambda graph, _: graphs.append(graph) or graph.forward, **more)

    def doubled(numbers: torch.Tensor) -> torch.Tensor:
        return numbers + numbers

    monkeypatch.setattr(torch, "compile", recorded)
    for columns in range(1, torch._dynamo.config.recompile_limit + 3):
        compiling.compiled(doubled, "default")(torch.ones(1, columns))
        assert len(graphs) == columns
