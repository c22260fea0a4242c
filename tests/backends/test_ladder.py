"""The precision ladder on CPU torch: every format with every scaling is right, said how, and found wrong when it is."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from backends.rounding import to_tf32
from backends.torch import jobs
from backends.torch.data import DISTRIBUTIONS, Drawn
from backends.torch.gemm.error import quantisation_error
from backends.torch.gemm.library import way_of
from backends.torch.gemm.operands import QuantisedOperand, quantised_formats
from backends.torch.gemm.sizes import Sizes
from backends.torch.kernel import TorchKernel
from backends.torch.quantise.formats import every_format
from backends.torch.quantise.quantised import Quantised
from backends.torch.target import cpu_target, cuda_target
from suite.case import Case
from suite.hardware.spec import is_pipe
from suite.jobs.emulation import as_executed
from suite.jobs.gemm.formats import FORMATS, variant_of
from tests.backends.cases import any_cpu, fresh_verdict, gemm_case, run_all, verdict
from tests.backends.ladder import JOB, PLAIN, ladder, title
from tests.backends.misreading import (
    as_it_is,
    misread,
    scales_of_the_next_block,
    scales_of_the_next_row,
    swapped_nibbles,
    swapped_sixes,
    twice_the_scale,
    without_tensor_scale,
    without_zero_points,
)
from tests.backends.planted_bugs import BUGS, Bug

# K is a multiple of 128, which is what scales need at most; rows fall short of blocks of 128.
SHAPES = [(1, 16, 128), (17, 48, 384), (144, 160, 256), (300, 16, 128)]
CASES = ladder(96, 80, 256)
SCALED = [case for case in CASES if case.workload.format != "int8" or "scaling" in dict(case.workload.semantics)]
every_case = pytest.mark.parametrize("case", CASES, ids=title)
every_scaled_case = pytest.mark.parametrize("case", SCALED, ids=title)


def of_shape(case: Case, m: int, n: int, k: int, distribution: str = "normal") -> Case:
    sizes = {"m": m, "n": n, "k": k}
    params = tuple((name, sizes.get(name, value)) for name, value in case.workload.params)
    return replace(case, workload=replace(case.workload, params=params, distribution=distribution))


def prepared(case: Case, sets: int = 1, seed: int = 3) -> TorchKernel:
    assert jobs.reason(case, any_cpu()) is None
    return jobs.prepare(case, any_cpu(), sets, seed)


def quantised(kernel: Any, set_index: int = 0) -> tuple[QuantisedOperand, ...]:
    return tuple(each for each in kernel.input_sets[set_index].operands if isinstance(each, QuantisedOperand))


def test_the_ladder_has_every_format_and_scaling_there_is() -> None:
    titles = [title(case) for case in CASES]
    assert len(titles) == len(set(titles)) == 21
    assert {case.workload.format for case in CASES} == set(FORMATS) - set(PLAIN)
    ampere = cuda_target(0, (8, 0))  # without fp8, so that operands of all formats are quantised ones
    stored = {each.title for case in CASES for each in quantised_formats(case.workload, ampere) if each}
    assert {each.title for each in every_format()} - stored == {"fp8_e5m2 128x128"}  # weights are never in E5M2


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@every_case
def test_a_product_is_that_of_the_stored_numbers(case: Case, shape: tuple[int, int, int]) -> None:
    case = of_shape(case, *shape)
    kernel = prepared(case, sets=2)
    run_all(kernel)
    result = verdict(kernel, case)
    assert result.passed, result.reason
    assert fresh_verdict(kernel, case, seed=8).passed


@pytest.mark.parametrize("distribution", [name for name in DISTRIBUTIONS if name != "normal"])
@every_case
def test_every_distribution_passes(case: Case, distribution: str) -> None:
    case = of_shape(case, 48, 80, 256, distribution)
    assert fresh_verdict(prepared(case), case, seed=6).passed


@every_case
def test_a_sound_product_is_never_refused(case: Case) -> None:
    case = of_shape(case, 48, 64, 256)
    kernel = prepared(case)
    failed = [result.reason for seed in range(15) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


@every_scaled_case
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_is_caught(bug: Bug, case: Case) -> None:
    case = of_shape(case, 160, 144, 512)
    kernel = bug.wrap(prepared(case, sets=2))
    assert not [fresh_verdict(kernel, case, seed) for seed in (10, 11)][-1].passed


def read_wrongly(case: Case, change: Callable[[Quantised], Quantised]) -> str:
    """What a check says of a kernel that misreads its operands; the sound reading of the same operands passes it."""
    kernel = prepared(case)
    assert fresh_verdict(misread(as_it_is)(kernel), case, seed=11).passed
    result = fresh_verdict(misread(change)(kernel), case, seed=11)
    assert not result.passed
    return result.reason


def having(condition: Callable[[Quantised], bool]) -> Any:
    chosen = [case for case in SCALED if any(condition(each) for each in map(_empty, _formats(case)))]
    assert chosen
    return pytest.mark.parametrize("case", chosen, ids=title)


def _formats(case: Case) -> list[Any]:
    return [each for each in quantised_formats(case.workload, any_cpu()) if each is not None]


def _empty(format_: Any) -> Quantised:
    return Quantised.empty(format_, (80, 256), torch.device("cpu"))


@having(lambda of: of.format.element.bits == 4)
def test_swapped_nibbles_are_found(case: Case) -> None:
    assert "relative error" in read_wrongly(case, swapped_nibbles)


@having(lambda of: of.format.element.bits == 6)
def test_six_bits_in_another_order_are_found(case: Case) -> None:
    assert "relative error" in read_wrongly(case, swapped_sixes)


@having(lambda of: of.zero_points is not None)
def test_zero_points_left_out_are_found(case: Case) -> None:
    assert "relative error" in read_wrongly(case, without_zero_points)


@having(lambda of: of.scales.shape[0] > 1)
def test_scales_of_another_row_are_found(case: Case) -> None:
    assert read_wrongly(of_shape(case, 160, 144, 512, "outliers"), scales_of_the_next_row)


@having(lambda of: of.scales.shape[1] > 1)
def test_scales_of_another_block_are_found(case: Case) -> None:
    assert read_wrongly(of_shape(case, 160, 144, 512, "outliers"), scales_of_the_next_block)


@having(lambda of: True)
def test_one_wrong_scale_is_found(case: Case) -> None:
    assert read_wrongly(of_shape(case, 64, 64, 512), twice_the_scale)


@having(lambda of: of.tensor_scale is not None)
def test_a_tensor_scale_left_out_is_found(case: Case) -> None:
    assert "relative error" in read_wrongly(case, without_tensor_scale)


@every_scaled_case
def test_one_seed_means_the_same_numbers_in_every_format(case: Case) -> None:
    """What is stored is what fp32 operands of the same seed are, rounded as the format's quantiser does."""
    kernel = prepared(case, seed=7)
    exact = jobs.prepare(gemm_case("fp32", 96, 80, 256), any_cpu(), 1, seed=7)
    for stored, drawn in zip(kernel.input_sets[0].operands, exact.input_sets[0].operands, strict=True):
        if isinstance(stored, QuantisedOperand):
            again = Quantised.empty(stored.quantised.format, stored.quantised.shape, torch.device("cpu"))
            again.fill(lambda start, stop, x=drawn.data: x[start:stop])
            pairs = zip(again.buffers, stored.quantised.buffers, strict=True)
            assert all(torch.equal(x.reshape(-1).view(torch.uint8), y.reshape(-1).view(torch.uint8)) for x, y in pairs)


@pytest.mark.parametrize("chunk", [1 << 22, 1000], ids=str)
def test_rows_are_drawn_as_the_whole_is_in_any_order(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from backends.torch import data

    monkeypatch.setattr(data, "CHUNK_ELEMENTS", chunk)
    whole = data.Operand.empty((90, 70), torch.float32, torch.device("cpu"))
    whole.refill("outliers", 5)
    drawn = Drawn((90, 70), "outliers", 5, torch.device("cpu"))
    for start, stop in ((0, 90), (89, 90), (3, 40), (40, 90), (0, 1)):
        assert torch.equal(drawn.rows(start, stop), whole.data[start:stop])


@every_scaled_case
def test_refill_is_in_place_and_reaches_what_a_library_reads(case: Case) -> None:
    kernel = prepared(case, sets=2)
    before = [tensor.data_ptr() for each in kernel.input_sets for operand in each.operands for tensor in operand.buffers]
    assert fresh_verdict(kernel, case, seed=21).passed
    first = kernel.input_sets[0].output.clone()
    assert fresh_verdict(kernel, case, seed=22).passed
    assert not torch.equal(first, kernel.input_sets[0].output)
    assert fresh_verdict(kernel, case, seed=21).passed
    assert torch.equal(first, kernel.input_sets[0].output)
    assert before == [
        tensor.data_ptr() for each in kernel.input_sets for operand in each.operands for tensor in operand.buffers
    ]


@every_case
def test_operands_take_the_bytes_that_the_job_counts(case: Case) -> None:
    """Of the real buffers; the library's own copies are beside them."""
    kernel, variant, (m, n, k, _) = prepared(case), variant_of(case.workload), Sizes.of(case.workload)
    a, b = (sum(tensor.nbytes for tensor in operand.buffers) for operand in kernel.input_sets[0].operands)
    assert (a, b) == (variant.a.stored_bytes(m, k), variant.b.stored_bytes(n, k))
    assert kernel.set_bytes == JOB.work(case.workload).compulsory_bytes == JOB.footprint(case.workload).set_bytes


@every_case
def test_the_description_says_what_ran(case: Case) -> None:
    kernel = prepared(case)
    described = kernel.describe()
    assert json.loads(json.dumps(described)) == described
    assert (kernel.execution == "emulated") is bool(described["emulation"])
    stored = described.get("stored", {})
    assert {name: each["stored_bytes"] for name, each in stored.items()} == {
        name: operand.quantised.stored_bytes.total
        for name, operand in zip(("a", "b"), kernel.input_sets[0].operands, strict=True)
        if isinstance(operand, QuantisedOperand)
    }
    if "executed_pipe" in described:
        assert is_pipe(described["executed_pipe"])
        assert kernel.execution == "emulated"
    work = JOB.work(case.workload)
    moved = as_executed(work, described).traffic_bytes
    assert moved == (work.compulsory_bytes + 2 * described["passing_bytes"] if "passing_bytes" in described else None)
    assert ("passing_bytes" in described) is (described["call"] != "torch._int_mm")


def errors(case: Case) -> float:
    told = prepared(case).describe()["quantisation_error"]
    assert isinstance(told, float)
    return told


@every_scaled_case
def test_the_quantisation_error_is_that_of_the_whole_product(case: Case) -> None:
    case = of_shape(case, 192, 160, 512)
    kernel = prepared(case, seed=9)
    exact = jobs.prepare(gemm_case("fp32", 192, 160, 512), any_cpu(), 1, seed=9)
    a, b = (each.numbers(0, each.data.shape[0]) for each in kernel.input_sets[0].operands)
    exact_a, exact_b = (each.data.double() for each in exact.input_sets[0].operands)
    whole = float((a @ b.t() - exact_a @ exact_b.t()).norm() / (exact_a @ exact_b.t()).norm())
    assert kernel.describe()["quantisation_error"] == pytest.approx(whole, rel=0.1)


def test_fewer_bits_and_coarser_scales_cost_more() -> None:
    of = {title(case): errors(of_shape(case, 128, 128, 512)) for case in SCALED}
    assert of["mxfp4"] > of["mxfp6_e2m3"] > of["int8-row"]
    assert of["mxfp4"] > of["nvfp4"] > of["fp8_e4m3-row"]
    assert of["fp8_e5m2-row"] > of["fp8_e4m3-row"]
    assert of["mxfp4"] > of["mxfp4a16"] > of["w8a16"]
    outliers = {title(case): errors(of_shape(case, 128, 128, 512, "outliers")) for case in SCALED}
    assert outliers["int8-tensor"] > 2 * of["int8-tensor"]
    assert outliers["fp8_e4m3-tensor"] < 2 * of["fp8_e4m3-tensor"]  # floats have room for them


@pytest.mark.parametrize(("shape", "seed"), [((64, 64, 1024), 46), ((1, 64, 128), 25)])
def test_a_zero_point_beside_an_outlier_is_as_exact_as_its_kernel_can_have_it(shape: tuple[int, int, int], seed: int) -> None:
    """The kernel keeps it times its scale in bf16: of these draws that is more than other data allows."""
    case = gemm_case("w4a16", *shape, distribution="outliers", semantics={"zero_point": True})
    assert fresh_verdict(prepared(case), case, seed=seed).passed


@pytest.mark.parametrize("layout", ["nt", "nn", "tn"])
def test_rounding_of_plain_formats_is_told_in_every_layout(layout: str) -> None:
    def told(name: str) -> Any:
        return (
            jobs.prepare(gemm_case(name, 70, 90, 300, layout=layout), any_cpu(), 1, seed=4).describe().get("quantisation_error")
        )

    assert [told(name) for name in ("fp64", "fp32", "int8")] == [None] * 3
    assert 2**-11 < told("bf16") < 2**-8
    assert 2**-14 < told("fp16") < 2**-11


def test_tf32_rounds_to_the_nearest_of_ten_bits() -> None:
    values = np.array([1.0, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-20, -1 - 3 * 2.0**-11, 0.0])
    expected = [1.0, 1.0, 1 + 2.0**-9, 1 + 2.0**-10, -1 - 2.0**-9, 0.0]
    assert to_tf32(values).tolist() == expected


def test_the_error_of_tf32_is_that_of_its_rounding() -> None:
    kernel = jobs.prepare(gemm_case("fp32", 70, 90, 300), any_cpu(), 1, seed=4)
    error = quantisation_error(kernel, "tf32", Sizes(70, 90, 300, "nt"))
    assert error is not None
    assert 2**-14 < error < 2**-11


def test_zeros_have_no_relative_error() -> None:
    kernel = jobs.prepare(gemm_case("bf16", 8, 8, 8, distribution="zeros"), any_cpu(), 1, seed=4)
    assert "quantisation_error" not in kernel.describe()


@pytest.mark.parametrize(
    ("name", "semantics", "shape", "words"),
    [
        ("w8a16", {}, (8, 8, 65), "k that are multiples of 16, not k=65; pad to k=80"),
        ("w4a16", {}, (8, 24, 128), "n that are multiples of 16, not n=24; pad to n=32"),
        ("w4a16", {}, (8, 16, 64), "multiple of 128 along K, not k=64; pad K to 128"),
        ("mxfp4", {}, (8, 8, 40), "multiple of 32 along K, not k=40; pad K to 64"),
        ("fp8_e4m3", {"scaling": "block"}, (8, 8, 64), "multiple of 128 along K"),
        ("w8a16", {"zero_point": True}, (8, 8, 64), "has no zero point"),
        ("nvfp4", {"scaling": "row"}, (8, 8, 64), "with row scales is not offered"),
    ],
)
def test_what_cannot_be_had_on_a_cpu_says_what_can(name: str, semantics: Any, shape: tuple[int, int, int], words: str) -> None:
    reason = jobs.reason(gemm_case(name, *shape, semantics=semantics), any_cpu())
    assert reason is not None
    assert words in reason
    assert "\n" not in reason


@pytest.mark.parametrize("layout", ["nn", "tn", "tt"])
@every_scaled_case
def test_other_layouts_are_for_formats_that_are_not_quantised(case: Case, layout: str) -> None:
    params = tuple((name, layout if name == "layout" else value) for name, value in case.workload.params)
    turned = replace(case, workload=replace(case.workload, params=params))
    reason = jobs.reason(turned, any_cpu())
    if title(case) == "fp8_e4m3-tensor":
        assert reason is None
    else:
        assert reason is not None
        assert f"with K contiguous, as in layout nt, not {layout}; take nt" in reason


# What each device does with what: the call, and the unit that multiplies where it is not the format's own.
HOPPER = {
    "int8": ("torch._int_mm", None),
    "int8-tensor": ("torch._int_mm, then scales", None),
    "int8-row": ("torch._int_mm, then scales", None),
    "fp8_e4m3-tensor": ("torch._scaled_mm", None),
    "fp8_e4m3-row": ("torch._scaled_mm", None),
    "fp8_e4m3-block": ("torch._scaled_mm_v2", None),
    "fp8_e5m2-tensor": ("torch._scaled_mm", None),
    "fp8_e5m2-row": ("torch._scaled_mm", None),
    "w8a16": ("torch._weight_int8pack_mm, then a copy", "fp32"),
    "w4a16": ("torch._weight_int4pack_mm, then a copy", None),
    "w4a16-shifted": ("torch._weight_int4pack_mm, then a copy", None),
}
BLACKWELL = {
    **{name: ran for name, ran in HOPPER.items() if name != "fp8_e4m3-block"},
    **dict.fromkeys(("mxfp8_e4m3", "mxfp4", "nvfp4"), ("torch._scaled_mm_v2", None)),
}
BLACKWELL_OF_DESKTOPS = {name: ran for name, ran in BLACKWELL.items() if name != "mxfp4"}
AMPERE = {name: ran for name, ran in HOPPER.items() if not name.startswith("fp8")}
TURING = {name: ran for name, ran in AMPERE.items() if name.startswith("int8")}


@pytest.mark.parametrize(
    ("capability", "ran", "wide"),
    [
        pytest.param((12, 0), BLACKWELL_OF_DESKTOPS, "bf16", id="sm_120"),
        pytest.param((10, 0), BLACKWELL, "bf16", id="sm_100"),
        pytest.param((9, 0), HOPPER, "bf16", id="sm_90"),
        pytest.param((8, 0), AMPERE, "bf16", id="sm_80"),
        pytest.param((7, 5), TURING, "fp32", id="sm_75"),
    ],
)
@every_case
def test_what_no_library_takes_is_converted_to_bf16_and_says_why(
    case: Case, capability: tuple[int, int], ran: dict[str, tuple[str, str | None]], wide: str
) -> None:
    way = way_of(case.workload, cuda_target(0, capability))
    expected = ran.get(title(case), ("torch.mm on bf16 copies", wide))
    assert (way.call, way.pipe) == expected
    assert bool(way.emulation) is (way.pipe is not None)
    if title(case) not in ran:
        assert way.emulation.startswith("operands converted to bf16, then a bf16 matmul: ")
        assert len(way.emulation) > 60
        assert way.emulation.endswith("; bf16 computed in fp32 by the library: compute capability 7.5 is below 8.0") is (
            wide == "fp32"
        )
        assert "\n" not in way.emulation


@pytest.mark.parametrize(("isa", "pipe"), [((), "fp32"), (("avx512_bf16",), "bf16")], ids=["without bf16", "with bf16"])
@pytest.mark.parametrize("name", ["fp8_e4m3-tensor", "fp8_e4m3-row", "mxfp4", "mxfp4a16"])
def test_a_cpu_multiplies_bf16_copies_on_the_unit_that_it_has(name: str, isa: tuple[str, ...], pipe: str) -> None:
    way = way_of(next(case for case in CASES if title(case) == name).workload, cpu_target(isa))
    assert way.pipe == pipe
    assert ("; bf16 converted to fp32 inside the library" in way.emulation) is (pipe == "fp32")
