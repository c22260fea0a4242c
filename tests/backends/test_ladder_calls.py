"""What CUDA's libraries are handed: stand-ins read it as ATen and cuBLAS document it, and the product must come out right.

They multiply in host memory.  What the libraries themselves make of it is for ``tests/backends/cuda/test_ladder.py``.
"""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from backends.torch import jobs
from backends.torch.gemm import integers, weight_only
from backends.torch.gemm.library import way_of
from backends.torch.gemm.sizes import Sizes
from backends.torch.quantise.elements import E2M1, decode
from backends.torch.quantise.packing import unpack
from backends.torch.quantise.swizzle import unswizzle
from backends.torch.target import Target, cuda_target
from suite.case import Case
from suite.jobs.emulation import as_executed
from suite.jobs.gemm import GemmJob
from tests.backends.cases import fresh_verdict, gemm_case
from tests.backends.ladder import ladder, title
from tests.backends.preserving import preserved

M, N, K = 132, 272, 640  # rows and K blocks that fall short of tiles, and five blocks of 128 along K


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    with preserved():
        yield


def on_host(capability: tuple[int, int]) -> Target:
    return replace(cuda_target(0, capability), device=torch.device("cpu"))


def case_of(name: str, m: int = M, n: int = N, k: int = K) -> Case:
    return next(case for case in ladder(m, n, k, backend="cuda") if title(case) == name)


def elements(data: torch.Tensor) -> torch.Tensor:
    """A matrix of fp8, or of pairs of fp4, in float64."""
    if data.dtype == torch.float4_e2m1fn_x2:
        return decode(E2M1, unpack(data.view(torch.uint8), 4))
    return data.to(torch.float64)


TENSOR, BLOCKS_OF_16, BLOCKS_OF_32, ROWS_OF_128, SQUARES_OF_128 = 0, 2, 3, 4, 5
PLAIN, TILES = 0, 1


def spread_scales(rows: int, k: int, scales: list[torch.Tensor], recipes: list[int], swizzles: list[int]) -> torch.Tensor:
    """What each number of rows x k is to be multiplied with."""
    (of_blocks, *of_tensor), (recipe, *others) = scales, recipes
    assert len(scales) == len(recipes) == len(swizzles)
    if recipe == ROWS_OF_128:
        assert (of_blocks.shape, of_blocks.stride(), swizzles) == ((rows, k // 128), (1, rows), [PLAIN])
        return of_blocks.repeat_interleave(128, 1).to(torch.float64)
    if recipe == SQUARES_OF_128:
        along_k, along_rows = -(-(k // 128) // 4) * 4, -(-rows // 128)
        assert (of_blocks.shape, of_blocks.stride(), swizzles) == ((along_k, along_rows), (1, along_k), [PLAIN])
        whole = of_blocks[: k // 128].t().repeat_interleave(128, 0)[:rows]
        return whole.repeat_interleave(128, 1).to(torch.float64)
    width = {BLOCKS_OF_16: 16, BLOCKS_OF_32: 32}[recipe]
    assert swizzles[0] == TILES
    assert others == [TENSOR] * len(of_tensor)
    assert of_blocks.is_contiguous()
    blocks = unswizzle(of_blocks, rows, k // width).to(torch.float32).to(torch.float64)
    for each in of_tensor:
        blocks = blocks * each.to(torch.float64)
    return blocks.repeat_interleave(width, 1)


def scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scales: list[torch.Tensor],
    a_recipes: list[int],
    a_swizzles: list[int],
    b_scales: list[torch.Tensor],
    b_recipes: list[int],
    b_swizzles: list[int],
    bias: None,
    dtype: torch.dtype,
    *,
    out: torch.Tensor,
) -> None:
    """``aten::_scaled_mm_v2.out``: A row-major, B column-major."""
    assert a.is_contiguous()
    assert b.t().is_contiguous()
    assert (bias, dtype) == (None, out.dtype)
    of_a, of_b = elements(a), elements(b.t())
    of_a *= spread_scales(*of_a.shape, a_scales, a_recipes, a_swizzles)
    of_b *= spread_scales(*of_b.shape, b_scales, b_recipes, b_swizzles)
    out.copy_(of_a @ of_b.t())


@pytest.mark.parametrize(
    ("name", "capability", "recipes"),
    [
        ("fp8_e4m3-block", (9, 0), ([ROWS_OF_128], [SQUARES_OF_128])),
        ("mxfp8_e4m3", (10, 0), ([BLOCKS_OF_32], [BLOCKS_OF_32])),
        ("mxfp4", (10, 3), ([BLOCKS_OF_32], [BLOCKS_OF_32])),
        ("nvfp4", (12, 0), ([BLOCKS_OF_16, TENSOR], [BLOCKS_OF_16, TENSOR])),
    ],
)
def test_scales_lie_as_the_library_reads_them(
    monkeypatch: pytest.MonkeyPatch, name: str, capability: tuple[int, int], recipes: Any
) -> None:
    asked: list[Any] = []

    def call(*arguments: Any, **options: Any) -> None:
        asked.append((arguments[3], arguments[6]))
        scaled_mm(*arguments, **options)

    monkeypatch.setattr(torch.ops.aten, "_scaled_mm_v2", SimpleNamespace(out=call))
    case, target = case_of(name), on_host(capability)
    assert jobs.reason(case, target) is None
    kernel = jobs.prepare(case, target, 2, seed=3)
    assert (kernel.execution, kernel.describe()["call"]) == ("native", "torch._scaled_mm_v2")
    for seed in (4, 5):
        assert fresh_verdict(kernel, case, seed).passed
    assert asked == [recipes] * 4


@pytest.mark.parametrize("name", ["fp8_e4m3-row", "fp8_e5m2-tensor", "fp8_e5m2-row"])
def test_rows_and_tensors_are_scaled_as_torch_reads_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def call(
        a: torch.Tensor, b: torch.Tensor, *, scale_a: Any, scale_b: Any, out_dtype: Any, use_fast_accum: bool, out: Any
    ) -> None:
        rows = name.endswith("row")
        assert (scale_a.shape, scale_b.shape) == (((M, 1), (1, N)) if rows else ((), ()))
        assert rows is False or (scale_a.is_contiguous() and scale_b.is_contiguous())
        assert (out_dtype, use_fast_accum) == (torch.bfloat16, True)
        assert b.dtype == torch.float8_e4m3fn  # cuBLASLt has no product of E5M2 by E5M2
        out.copy_((a.to(torch.float64) @ b.to(torch.float64)) * scale_a.to(torch.float64) * scale_b.to(torch.float64))

    monkeypatch.setattr(torch, "_scaled_mm", call)
    case, target = case_of(name), on_host((9, 0))
    kernel = jobs.prepare(case, target, 1, seed=3)
    assert kernel.execution == "native"
    assert fresh_verdict(kernel, case, seed=4).passed


def pack(bytes_: torch.Tensor, tiles: int) -> torch.Tensor:
    """In place of the order of tensor cores: the same bytes in words, in the shape of the real one."""
    rows, half = bytes_.shape
    assert tiles == 8
    return bytes_.contiguous().view(torch.int32).view(rows // 8, half * 2 // 128, 32, 4)


def int4_mm(a: torch.Tensor, packed: torch.Tensor, group: int, carried: torch.Tensor) -> torch.Tensor:
    """Of a byte the high half comes first; a weight is (code - 8) * scale + zero."""
    rows, k = packed.shape[0] * 8, packed.shape[1] * 128
    assert carried.shape == (k // group, rows, 2)
    bytes_ = packed.contiguous().view(torch.uint8).view(rows, k // 2)
    codes = torch.stack((bytes_ >> 4, bytes_ & 15), -1).view(rows, k).to(torch.float64)
    scales, zeros = (carried[..., i].t().repeat_interleave(group, 1).to(torch.float64) for i in (0, 1))
    return (a.to(torch.float64) @ ((codes - 8) * scales + zeros).t()).to(a.dtype)


@pytest.mark.parametrize("name", ["w4a16", "w4a16-shifted"])
def test_packed_weights_are_those_that_are_stored(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(torch, "_convert_weight_to_int4pack", pack)
    monkeypatch.setattr(torch, "_weight_int4pack_mm", int4_mm)
    case, target = case_of(name), on_host((9, 0))
    kernel = jobs.prepare(case, target, 2, seed=3)
    for seed in (4, 5):
        assert fresh_verdict(kernel, case, seed).passed


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("fp8_e4m3-row", (32, 40, 256), "n and k that are multiples of 16, not n=40 k=256; pad to n=48 k=256"),
        ("fp8_e4m3-block", (17, 48, 256), "m that are multiples of 4, not m=17; pad to m=20"),
        ("int8-row", (16, 48, 256), "more than 16 rows, not m=16; pad to m=17"),
        ("int8-tensor", (32, 33, 256), "n and k that are multiples of 8, not n=33"),
        ("w4a16", (32, 44, 256), "_weight_int4pack_mm takes n that are multiples of 8, not n=44; pad to n=48"),
        ("w8a16", (32, 2**21, 1024), "matrices of up to 2147483647 numbers, not n k = 2147483648; take a smaller shape, or"),
        ("w8a16", (2**16, 2**15, 128), "not m n = 2147483648"),
    ],
)
def test_what_a_call_refuses_is_said_with_what_it_takes(name: str, shape: tuple[int, int, int], words: str) -> None:
    reason = jobs.reason(case_of(name, *shape), cuda_target(0, (9, 0)))
    assert reason is not None
    assert words in reason


def test_w8a16_takes_as_many_numbers_as_32_bits_count() -> None:
    assert jobs.reason(case_of("w8a16", 32, 2**21 - 128, 1024), cuda_target(0, (9, 0))) is None


def test_rows_of_numbers_that_share_a_byte_are_whole_units_of_16_bytes() -> None:
    """Of mxfp4 they are so by its blocks of 32; nvfp4 has blocks of 16."""
    blackwell = cuda_target(0, (10, 0))
    refused = jobs.reason(gemm_case("nvfp4", 32, 48, 80, backend="cuda"), blackwell)
    assert refused == "torch._scaled_mm_v2 with two numbers a byte takes k that are multiples of 32, not k=80; pad to k=96"
    assert jobs.reason(gemm_case("nvfp4", 32, 48, 96, backend="cuda"), blackwell) is None


@pytest.mark.parametrize(
    ("name", "capability", "library"),
    [
        ("fp8_e4m3-tensor", (8, 9), "cuBLASLt"),
        ("fp8_e5m2-tensor", (10, 0), "cuBLASLt"),
        ("fp8_e4m3-row", (8, 9), "torch's CUTLASS kernel"),
        ("fp8_e4m3-row", (9, 0), "cuBLASLt or torch's CUTLASS kernel"),
        ("fp8_e5m2-row", (10, 0), "torch's CUTLASS kernel"),
        ("fp8_e4m3-row", (12, 0), "torch's CUTLASS kernel"),
        ("fp8_e4m3-block", (9, 0), "cuBLASLt"),
        ("mxfp8_e4m3", (10, 0), "cuBLASLt"),
        ("mxfp4", (10, 3), "MSLK"),
        ("nvfp4", (10, 0), "cuBLASLt"),
    ],
)
def test_the_library_is_the_one_that_torch_takes_there(name: str, capability: tuple[int, int], library: str) -> None:
    assert way_of(case_of(name).workload, cuda_target(0, capability)).library == library


def test_what_is_converted_takes_every_size_on_every_device() -> None:
    for case in ladder(1, 3, 128, backend="cuda"):
        if way_of(case.workload, cuda_target(0, (8, 0))).pipe == "bf16":
            assert jobs.reason(case, cuda_target(0, (8, 0))) is None, title(case)


def test_torch_without_the_call_has_blocks_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "_scaled_mm_v2")
    way = way_of(case_of("fp8_e4m3-block").workload, cuda_target(0, (9, 0)))
    assert way.call == "torch.mm on bf16 copies"
    assert "has no torch._scaled_mm_v2" in way.emulation


def test_int8_sums_pass_through_memory_twice() -> None:
    assert integers.scaled("cuda").passing_bytes(Sizes(10, 20, 30, "nt")) == 10 * 20 * 8


@pytest.mark.parametrize(
    ("name", "kind", "passing_bytes"),
    [
        ("w4a16", "cpu", 2 * 10 * 20),
        ("w4a16", "cuda", 2 * 10 * 20),
        ("w8a16", "cpu", 2 * 10 * 20),
        ("w8a16", "cuda", 4 * 10 * 30 + 6 * 10 * 20),
    ],
)
def test_what_a_kernel_for_weights_returns_is_copied_and_counted(name: str, kind: str, passing_bytes: int) -> None:
    way = weight_only.way(name, kind)
    assert way.call.endswith(", then a copy")
    assert way.passing_bytes(Sizes(10, 20, 30, "nt")) == passing_bytes


def test_bytes_that_pass_are_in_the_traffic_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "_convert_weight_to_int4pack", pack)
    monkeypatch.setattr(torch, "_weight_int4pack_mm", int4_mm)
    for name, passing_bytes in (("w4a16", 2 * M * N), ("w8a16", 4 * M * K + 6 * M * N)):
        case = case_of(name)
        work = GemmJob().work(case.workload)
        executed = as_executed(work, jobs.prepare(case, on_host((9, 0)), 1, seed=3).describe())
        assert executed.traffic_bytes == work.compulsory_bytes + 2 * passing_bytes


def test_fp8_that_a_device_lacks_is_converted_too() -> None:
    ampere = cuda_target(0, (8, 0))
    case = gemm_case("fp8_e4m3", 32, 48, 64, backend="cuda", semantics={"scaling": "tensor"})
    assert jobs.reason(case, ampere) is None
    kernel = jobs.prepare(case, replace(ampere, device=torch.device("cpu")), 1, seed=3)
    assert kernel.execution == "emulated"
    described = kernel.describe()
    assert "needs sm_89 or later" in described["emulation"]
    assert described["switches_without_effect"] == ["fp8_fast_accum"]
    assert fresh_verdict(kernel, case, seed=4).passed
