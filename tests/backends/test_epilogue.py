"""Products that a bias and an activation follow, on CPU torch: right, wrong in one way each, and refused by name."""

import json
from dataclasses import replace

import pytest
import torch

from backends.torch import jobs
from backends.torch.gemm.epilogue import BLOCK_ELEMENTS, Finished, Weights, by_library, told_of
from backends.torch.gemm.sizes import Sizes
from backends.torch.target import Target, cuda_target
from suite.case import Case
from suite.jobs.gemm import EPILOGUES, GemmJob
from tests.backends.cases import any_cpu, fresh_verdict, gemm_case, run_all, verdict
from tests.backends.epilogue_cases import (
    ACTIVATIONS,
    FOLLOWED,
    ON_CPU,
    WITH_ACTIVATION,
    WITH_BIAS,
    as_it_is,
    finished_case,
    gelu_by_erf,
    other,
)
from tests.backends.planted_bugs import BUGS, Bug

HOPPER = cuda_target(0, (9, 0))
SHAPES = [(1, 1, 1), (1, 64, 1), (17, 33, 65), (300, 1, 33), (33, 16, 16384)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("epilogue", FOLLOWED)
@pytest.mark.parametrize("format_name", ON_CPU)
def test_matches_the_reference(format_name: str, epilogue: str, shape: tuple[int, int, int]) -> None:
    case = finished_case(format_name, epilogue, *shape)
    assert jobs.reason(case, any_cpu()) is None
    kernel = jobs.prepare(case, any_cpu(), 2, seed=3)
    run_all(kernel)
    result = verdict(kernel, case)
    assert result.passed, result.reason


@pytest.mark.parametrize("layout", ["nn", "tn", "tt"])
def test_every_layout_has_the_bias_along_its_columns(layout: str) -> None:
    case = finished_case("fp32", "bias_gelu_tanh", 17, 33, 65, layout=layout)
    assert fresh_verdict(jobs.prepare(case, any_cpu(), 1, seed=3), case, seed=4).passed


@pytest.mark.parametrize("epilogue", FOLLOWED)
def test_the_reference_is_the_formula_written_out(epilogue: str) -> None:
    kernel = jobs.prepare(finished_case("bf16", epilogue, 33, 40, 128), any_cpu(), 1, seed=3)
    a, b, *bias = (each.data.to(torch.float64) for each in kernel.input_sets[0].operands)
    expected = ACTIVATIONS[EPILOGUES[epilogue].activation](a @ b.t() + (bias[0] if bias else 0))
    found = kernel.formula.tile(kernel.input_sets[0].operands, 2, 3, 30, 36)
    torch.testing.assert_close(found, expected[2:32, 3:39], rtol=1e-12, atol=1e-12)
    signs = torch.randint(0, 2, (40,)).to(torch.float64) * 2 - 1
    projected = kernel.formula.project(kernel.input_sets[0].operands, signs)
    torch.testing.assert_close(projected, expected @ signs, rtol=1e-11, atol=1e-11)


def test_a_projection_of_several_blocks_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = jobs.prepare(finished_case("fp32", "bias_relu", 70, 50, 64), any_cpu(), 1, seed=3)
    operands, signs = kernel.input_sets[0].operands, torch.linspace(-1, 2, 50, dtype=torch.float64)
    assert BLOCK_ELEMENTS >= 70 * 64
    whole = Finished("nt", EPILOGUES["bias_relu"]).project(operands, signs)
    monkeypatch.setattr("backends.torch.gemm.epilogue.BLOCK_ELEMENTS", 64 * 9)
    torch.testing.assert_close(Finished("nt", EPILOGUES["bias_relu"]).project(operands, signs), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k", [64, 16384])
@pytest.mark.parametrize("epilogue", WITH_BIAS)
@pytest.mark.parametrize("format_name", ON_CPU)
def test_a_wrong_bias_is_caught(format_name: str, epilogue: str, k: int) -> None:
    case = finished_case(format_name, epilogue, 48, 40, k)
    right = ACTIVATIONS[EPILOGUES[epilogue].activation]
    for bias in (torch.zeros_like, lambda each: each.roll(1), lambda each: each[:1].expand_as(each), lambda each: 1.1 * each):
        kernel = other(bias, right)(jobs.prepare(case, any_cpu(), 1, seed=3))
        assert not fresh_verdict(kernel, case, seed=10).passed


@pytest.mark.parametrize("k", [64, 16384])
@pytest.mark.parametrize("epilogue", WITH_ACTIVATION)
@pytest.mark.parametrize("format_name", ON_CPU)
def test_a_wrong_activation_is_caught(format_name: str, epilogue: str, k: int) -> None:
    case = finished_case(format_name, epilogue, 48, 40, k)
    for name, activation in ACTIVATIONS.items():
        kernel = other(as_it_is, activation)(jobs.prepare(case, any_cpu(), 1, seed=3))
        assert fresh_verdict(kernel, case, seed=10).passed is (name == EPILOGUES[epilogue].activation), name


def test_the_two_forms_of_gelu_are_told_apart_where_the_format_can() -> None:
    case = finished_case("fp32", "bias_gelu_tanh", 96, 80, 256)
    kernel = other(as_it_is, gelu_by_erf)(jobs.prepare(case, any_cpu(), 1, seed=3))
    assert not fresh_verdict(kernel, case, seed=10).passed


@pytest.mark.parametrize(
    "bug", [bug for bug in BUGS if bug.name in ("unwritten tile", "stale output", "NaN")], ids=lambda bug: bug.name
)
@pytest.mark.parametrize("epilogue", FOLLOWED)
def test_bugs_of_products_are_caught_behind_an_epilogue(epilogue: str, bug: Bug) -> None:
    case = finished_case("bf16", epilogue, 160, 144, 512)
    kernel = bug.wrap(jobs.prepare(case, any_cpu(), 2, seed=3))
    assert not [fresh_verdict(kernel, case, seed) for seed in (10, 11)][-1].passed


@pytest.mark.parametrize("distribution", ["uniform", "integer", "zeros", "constant", "outliers"])
@pytest.mark.parametrize("epilogue", FOLLOWED)
@pytest.mark.parametrize("format_name", ON_CPU)
def test_what_a_check_cannot_see_is_said_and_all_else_is_caught(format_name: str, epilogue: str, distribution: str) -> None:
    case, expected = finished_case(format_name, epilogue, 96, 80, 512, distribution=distribution), EPILOGUES[epilogue]
    right = ACTIVATIONS[expected.activation]
    wrong = {
        "a bias left out": (torch.zeros_like, right),
        "a bias of another column": (lambda each: each.roll(1), right),
        "an activation left out": (as_it_is, as_it_is),
    }
    said = jobs.prepare(case, any_cpu(), 1, seed=3).describe()["check_cannot_see"]
    assert fresh_verdict(jobs.prepare(case, any_cpu(), 1, seed=3), case, seed=10).passed
    for name, (bias, activation) in wrong.items():
        if expected.activation if "activation" in name else expected.bias:
            kernel = other(bias, activation)(jobs.prepare(case, any_cpu(), 1, seed=3))
            assert fresh_verdict(kernel, case, seed=10).passed is (name in said), (name, said)
        else:
            assert name not in said


@pytest.mark.parametrize("seeds", [20, pytest.param(50, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("epilogue", FOLLOWED)
@pytest.mark.parametrize("format_name", ON_CPU)
def test_sound_kernels_never_fail(format_name: str, epilogue: str, seeds: int) -> None:
    case = finished_case(format_name, epilogue, 96, 80, 256)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    failed = [result.reason for seed in range(seeds) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


@pytest.mark.parametrize("epilogue", FOLLOWED)
@pytest.mark.parametrize("format_name", ON_CPU)
def test_a_right_element_of_a_few_never_fails(format_name: str, epilogue: str) -> None:
    """A bias may cancel the product, and an activation let next to nothing through."""
    for shape in ((1, 1, 64), (3, 5, 64)):
        case = finished_case(format_name, epilogue, *shape)
        kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
        failed = [result.reason for seed in range(100) if not (result := fresh_verdict(kernel, case, seed)).passed]
        assert failed == []


def test_what_an_activation_takes_is_of_order_one() -> None:
    for k in (1, 60, 4096, 20000):
        kernel = jobs.prepare(finished_case("fp32", "silu", 64, 64, k), any_cpu(), 1, seed=3)
        a, b = (each.data.to(torch.float64) for each in kernel.input_sets[0].operands)
        assert 0.5 < float((a @ b.t()).std()) < 2


def test_numbers_keep_their_digits_when_they_are_made_smaller() -> None:
    """What rounding costs is that of the same numbers without an epilogue."""
    plain = jobs.prepare(gemm_case("bf16", 64, 64, 512), any_cpu(), 1, seed=3).describe()["quantisation_error"]
    followed = jobs.prepare(finished_case("bf16", "bias", 64, 64, 512), any_cpu(), 1, seed=3).describe()["quantisation_error"]
    assert followed == pytest.approx(plain, rel=1e-9)


# The last of them is the deepest that fits: seconds to draw, and the next is refused below.
@pytest.mark.parametrize("k", [262_017, 2**18, 2**19, pytest.param(11_863_283, marks=pytest.mark.thorough)])
def test_constant_data_fit_however_deep_the_product_is_since_weights_are_the_smaller(k: int) -> None:
    """Without an epilogue fp16 is past its largest number from k=262,017 on."""
    case = finished_case("fp16", "bias", 2, 3, k, distribution="constant")
    assert jobs.reason(case, any_cpu()) is None
    assert "adds up to" in (jobs.reason(finished_case("fp16", "none", 2, 3, k, distribution="constant"), any_cpu()) or "")
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    assert float(kernel.input_sets[0].operands[1].data.min()) > 0
    result = fresh_verdict(kernel, case, seed=4)
    assert result.passed, result.reason


@pytest.mark.parametrize("k", [11_863_284, 2**24])
def test_weights_that_would_all_round_to_zero_are_refused(k: int) -> None:
    told = jobs.reason(finished_case("fp16", "bias_relu", 2, 3, k, distribution="constant"), any_cpu()) or ""
    assert told.startswith(f"constant data over k={k} has a B of 2.98e-08, which fp16 rounds to 0; take a smaller k")
    weights = Weights(torch.empty(4, dtype=torch.float16), k=k)
    weights.refill("constant", 1)
    assert not weights.data.any()
    assert jobs.reason(finished_case("bf16", "bias_relu", 2, 3, k, distribution="constant"), any_cpu()) is None
    assert jobs.reason(finished_case("fp16", "bias_relu", 2, 3, k), any_cpu()) is None


def test_separate_launches_are_named_with_what_passes_between_them() -> None:
    described = jobs.prepare(finished_case("bf16", "bias_relu", 32, 48, 64), any_cpu(), 1, seed=3).describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["epilogue"], described["passing_bytes"]) == ("separate launches", 2 * 32 * 48 * 2)
    alone = jobs.prepare(finished_case("bf16", "silu", 32, 48, 64), any_cpu(), 1, seed=3).describe()
    assert (alone["epilogue"], alone["passing_bytes"]) == ("separate launches", 32 * 48 * 2)
    assert "epilogue" not in jobs.prepare(gemm_case("bf16", 32, 48, 64), any_cpu(), 1, seed=3).describe()


@pytest.mark.parametrize(
    ("epilogue", "shape", "call", "told"),
    [
        ("bias", (64, 64, 64), "torch.addmm", "fused"),
        ("bias_relu", (64, 64, 64), "torch._addmm_activation", "fused"),
        ("bias_gelu_tanh", (64, 64, 64), "torch._addmm_activation", "fused"),
        ("silu", (64, 64, 64), "torch.mm, then silu", "separate launches"),
        ("bias_relu", (1, 64, 64), "torch.mm, then add_, then relu", "separate launches"),
        ("bias", (64, 1, 64), "torch.mm, then add_", "separate launches"),
        ("bias", (64, 64, 1), "torch.mm, then add_", "separate launches"),
    ],
)
def test_on_a_gpu_cublaslt_fuses_what_torch_hands_it(epilogue: str, shape: tuple[int, int, int], call: str, told: str) -> None:
    way = by_library(EPILOGUES[epilogue], Sizes(*shape, "nt"), HOPPER)
    assert (way.call, told_of(way.passes)) == (call, told)


def test_nothing_is_said_to_be_fused_where_the_environment_keeps_torch_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISABLE_ADDMM_CUDA_LT", "1")
    assert by_library(EPILOGUES["bias"], Sizes(64, 64, 64, "nt"), HOPPER).passes == 1


@pytest.mark.parametrize("layout", ["nt", "nn", "tn"])
@pytest.mark.parametrize("epilogue", ["bias", "bias_relu"])
def test_the_fused_calls_compute_the_formula(epilogue: str, layout: str) -> None:
    """The calls themselves, which a CPU has too; their GELU is by erf there."""
    kernel = jobs.prepare(finished_case("fp32", epilogue, 33, 40, 64, layout=layout), any_cpu(), 1, seed=3)
    operands, output = kernel.input_sets[0].operands, kernel.input_sets[0].output
    by_library(EPILOGUES[epilogue], Sizes(33, 40, 64, layout), HOPPER).bind(operands, output)()
    torch.testing.assert_close(output.to(torch.float64), kernel.formula.tile(operands, 0, 0, 33, 40), rtol=1e-4, atol=1e-5)


def triton_case(case: Case) -> Case:
    return replace(case, implementation="triton")


@pytest.mark.parametrize(("target", "said"), [(HOPPER, "has no epilogue bias; library"), (any_cpu(), "runs on GPUs")])
def test_a_refusal_names_what_another_epilogue_would_not_help_first(target: Target, said: str) -> None:
    assert said in (jobs.reason(triton_case(finished_case("bf16", "bias", 32, 32, 32)), target) or "")


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (finished_case("int8", "bias", 32, 32, 32), ("epilogue bias", "fp32, tf32, bf16, fp16", "not for int8")),
        (finished_case("fp64", "silu", 32, 32, 32), ("epilogue silu", "not for fp64")),
        (finished_case("fp8_e4m3", "bias_relu", 32, 32, 32), ("not for fp8_e4m3",)),
        (finished_case("bf16", "bias_gelu", 32, 32, 32), ("no epilogue 'bias_gelu'", "bias_gelu_tanh")),
        (
            finished_case("fp32", "bias", 32, 32, 32, switches={"emulation": "bf16x9"}),
            ("emulated product", "without epilogue bias"),
        ),
    ],
)
def test_refusals_say_why(case: Case, words: tuple[str, ...]) -> None:
    for target in (any_cpu(), HOPPER):
        reason = jobs.reason(case, target)
        assert reason is not None
        assert all(word in reason for word in words), reason
        assert "\n" not in reason


def test_a_footprint_holds_what_is_allocated() -> None:
    case = finished_case("bf16", "bias", 32, 48, 64)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    assert kernel.set_bytes == GemmJob().footprint(case.workload).set_bytes
