"""Attention on CPU torch: every implementation that runs there, and what is refused with which reason."""

import json
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import pytest
import torch

from backends.torch import compiling, jobs
from backends.torch.attention import packages
from backends.torch.attention.kernel import AttentionKernel
from backends.torch.attention.naive import BACKWARD_PASSES, FORWARD_PASSES, MASK_PASSES
from backends.torch.attention.rotation import rotation_of
from backends.torch.data import DISTRIBUTIONS
from backends.torch.target import Target
from suite.case import Case, items
from suite.jobs.attention import IMPLEMENTATIONS, AttentionJob, sizes_of
from suite.jobs.emulation import as_executed
from tests.backends.attention_cases import attention_case, fresh_verdict, run_all
from tests.backends.cases import any_cpu

HERE = ("naive", "library_flash", "library_math")
HEADS = ("4x64", "4/2x64", "4/1x128", "2x192/128", "1x256")
MASKS = ("full", "causal", "sliding_window")
FORMATS = ("fp32", "bf16", "fp16", "fp8_e4m3")
CUDA = Target(torch.device("cpu"), "cuda", {}, {}, "sm_90")


def prepared(case: Case, sets: int = 1, seed: int = 3) -> AttentionKernel:
    kernel = jobs.prepare(case, any_cpu(), sets, seed)
    assert isinstance(kernel, AttentionKernel)
    return kernel


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("implementation", HERE)
def test_matches_the_reference_in_every_format(implementation: str, heads: str, mask: str, direction: str) -> None:
    ran = 0
    for name in FORMATS:
        case = attention_case(implementation, name, heads, 2, 75, mask, direction)
        if jobs.reason(case, any_cpu()) is None:
            result = fresh_verdict(prepared(case, 2), case, seed=5)
            assert result.passed, (name, result.reason)
            ran += 1
    assert ran >= 3 or implementation != "naive"


@pytest.mark.parametrize("length", [1, 2, 64, 65])
def test_short_sequences_too(length: int) -> None:
    for direction in ("forward", "backward") if length > 1 else ("forward",):  # gradients of one token are refused, see below
        case = attention_case("naive", "fp32", "2x64", 3, length, "causal", direction)
        result = fresh_verdict(prepared(case), case, seed=5)
        assert result.passed, result.reason


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_every_distribution_passes_or_says_why_not(direction: str, distribution: str) -> None:
    for implementation in HERE:
        for name in FORMATS:
            case = attention_case(implementation, name, "4/2x64", 1, 150, "causal", direction, distribution=distribution)
            if jobs.reason(case, any_cpu()) is None:
                result = fresh_verdict(prepared(case), case, seed=6)
                assert result.passed, (implementation, name, result.reason)


def test_the_reference_agrees_with_autograd_in_float64() -> None:
    """Another way to the same numbers: torch's own attention, differentiated step by step."""
    case = attention_case("naive", "fp32", "4/2x64", 2, 90, "causal", "backward")
    kernel = prepared(case)
    each, sizes = kernel.buffers[0], sizes_of(case.workload)
    assert each.do is not None
    q, k, v = (operand.data.double().requires_grad_() for operand in (each.q, each.k, each.v))
    attend = torch.nn.functional.scaled_dot_product_attention
    wide = [side.repeat_interleave(sizes.group, dim=1) for side in (k, v)]
    gradients = torch.autograd.grad(attend(q, *wide, is_causal=True), (q, k, v), each.do.data.double())
    right = torch.cat([gradient.reshape(-1) for gradient in gradients]).view(kernel.output_shape)
    rows, columns = kernel.output_shape
    found = kernel.attention.tile(each.operands, 0, 0, rows, columns)
    assert float((found - right).norm() / right.norm()) < 1e-12
    vector = torch.randn(columns, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    projection, norms = kernel.attention.look(each.operands, vector)
    assert float((projection - right @ vector).norm() / projection.norm()) < 1e-12
    assert bool((norms >= right.norm(dim=1) * (1 - 1e-10)).all())
    assert float(norms.median()) < 2 * float(right.norm(dim=1).median())


def test_results_of_a_library_are_looked_at_where_the_check_looks() -> None:
    kernel = prepared(attention_case("library_flash"), 2)
    kernel.poison()
    kernel.enqueue(0)
    assert kernel.output_shape == (2 * 4 * 200, 64)
    kernel.hand_over([0])
    first = kernel.buffers[0].output.clone()
    assert bool(torch.isfinite(first).all())
    assert not bool(torch.isfinite(kernel.buffers[1].output).any())  # never launched
    kernel.enqueue(0)
    kernel.poison()  # forgets what was returned
    kernel.hand_over([0])
    assert not bool(torch.isfinite(kernel.buffers[0].output).any())


def test_what_a_backward_pass_is_given_follows_new_data_in_the_same_buffers() -> None:
    case = attention_case("library_flash", "fp32", direction="backward")
    kernel = prepared(case)
    saved = kernel._renewals[0].__self__.values  # type: ignore[attr-defined]
    before, addresses = [each.clone() for each in saved[:2]], [each.data_ptr() for each in saved[:2]]
    kernel.refill(99)
    assert [each.data_ptr() for each in saved[:2]] == addresses
    assert not any(torch.equal(*pair) for pair in zip(before, saved[:2], strict=True))


def test_launches_write_into_the_same_buffers() -> None:
    kernel = prepared(attention_case("naive", "fp16", direction="backward"), 2)
    addresses = [each.output.data_ptr() for each in kernel.buffers]
    run_all(kernel)
    first = kernel.buffers[0].output.clone()
    kernel.poison()
    run_all(kernel)
    assert torch.equal(kernel.buffers[0].output, first)
    assert [each.output.data_ptr() for each in kernel.buffers] == addresses


def test_a_set_touches_what_the_work_model_counts() -> None:
    for name, direction in (("bf16", "forward"), ("fp16", "backward"), ("fp8_e4m3", "forward")):
        case = attention_case("naive", name, direction=direction, semantics={"scaling": "head"} if "8" in name else None)
        assert prepared(case).set_bytes == AttentionJob().work(case.workload).compulsory_bytes


def test_naive_attention_says_what_its_scores_move() -> None:
    scores = 2 * 2 * 4 * 200 * 200
    for mask, direction, passes in (
        ("full", "forward", FORWARD_PASSES),
        ("causal", "forward", FORWARD_PASSES + MASK_PASSES),
        ("full", "backward", BACKWARD_PASSES),
    ):
        case = attention_case("naive", mask=mask, direction=direction)
        work = AttentionJob().work(case.workload)
        executed = as_executed(work, prepared(case).describe())
        assert executed.traffic_bytes == work.compulsory_bytes + passes * scores
        assert executed.pipe == "bf16"
    flash = prepared(attention_case("library_flash")).describe()
    assert "traffic_bytes" not in flash


def test_scores_that_do_not_fit_a_host_are_refused_before_they_are_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.torch.attention.naive.memory_available_bytes", lambda: 1_000_000)
    with pytest.raises(MemoryError, match=r"scores of all pairs need 0.000640 GB|scores of all pairs need"):
        prepared(attention_case("naive", "bf16", "16x64", 1, 400, "full"))


def test_fp8_is_multiplied_by_another_unit_here_and_says_so() -> None:
    kernel = prepared(attention_case("naive", "fp8_e4m3"))
    described = kernel.describe()
    assert kernel.execution == "emulated"
    assert described["executed_pipe"] == "bf16"
    assert "converted to bf16" in described["emulation"]


def error_of(name: str, distribution: str, seed: int = 3, length: int = 256, **semantics: Any) -> float:
    case = attention_case("naive", name, "4x128", 1, length, "full", distribution=distribution, semantics=semantics)
    told = prepared(case, seed=seed).describe()["quantisation_error"]
    assert isinstance(told, float)
    return told


def test_the_error_of_quantisation_falls_with_the_format_and_with_incoherent_processing() -> None:
    fp16, bf16, fp8 = (error_of(name, "normal") for name in ("fp16", "bf16", "fp8_e4m3"))
    assert 0 < fp16 < bf16 / 4 < fp8 / 16
    ratios = [
        error_of("fp8_e4m3", "outliers", seed, 1024, hadamard=True) / error_of("fp8_e4m3", "outliers", seed, 1024)
        for seed in range(4)
    ]
    assert mean(ratios) < 0.85


def test_a_scale_of_each_head_is_no_worse_than_one_of_all() -> None:
    tensor, head = (error_of("fp8_e4m3", "normal", scaling=scaling) for scaling in ("tensor", "head"))
    assert head < 1.2 * tensor
    case = attention_case("naive", "fp8_e4m3", "4x128", 1, 256, semantics={"scaling": "head"})
    scales = prepared(case).buffers[0].q.buffers[1]
    assert scales.shape == (1, 4)
    assert len(scales.unique()) == 4
    shared = prepared(attention_case("naive", "fp8_e4m3", "4x128", 1, 256)).buffers[0].q.buffers[1]
    assert len(shared.unique()) == 1


@pytest.mark.parametrize("columns", [64, 128, 192, 256])
def test_the_rotation_is_orthogonal(columns: int) -> None:
    rotation = rotation_of(columns, torch.device("cpu"))
    assert torch.allclose(rotation @ rotation.t(), torch.eye(columns), atol=1e-5)
    assert torch.equal(rotation, rotation_of(columns, torch.device("cpu")))


def test_the_description_is_json_and_names_what_ran() -> None:
    for implementation in HERE:
        described = prepared(attention_case(implementation)).describe()
        assert json.loads(json.dumps(described)) == described
        assert described["call"]
        assert described["mask_alignment"] == "the last query stands at the last key"


def test_one_seed_means_the_same_numbers_for_every_implementation() -> None:
    kernels = [prepared(attention_case(implementation)) for implementation in HERE]
    for other in kernels[1:]:
        for mine, theirs in zip(kernels[0].buffers[0].operands, other.buffers[0].operands, strict=True):
            assert torch.equal(mine.data, theirs.data)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_every_implementation_of_the_job_has_a_way_through_torch(name: str) -> None:
    """Some run here, and the others say why they do not."""
    told = jobs.reason(attention_case(name, "fp32"), any_cpu())
    assert told is None or (told.startswith((name, f"implementation {name}", "torch.compile")) and "\n" not in told)
    assert (told is None) == (name in HERE or (name == "flex" and compiling.no_cpp_compiler() is None))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (attention_case("library_flash", heads="2x192/128"), "q,k,v to have the same last dimension"),
        (attention_case("library_flash", mask="sliding_window"), "only as a mask in memory"),
        (attention_case("library_flash", "fp8_e4m3"), "takes no fp8"),
        (attention_case("library_math", direction="backward"), "no backward operation of its own"),
        (attention_case("library_cudnn"), "library_cudnn is not on a CPU"),
        (attention_case("library_efficient"), "library_efficient is not on a CPU"),
        (attention_case("flex", direction="backward"), "inside autograd only"),
        (attention_case("flex", "fp8_e4m3"), "takes no fp8"),
        (attention_case("naive", "fp8_e4m3", direction="backward"), "forward only"),
        (attention_case("naive", direction="backward", distribution="constant"), "cannot be checked"),
        (attention_case("naive", direction="backward", distribution="outliers"), "cannot be checked"),
        (attention_case("naive", direction="backward", length=1), "gradients of sequences of 1 token cannot be checked"),
        (attention_case("naive", direction="backward", mask="sliding_window", window=1), "gradients of a window of 1 token"),
        (attention_case("naive", distribution="outliers"), "library_* keep them in fp32"),
        (attention_case("naiv"), "did you mean 'naive'"),
        (attention_case("naive", "bf17"), "did you mean 'bf16'"),
        (attention_case("naive", distribution="norml"), "did you mean 'normal'"),
        (attention_case("naive", semantics={"scaling": "head"}), "its numbers have no scales"),
        (attention_case("naive", "fp8_e4m3", semantics={"scaling": "row"}), "choose from: tensor, head"),
        (attention_case("naive", semantics={"hadamard": True}), "not for bf16"),
        (attention_case("naive", semantics={"accumulate": "fp16"}), "not in fp16"),
        (replace(attention_case("naive"), switches=items({"tf32": True})), "no switch 'tf32'"),
    ],
)
def test_refusals_say_why(case: Case, words: str) -> None:
    told = jobs.reason(case, any_cpu())
    assert told is not None
    assert words in told
    assert "\n" not in told


def test_a_package_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "installed", lambda package: None)
    assert jobs.reason(attention_case("flash_attn_4"), CUDA) == "flash_attn_4 is not installed; pip install flash-attn-4"
    monkeypatch.setattr(packages, "installed", lambda package: "4.0")
    assert jobs.reason(attention_case("flash_attn_4"), CUDA) is None
    assert "needs sm_90" in (jobs.reason(attention_case("flash_attn_4"), replace(CUDA, architecture="sm_80")) or "")
    assert "not fp32" in (jobs.reason(attention_case("flash_attn", "fp32"), CUDA) or "")
    assert "autograd" in (jobs.reason(attention_case("flash_attn", direction="backward"), CUDA) or "")


def test_flex_is_refused_where_nothing_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run all the same, and write its scores to memory."""
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    assert jobs.reason(attention_case("flex"), any_cpu()) == "TORCHDYNAMO_DISABLE=1 keeps torch from compiling; unset it"


@pytest.mark.skipif(compiling.no_cpp_compiler() is not None, reason="nothing that compiles C++ here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own modules, which its compiler loads
@pytest.mark.parametrize("lengths", [(256,), pytest.param(range(64, 384, 32), marks=pytest.mark.thorough)], ids=len)
def test_flex_attention_is_compiled_and_right(lengths: Sequence[int]) -> None:
    """However many cases a process has had before."""
    for length in lengths:
        case = attention_case("flex", "fp32", "2/1x64", 1, length, "sliding_window")
        kernel = prepared(case)
        result = fresh_verdict(kernel, case, seed=4)
        assert result.passed, result.reason
        described = kernel.describe()
        assert described["compile_s"] > 0
        assert json.loads(json.dumps(described)) == described
