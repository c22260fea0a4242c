"""Integer weights times bf16 activations, through torch's own kernels.

On a CPU both multiply in fp32, numbers converted in registers (ATen, ``int8mm_kernel.cpp`` and ``int4mm_kernel.cpp``).  On CUDA
the one for 8 bits converts activations to fp32 and multiplies without tensor cores (``int8mm.cu``), that for 4 bits multiplies
bf16 on them (``int4mm.cu``).  All return a new matrix, for none has a form that takes one: it is copied into the output.

4-bit weights are packed in an order of the kernel's own, and carry (scale, (8 - zero point) * scale) in bf16: the second is
rounded, where a zero point is far from 8.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm.operands import arranged_by, quantised_of
from backends.torch.gemm.sizes import Sizes
from backends.torch.gemm.way import Bind, Launch, Task, Way, multiples
from backends.torch.quantise.blocks import spans
from backends.torch.quantise.packing import unpack
from backends.torch.quantise.quantised import Quantised

INT8 = "torch._weight_int8pack_mm"
OWN = "torch's own kernel"
GROUP = 128
INNER_K_TILES, TILE_ROWS = 8, 8  # what CUDA's kernel takes at a time: 8 x 16 along K, and 8 rows
SHIFT = 8  # code of zero in the kernels
ROWS_AT_ONCE = 256  # while packing; both orders go by 64 rows at most
IN_FP32 = "weights converted to fp32 inside the library, and activations too"
LARGEST_INDEX = 2**31 - 1  # CUDA's kernel for 8 bits counts the numbers of each matrix in 32 bits
TAKEN = ("w8a16", "w4a16")


def way(name: str, kind: str) -> Way:
    """For one of ``TAKEN`` on a device of this kind: ``cpu``, ``cuda``, or ``hip``."""
    if name == "w4a16":
        return _four_bits(PACKINGS[kind], kind)
    own = Way(_copied(INT8), OWN, _int8, _refused_on_cpu, emulation=IN_FP32, pipe="fp32", passing_bytes=_returned_bytes)
    return own._replace(refuses=_refused_on_cuda, passing_bytes=_returned_and_wide_bytes) if kind != "cpu" else own


def _copied(call: str) -> str:
    return f"{call}, then a copy"


def _returned_bytes(sizes: Sizes) -> int:
    """The new matrix, in bf16."""
    return 2 * sizes.m * sizes.n


def _returned_and_wide_bytes(sizes: Sizes) -> int:
    """Beside it activations and results in fp32."""
    return 4 * sizes.m * sizes.k + 6 * sizes.m * sizes.n


def _refused_on_cpu(sizes: Sizes) -> str | None:
    """The kernel loads 16 numbers at a time without looking where K ends: seen with 2.13 to crash at k=65."""
    return multiples(f"{INT8} on a CPU", 16, k=sizes.k)


def _refused_on_cuda(sizes: Sizes) -> str | None:
    matrices = {"m k": sizes.m * sizes.k, "n k": sizes.n * sizes.k, "m n": sizes.m * sizes.n}
    largest = max(matrices, key=lambda name: matrices[name])
    if matrices[largest] <= LARGEST_INDEX:
        return None
    return (
        f"{INT8} on CUDA takes matrices of up to {LARGEST_INDEX} numbers, not {largest} = {matrices[largest]}; "
        "take a smaller shape, or implementation triton"
    )


class Packing(NamedTuple):
    """The order in which one kernel wants 4-bit codes, and the kernel's name in torch.

    ``shape`` is that of all packed weights; its first axis counts ``tile_rows`` of them.  ``pack`` takes codes two a byte, the
    even one in the low half; ``step`` is what the number of rows must be a multiple of.
    """

    kernel: str
    dtype: torch.dtype
    shape: Callable[[int, int], tuple[int, ...]]
    tile_rows: int
    step: int
    pack: Callable[[torch.Tensor], torch.Tensor]

    def room(self, quantised: Quantised) -> torch.Tensor:
        return torch.empty(self.shape(*quantised.shape), dtype=self.dtype, device=quantised.data.device)


def _for_cpu(codes: torch.Tensor) -> torch.Tensor:
    return torch._convert_weight_to_int4pack_for_cpu(unpack(codes, 4).to(torch.int32), INNER_K_TILES)


def _for_cuda(codes: torch.Tensor) -> torch.Tensor:
    """The kernel wants the even number of a byte in its high half."""
    return torch._convert_weight_to_int4pack(codes << 4 | codes >> 4, INNER_K_TILES)


def _tiles(rows: int, k: int) -> tuple[int, ...]:
    return rows // TILE_ROWS, k // (INNER_K_TILES * 16), 32, INNER_K_TILES // 2


PACKINGS = {
    "cpu": Packing("_weight_int4pack_mm_for_cpu", torch.uint8, lambda rows, k: (rows, k // 2), 1, 16, _for_cpu),
    "cuda": Packing("_weight_int4pack_mm", torch.int32, _tiles, TILE_ROWS, TILE_ROWS, _for_cuda),
    # Tiles of 16 rows in a buffer of the same shape (ATen, ``int4mm.cu``).
    "hip": Packing("_weight_int4pack_mm", torch.int32, _tiles, TILE_ROWS, 2 * TILE_ROWS, _for_cuda),
}


def _four_bits(packing: Packing, kind: str) -> Way:
    call = f"torch.{packing.kernel}"
    plain = Way(
        _copied(call),
        OWN,
        partial(_int4, packing),
        lambda sizes: multiples(call, packing.step, n=sizes.n),
        passing_bytes=_returned_bytes,
    )
    return plain._replace(emulation=IN_FP32) if kind == "cpu" else plain


def _int8(task: Task) -> Bind:
    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        scales = quantised_of(b).scales.view(-1)
        return lambda: output.copy_(torch._weight_int8pack_mm(a.data, b.data, scales))

    return bind


def _int4(packing: Packing, task: Task) -> Bind:
    multiply = getattr(torch, packing.kernel)

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        quantised = quantised_of(b)
        rows, k = quantised.shape
        packed = packing.room(quantised)
        carried = torch.empty(k // GROUP, rows, 2, dtype=torch.bfloat16, device=task.device)
        arranged_by(b, partial(_arrange, packing, quantised, packed, carried))
        return lambda: output.copy_(multiply(a.data, packed, GROUP, carried))

    return bind


def _arrange(packing: Packing, quantised: Quantised, packed: torch.Tensor, carried: torch.Tensor) -> None:
    scales = quantised.scales
    if quantised.zero_points is None:
        beside, flipped = torch.zeros_like(scales), 0x88  # a code and 8 more, modulo 16, is its number and 8
    else:
        beside, flipped = (SHIFT - quantised.zero_points.to(torch.float32)) * scales.to(torch.float32), 0
    carried.copy_(torch.stack((scales, beside.to(scales.dtype)), dim=-1).transpose(0, 1))
    for start, stop in spans(quantised.shape[0], ROWS_AT_ONCE, ROWS_AT_ONCE):
        codes = quantised.data[start:stop] ^ flipped
        packed[start // packing.tile_rows : stop // packing.tile_rows] = packing.pack(codes)
