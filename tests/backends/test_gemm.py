"""GEMM on CPU torch: every format at awkward shapes, and what is refused with which reason."""

import json

import pytest
import torch

from backends.torch import jobs
from backends.torch.data import DISTRIBUTIONS
from backends.torch.target import Target, cpu_target, cuda_target
from suite.case import Case
from tests.backends.cases import CPU_FORMATS, any_cpu, fresh_verdict, gemm_case, run_all, verdict

SHAPES = [(1, 1, 1), (17, 33, 65), (1, 300, 257), (300, 1, 33), (7, 5, 20000), (513, 129, 31)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", ["nt", "nn", "tn", "tt"])
@pytest.mark.parametrize("format_name", CPU_FORMATS)
def test_matches_the_reference(format_name: str, layout: str, shape: tuple[int, int, int]) -> None:
    case = gemm_case(format_name, *shape, layout=layout)
    assert jobs.reason(case, any_cpu()) is None
    kernel = jobs.prepare(case, any_cpu(), 2, seed=3)
    run_all(kernel)
    result = verdict(kernel, case)
    assert result.passed, result.reason
    assert kernel.output_shape == shape[:2]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("format_name", CPU_FORMATS)
def test_every_distribution_passes(format_name: str, distribution: str) -> None:
    case = gemm_case(format_name, 48, 40, 96, distribution=distribution)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=5)
    assert fresh_verdict(kernel, case, seed=6).passed


def test_the_reference_is_of_the_stored_numbers() -> None:
    """fp8 error against its own operands is the kernel's; against the unquantised ones it would be a hundred times larger."""
    case = gemm_case("fp8_e4m3", 64, 64, 512)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    run_all(kernel)
    error = verdict(kernel, case).error_rel
    assert error is not None
    assert error < 3e-3


def test_a_k_longer_than_one_reference_block() -> None:
    case = gemm_case("fp32", 3, 4, (1 << 14) + 5)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    run_all(kernel)
    assert verdict(kernel, case).passed


def test_launches_write_into_the_same_buffers() -> None:
    kernel = jobs.prepare(gemm_case("bf16", 32, 32, 32), any_cpu(), 2, seed=3)
    kernel.enqueue(0)
    first = kernel.input_sets[0].output.clone()
    kernel.poison()
    kernel.enqueue(0)
    assert torch.equal(kernel.input_sets[0].output, first)
    assert not torch.equal(kernel.input_sets[1].output, first)


def test_the_description_is_json_and_names_what_ran() -> None:
    described = jobs.prepare(gemm_case("fp8_e4m3", 16, 16, 16), any_cpu(), 1, seed=3).describe()
    assert json.loads(json.dumps(described)) == described
    assert described["call"] == "torch.addmm on bf16 copies"
    assert [name for name, on in described["precision"].items() if on] == ["fp8_fast_accum"]
    assert described["switches_without_effect"] == ["fp8_fast_accum"]


def test_constant_data_is_taken_as_far_as_the_output_holds_it() -> None:
    for name, k in (("fp16", 262016), ("int8", 133_000), ("bf16", 2**30), ("fp64", 2**30)):
        assert jobs.reason(gemm_case(name, 8, 8, k, distribution="constant"), any_cpu()) is None
    assert jobs.reason(gemm_case("fp16", 8, 8, 2**30), any_cpu()) is None


@pytest.mark.parametrize(
    ("format_name", "switches"),
    [
        ("fp16", {"fp16_accumulation": True, "reduced_precision_reduction": True}),
        ("bf16", {"reduced_precision_reduction": True, "tunable_op": True}),
        ("fp8_e4m3", {"fp8_fast_accum": True}),
    ],
)
def test_switches_that_a_cpu_cannot_follow_are_named(format_name: str, switches: dict[str, bool]) -> None:
    case = gemm_case(format_name, 16, 16, 16, switches=switches)
    assert jobs.reason(case, any_cpu()) is None
    assert jobs.prepare(case, any_cpu(), 1, seed=3).describe()["switches_without_effect"] == sorted(switches)


def test_execution_follows_the_instruction_set() -> None:
    modern = cpu_target(("amx_bf16", "avx512_fp16", "avx512_vnni"))
    old = cpu_target(("avx2", "fma", "f16c"))
    assert [modern.execution(name) for name in ("fp32", "bf16", "fp16", "int8")] == ["native"] * 4
    assert [old.execution(name) for name in ("fp32", "bf16", "fp16", "int8")] == ["native"] + ["emulated"] * 3
    assert modern.execution("fp8_e4m3") == "emulated"


HOPPER = cuda_target(0, (9, 0))


@pytest.mark.parametrize(
    ("case", "target", "words"),
    [
        (gemm_case("tf32", 8, 8, 8), any_cpu(), "tf32"),
        (gemm_case("bf17", 8, 8, 8, switches={}), any_cpu(), "did you mean 'bf16'"),
        (gemm_case("fp32", 8, 8, 8, layout="ntt"), any_cpu(), "layout 'ntt'"),
        (gemm_case("fp32", 8, 8, 8, distribution="norml"), any_cpu(), "did you mean 'normal'"),
        (gemm_case("fp32", 8, 8, 8, switches={"tf23": True}), any_cpu(), "did you mean 'tf32'"),
        (gemm_case("fp32", 8, 8, 8, switches={"emulation": "bf16x9"}), any_cpu(), "which a CPU has not"),
        (gemm_case("fp64", 8, 8, 8, switches={"emulation": "int8"}), any_cpu(), "which a CPU has not"),
        (gemm_case("fp64", 8, 8, 8, switches={"workspace_mib": 64}), any_cpu(), "libraries of a CPU take their own"),
        (gemm_case("fp16", 8, 8, 2**18, distribution="constant"), any_cpu(), "k=262144 adds up to 6.554e+04"),
        (gemm_case("int8", 8, 8, 2**18, distribution="constant"), any_cpu(), "above the 2.147e+09 that the output holds"),
        *(
            (
                gemm_case("int8", 32, 32, 2**18, distribution="constant", semantics={"scaling": scaling}),
                target,
                "adds up to 4.228e+09, above the 2.147e+09 that a sum in int32 holds",
            )
            for scaling in ("tensor", "row")
            for target in (any_cpu(), HOPPER)
        ),
        (gemm_case("fp32", 8, 8, 8, switches={"tf32": True}), HOPPER, "contradicts the switch tf32=True"),
        (gemm_case("tf32", 8, 8, 8, switches={"tf32": False}), HOPPER, "contradicts the switch tf32=False"),
        (gemm_case("fp16", 8, 8, 8, semantics={"accumulate": "fp16"}), any_cpu(), "not in fp16"),
        (gemm_case("fp8_e4m3", 32, 32, 32, semantics={"scaling": "column"}), HOPPER, "only with tensor or row or block scales"),
        (gemm_case("bf16", 32, 32, 32, semantics={"scaling": "row"}), HOPPER, "row scales is not offered"),
        (gemm_case("fp8_e4m3", 32, 32, 32, semantics={"zero_point": True}), HOPPER, "has no zero point"),
        (gemm_case("fp8_e4m3", 32, 32, 32, layout="nn"), HOPPER, "layout nt"),
        (gemm_case("fp8_e4m3", 32, 40, 32), HOPPER, "n=40"),
        (gemm_case("int8", 16, 32, 32), HOPPER, "more than 16 rows, not m=16"),
        (gemm_case("int8", 32, 33, 32), HOPPER, "n=33"),
        (gemm_case("tf32", 32, 32, 32), cuda_target(0, (7, 5)), "compute capability 8.0"),
        (gemm_case("int8", 32, 32, 32), cuda_target(0, (7, 0)), "compute capability 7.5"),
    ],
)
def test_refusals_say_why(case: Case, target: Target, words: str) -> None:
    reason = jobs.reason(case, target)
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


def test_what_hopper_takes() -> None:
    for name in ("fp64", "fp32", "tf32", "bf16", "fp16", "int8", "fp8_e4m3"):
        assert jobs.reason(gemm_case(name, 17, 48, 64, backend="cuda"), HOPPER) is None
        assert HOPPER.execution(name) == "native"
    assert cuda_target(0, (7, 5)).execution("bf16") == "emulated"


def test_a_job_without_a_port_is_named() -> None:
    case = gemm_case("fp32", 8, 8, 8)
    other = type(case)(type(case.workload)("gem", "fp32", ()), "library", "cpu", case.regime)
    assert "did you mean 'gemm'" in (jobs.reason(other, any_cpu()) or "")
