"""Products of two quantised operands as calls of their kernels."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.torch.gemm.operands import arranged_by, quantised_of
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Buffers
from backends.triton.gemm.port import emulation
from backends.triton.quantised import block_scaled, scaled_config
from backends.triton.quantised.prepack import by_blocks
from backends.triton.quantised.problem import STEP, Problem
from backends.triton.quantised.scaled_config import Config

CONVERTED_AT_ONCE = 4096  # numbers a program


class Operand(NamedTuple):
    """Elements as stored (rows x k) and scales, blocks along K first (``prepack.by_blocks`` or ``prepack.e8m0_words``)."""

    data: torch.Tensor
    scales: torch.Tensor


def fp8_in_blocks(config: Config, a: Operand, b: Operand, c: torch.Tensor, *, described: bool = True) -> Call:
    """fp8 in blocks of 1 x 128 (A) and 128 x 128 (B, whose scales stay n / 128 x k / 128)."""
    (m, k), n = a.data.shape, b.data.shape[0]
    blocks: Sequence[Any] = (a.data, b.data, a.scales)
    if described:
        shapes = ([config.block_m, 128], [config.block_n, 128], [1, config.block_m])
        blocks = [TensorDescriptor.from_tensor(*each) for each in zip(blocks, shapes, strict=True)]
    constants = {**config.constants, "DESCRIBED": described}
    return Call(block_scaled.fp8_in_blocks, _grid(config, m, n), (*blocks, b.scales, c, m, n, k), constants, config.options)


def mxfp8_as_it_is(config: Config, a: Operand, b: Operand, c: torch.Tensor) -> Call:
    """mxfp8 multiplied in fp8: scales are applied to the sums of each block of 32."""
    (m, k), n = a.data.shape, b.data.shape[0]
    arguments = (
        TensorDescriptor.from_tensor(a.data, [config.block_m, 32]),
        TensorDescriptor.from_tensor(b.data, [config.block_n, 32]),
        TensorDescriptor.from_tensor(a.scales, [1, config.block_m]),
        TensorDescriptor.from_tensor(b.scales, [1, config.block_n]),
        c,
        *(m, n, k),
    )
    return Call(block_scaled.mxfp8_as_it_is, _grid(config, m, n), arguments, config.constants, config.options)


def to_bf16(data: torch.Tensor, scales: torch.Tensor, out: torch.Tensor) -> Call:
    """mxfp8 as stored (scales uint8, rows x k / 32) to bf16 in ``out`` (rows x k): exact but for numbers under 2^-126."""
    rows, k = data.shape
    grid = (rows, -(-k // CONVERTED_AT_ONCE), 1)
    return Call(block_scaled.mxfp8_to_bf16, grid, (data, scales, out, k), {"BLOCK": CONVERTED_AT_ONCE}, {"num_warps": 8})


def _grid(config: Config, m: int, n: int) -> tuple[int, int, int]:
    return -(-m // config.block_m) * -(-n // config.block_n), 1, 1


class Fp8InBlocks:
    """See ``product.Product``.  The scales of A are kept twice: as they are stored, and turned."""

    conversion = None

    def __init__(self, problem: Problem, device: Device, buffers: Sequence[Buffers]) -> None:
        self._problem, self._device = problem, device
        self._sets = [(each, by_blocks(quantised_of(each.a).scales)) for each in buffers]
        for each, turned in self._sets:
            arranged_by(each.a, partial(by_blocks, quantised_of(each.a).scales, turned))

    def configs(self) -> Sequence[Config]:
        return scaled_config.candidates(self._problem, self._device)

    def unfit(self, config: Config) -> str | None:
        return scaled_config.unfit(config, self._problem, self._device)

    def takes(self, conversion: None) -> bool:
        return True

    def calls(self, config: Config) -> list[list[Call]]:
        calls = []
        for each, turned in self._sets:
            a, b = Operand(each.a.data, turned), Operand(each.b.data, quantised_of(each.b).scales)
            calls.append([fp8_in_blocks(config, a, b, each.output, described=self._device.has_descriptors)])
        return calls

    def describe(self, config: Config) -> Mapping[str, Any]:
        return {
            "loads": "tensor descriptors" if self._device.has_descriptors else "pointers",
            "tiles": f"{config.block_m}x{config.block_n}x{STEP[self._problem.format]}",
            "warps": config.warps,
            "stages": config.stages,
            "group": config.group,
            **({"registers_at_most": config.registers} if config.registers else {}),
        }

    def emulation(self, facts: Mapping[str, Any]) -> str:
        return emulation(facts, self._problem.format)

    def close(self) -> None:
        self._sets = []
