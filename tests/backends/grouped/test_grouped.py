"""Grouped products on torch devices: results by definition, what is refused with which remedy, and what is said of them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from backends.failures import classify
from backends.torch import jobs
from backends.torch.grouped_gemm import library, loop
from backends.torch.grouped_gemm.operands import allocated
from backends.torch.grouped_gemm.product import GroupedProduct
from backends.torch.grouped_gemm.way import Task
from backends.torch.target import Target, cuda_target
from suite.backend import Probe
from suite.jobs.emulation import as_executed
from suite.jobs.grouped_gemm import Sizes
from suite.outcome import Outcome
from tests.backends.cases import addresses, any_cpu, run_all
from tests.backends.grouped.cases import JOB, STORED, by_definition, fresh_verdict, grouped_case, prepared
from tests.backends.preserving import preserved

SIZES = Sizes(6, 40, 128, 128, "skewed")
IDLE = Sizes(8, 48, 32, 64, "skewed", top_k=2)  # the first group has no row
META = Target(torch.device("meta"), "cuda", {}, {}, "sm_90")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    with preserved():
        yield


def on_host(capability: tuple[int, int]) -> Target:
    return replace(cuda_target(0, capability), device=torch.device("cpu"))


def results(kernel: Any) -> torch.Tensor:
    run_all(kernel)
    if getattr(kernel, "hands_over", False):
        kernel.hand_over(range(kernel.sets))
    return kernel.input_sets[0].output.double()


@pytest.mark.parametrize("implementation", ["library", "loop"])
@pytest.mark.parametrize(("format_name", "scaling"), STORED)
@pytest.mark.parametrize("sizes", [SIZES, SIZES._replace(alignment=16)], ids=["ragged", "filled up"])
def test_each_row_is_multiplied_by_the_b_of_its_group(
    format_name: str, scaling: str | None, implementation: str, sizes: Sizes
) -> None:
    case = grouped_case(implementation, format_name, sizes, scaling=scaling)
    if implementation == "library" and scaling:
        assert jobs.reason(case, any_cpu())
        return
    kernel = prepared(case)
    right = by_definition(kernel, sizes)
    assert float((results(kernel) - right).norm() / right.norm()) < JOB.tolerance(case.workload, case.switches)


def test_the_reference_is_the_product_by_definition_wherever_a_tile_lies() -> None:
    kernel = prepared(grouped_case("loop", "fp32", IDLE))
    right, formula = by_definition(kernel, IDLE), GroupedProduct(IDLE)
    operands = kernel.input_sets[0].operands
    for row, column, rows, columns in ((0, 0, 48, 32), (7, 3, 1, 5), (8, 0, 4, 32), (47, 31, 1, 1), (5, 8, 30, 16)):
        tile = formula.tile(operands, row, column, rows, columns)
        assert torch.allclose(tile, right[row : row + rows, column : column + columns])
    vector = torch.randn(32, dtype=torch.float64)
    assert torch.allclose(formula.project(operands, vector), right @ vector)


def test_of_few_elements_the_expected_size_is_told() -> None:
    """One row of one column over 4096 terms of variance 1: about 64, whatever the result is by chance."""
    kernel = prepared(grouped_case("loop", "fp32", Sizes(2, 1, 1, 4096)))
    assert kernel.reference(Probe(0, (), 5)).expected_size == pytest.approx(64, rel=0.15)


def test_new_data_go_into_the_same_buffers_and_the_ends_stay() -> None:
    case = grouped_case("loop", "bf16", IDLE)
    kernel = prepared(case, sets=2)
    before, a = addresses(kernel), kernel.input_sets[1].operands[0].data.clone()
    assert fresh_verdict(kernel, case, seed=8).passed
    assert fresh_verdict(kernel, case, seed=9).passed
    assert addresses(kernel) == before
    assert not torch.equal(a, kernel.input_sets[1].operands[0].data)
    assert kernel.input_sets[1].operands[2].data.tolist() == list(IDLE.ends) == [0, 8, 9, 10, 22, 39, 41, 48]


def test_ends_that_a_kernel_destroyed_are_written_again() -> None:
    kernel = prepared(grouped_case("library", "bf16", IDLE))
    kernel.input_sets[0].operands[2].data.zero_()
    kernel.refill(4)
    assert kernel.input_sets[0].operands[2].data.tolist() == list(IDLE.ends)


def test_what_a_launch_touches_leaves_out_the_b_of_groups_without_rows() -> None:
    """Seven of eight groups, 48 rows: A, B, eight numbers of 4 bytes, C, all of bf16."""
    kernel = prepared(grouped_case("loop", "bf16", IDLE))
    assert kernel.set_bytes == 2 * (48 * 64 + 7 * 32 * 64 + 48 * 32) + 8 * 4


def test_results_of_the_library_are_kept_until_they_are_looked_at() -> None:
    kernel = prepared(grouped_case("library", "bf16", IDLE))
    kernel.enqueue(0)
    assert kernel.observe(Probe(0, (), 1)).unwritten == 0
    kernel.poison()
    assert kernel.observe(Probe(0, (), 1)).unwritten == 48 * 32


def test_the_description_says_how_rows_are_spread_and_what_more_is_moved() -> None:
    case = grouped_case("loop", "bf16", IDLE._replace(alignment=16))
    described = prepared(case).describe()
    assert json.loads(json.dumps(described)) == described
    assert described["rows_of_groups"] == {"fewest": 0, "most": 17, "groups_without": 1, "filled_up": 80}
    assert described["traffic_bytes"] == 2 * (128 * 64 + 7 * 32 * 64 + 128 * 32) + 8 * 4
    assert (described["groups_launched"], described["call"]) == (7, "torch.mm")
    assert described["offsets"].startswith("known on the host")
    assert 0.001 < described["quantisation_error"] < 0.004  # of bf16: a unit roundoff of 2^-8, for each of two operands
    executed = as_executed(JOB.work(case.workload), described)
    assert (executed.traffic_bytes, executed.pipe) == (described["traffic_bytes"], "bf16")


def test_what_is_converted_says_so_with_what_passes_through_memory() -> None:
    """A whole in bf16, and the B of the five groups that have rows; multiplied in fp32 where a CPU has no bf16."""
    case = grouped_case("loop", "fp8_e4m3", SIZES)
    described = prepared(case).describe()
    assert described["emulation"].startswith("operands converted to bf16, then a bf16 matmul")
    assert described["passing_bytes"] == 2 * (40 + 5 * 128) * 128
    assert (described["executed_pipe"], described["switches_without_effect"]) == ("fp32", ["fp8_fast_accum"])
    assert prepared(case).execution == "emulated"
    native = prepared(case, target=replace(any_cpu(), emulated={"fp8_e4m3": "converted"}))
    assert native.describe()["executed_pipe"] == "bf16"


def test_rows_that_fill_up_are_moved_too_where_numbers_are_converted() -> None:
    """The library's traffic is that of all stored rows, beside what passes from the conversion to the products."""
    sizes = SIZES._replace(alignment=16)
    case = grouped_case("loop", "fp8_e4m3", sizes)
    described = prepared(case).describe()
    stored = sizes.height * (128 + 4) + 5 * 128 * (128 + 4) + 6 * 4 + sizes.height * 128 * 2
    passing = 2 * (sizes.height + 5 * 128) * 128
    assert sizes.height > 40
    assert (described["traffic_bytes"], described["passing_bytes"]) == (stored, passing)
    assert as_executed(JOB.work(case.workload), described).traffic_bytes == stored + 2 * passing


def test_only_what_is_rounded_has_a_quantisation_error_and_8_bits_have_more() -> None:
    kernels = {name: prepared(grouped_case("loop", name, SIZES)) for name in ("fp32", "fp16", "fp8_e4m3")}
    errors = {name: kernel.describe().get("quantisation_error") for name, kernel in kernels.items()}
    assert errors["fp32"] is None
    assert errors["fp16"] < 5e-4 < 0.02 < errors["fp8_e4m3"] < 0.06
    assert "quantisation_error" not in prepared(grouped_case("loop", "bf16", SIZES, distribution="zeros")).describe()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"implementation": "looop"}, "a grouped product through torch has no implementation 'looop'; did you mean 'loop'?"),
        ({"implementation": "triton"}, "implementation triton runs on GPUs; the device here is a CPU"),
        ({"format_name": "fp32", "implementation": "triton"}, "implementation triton takes bf16, fp16, fp8_e4m3, not fp32"),
        ({"distribution": "norml"}, "has no distribution 'norml'; did you mean 'normal'?"),
        ({"switches": {"tf32": True}}, "a grouped product through torch has no switch 'tf32'"),
        ({"said": {"accumulate": "fp16"}}, "bf16 accumulates in fp32 here, not in fp16"),
        ({"said": {"scaling": "row"}}, "bf16 has no scaling 'row': its numbers have no scales"),
        ({"format_name": "fp8_e4m3", "said": {"scaling": "tensor"}}, "fp8_e4m3 has no scaling 'tensor'; choose from: row"),
        ({"format_name": "fp8_e4m3"}, "torch._scaled_grouped_mm runs on GPUs; take loop"),
        (
            {"format_name": "fp8_e4m3", "scaling": "block"},
            "torch's grouped products take fp8 with scales of rows, not of blocks; take loop",
        ),
        (
            {"sizes": SIZES._replace(k=100)},
            "torch.nn.functional.grouped_mm takes k that are multiples of 8, not k=100; pad to k=104",
        ),
        ({"sizes": SIZES._replace(spread="skew")}, "has no spread of rows 'skew'; did you mean 'skewed'?"),
    ],
)  # fmt: skip
def test_what_cannot_run_on_a_cpu_says_why(changes: dict[str, Any], said: str) -> None:
    case = grouped_case(**{"implementation": "library", "sizes": SIZES, **changes})
    assert said in (jobs.reason(case, any_cpu()) or "")


@pytest.mark.parametrize(
    ("format_name", "capability", "said"),
    [
        ("bf16", (9, 0), None),
        ("bf16", (10, 0), None),
        ("bf16", (8, 0), "torch has kernels for grouped products on sm_90 and sm_100, not on sm_80; take loop"),
        ("bf16", (12, 0), "torch has kernels for grouped products on sm_90 and sm_100, not on sm_120; take loop"),
        ("fp16", (9, 0), "has a kernel for bf16; of fp16 it copies the offsets to the host in each call; take loop"),
        ("fp8_e4m3", (9, 0), None),
        ("fp8_e4m3", (8, 9), "not on sm_89; take loop"),
    ],
)
def test_the_library_is_taken_where_it_has_a_kernel(format_name: str, capability: tuple[int, int], said: str | None) -> None:
    told = jobs.reason(grouped_case("library", format_name, SIZES), on_host(capability))
    assert told is None if said is None else said in (told or "")


def test_scales_ask_for_multiples_of_sixteen() -> None:
    case = grouped_case("library", "fp8_e4m3", SIZES._replace(n=120))
    assert jobs.reason(case, on_host((9, 0))) == (
        "torch._scaled_grouped_mm takes n and k that are multiples of 16, not n=120 k=128; pad to n=128 k=128"
    )
    assert "multiples of 16" in (jobs.reason(replace(case, implementation="loop"), on_host((9, 0))) or "")


@pytest.mark.parametrize("name", ["grouped_mm", "_scaled_grouped_mm"])
def test_an_older_torch_has_no_grouped_product(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.nn.functional if name == "grouped_mm" else torch, name)
    case = grouped_case("library", "bf16" if name == "grouped_mm" else "fp8_e4m3", SIZES)
    told = jobs.reason(case, on_host((9, 0))) or ""
    assert told.startswith(f"torch {torch.__version__} has no ")
    assert told.endswith("; take loop")


@pytest.mark.parametrize("format_name", ["bf16", "fp8_e4m3"])
def test_torch_itself_takes_what_the_library_is_handed_on_a_gpu(format_name: str) -> None:
    """Its rules of shapes, strides and types, without a device: tensors that have no numbers."""
    case = grouped_case("library", format_name, SIZES)
    assert library.refuses(case.workload, META) is None
    buffers = allocated(case.workload, META.device)
    made = library.make(Task(case.workload, SIZES, META, [buffers], 3, fast_accum=True))
    returned = made.launches[0]()
    assert made.returns
    assert (returned.shape, returned.dtype) == (buffers.output.shape, torch.bfloat16)


@pytest.mark.parametrize("fast", [True, False])
def test_the_library_is_handed_the_scales_of_each_row_and_of_each_groups_columns(
    fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in that multiplies as the call is documented: rows of A to the ends, B (groups, k, n)."""

    def scaled_grouped_mm(
        a: Any, b: Any, a_scales: Any, b_scales: Any, *, offs: Any, out_dtype: Any, use_fast_accum: bool
    ) -> Any:
        assert use_fast_accum is fast
        assert (a_scales.shape, b_scales.shape) == ((40,), (6, 128))
        found, first = torch.empty(a.shape[0], b.shape[2], dtype=torch.float64), 0
        for group, last in enumerate(offs.tolist()):
            product = a[first:last].double() @ b[group].double()
            found[first:last] = product * a_scales[first:last, None] * b_scales[group][None, :]
            first = last
        return found.to(out_dtype)

    monkeypatch.setattr(torch, "_scaled_grouped_mm", scaled_grouped_mm)
    case = grouped_case("library", "fp8_e4m3", SIZES, switches={"fp8_fast_accum": fast})
    kernel = prepared(case, target=on_host((9, 0)))
    assert fresh_verdict(kernel, case, seed=5).passed
    assert (kernel.execution, kernel.describe()["precision"]["fp8_fast_accum"]) == ("native", fast)


class ScaledMm:
    """A stand-in that multiplies as the call is documented, and refuses what does not lie at 16 bytes, and ``refused`` rows."""

    def __init__(self, refused: int = 0) -> None:
        self.calls: list[tuple[int, bool]] = []
        self._refused = refused

    def __call__(self, a: Any, b: Any, *, scale_a: Any, scale_b: Any, out_dtype: Any, use_fast_accum: bool, out: Any) -> None:
        assert (scale_a.shape, scale_b.shape, out_dtype) == ((len(a), 1), (1, b.shape[1]), torch.bfloat16)
        assert scale_a.is_contiguous()
        assert b.stride(0) == 1
        if len(a) == self._refused or any(each.data_ptr() % 16 for each in (a, b, scale_a, scale_b, out)):
            raise RuntimeError("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling cublasLtMatmul")
        self.calls.append((len(a), use_fast_accum))
        out.copy_((a.double() @ b.double()) * scale_a * scale_b)


@pytest.mark.parametrize("sizes", [IDLE, SIZES, SIZES._replace(alignment=16)], ids=["idle", "ragged", "filled up"])
def test_each_group_is_handed_to_the_library_with_its_own_scales(sizes: Sizes, monkeypatch: pytest.MonkeyPatch) -> None:
    """From multiples of 16 bytes on, wherever the group's rows begin."""
    stand_in = ScaledMm()
    monkeypatch.setattr(torch, "_scaled_mm", stand_in)
    case = grouped_case("loop", "fp8_e4m3", sizes, switches={"fp8_fast_accum": False})
    kernel = prepared(case, sets=2, target=on_host((9, 0)))
    for seed in (5, 6):
        assert fresh_verdict(kernel, case, seed=seed).passed
    stand_in.calls.clear()
    kernel.enqueue(0)
    assert stand_in.calls == [(count, False) for count in sizes.stored_rows if count]
    assert (kernel.execution, kernel.describe()["call"]) == ("native", "torch._scaled_mm")


def test_rows_that_the_library_does_not_multiply_are_told_before_anything_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "_scaled_mm", ScaledMm(refused=17))
    case = grouped_case("loop", "fp8_e4m3", IDLE)
    assert 17 in IDLE.rows
    with pytest.raises(NotImplementedError, match=r"a group of 17 rows by n=32 k=64 here, .*; take library or triton") as told:
        prepared(case, target=on_host((9, 0)))
    assert classify(told.value).outcome is Outcome.UNSUPPORTED


def test_another_error_of_the_library_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch, "_scaled_mm", lost)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        prepared(grouped_case("loop", "fp8_e4m3", IDLE), target=on_host((9, 0)))


def test_blocks_are_converted_for_a_loop_even_where_one_product_would_take_them() -> None:
    case = grouped_case("loop", "fp8_e4m3", SIZES, scaling="block")
    kernel = prepared(case, target=on_host((9, 0)))
    assert kernel.execution == "emulated"
    assert kernel.describe()["emulation"].endswith("a library would want the scales of each group apart")
    assert loop.refuses(case.workload, on_host((9, 0))) is None
