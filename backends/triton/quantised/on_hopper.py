"""One product of fp8 in scaled blocks by the kernel of ``backends.triton.fp8_blocks`` for Hopper."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

from backends.torch.gemm.operands import arranged_by, quantised_of
from backends.triton.fp8_blocks import hopper_config
from backends.triton.fp8_blocks.hopper_call import Tensors, product
from backends.triton.fp8_blocks.hopper_config import APART, BLOCK, PAIRS, TURNS, HopperConfig, shared_bytes, with_room
from backends.triton.gemm.call import Call
from backends.triton.gemm.config import Tile, cycles
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Buffers
from backends.triton.gemm.port import emulation
from backends.triton.gemm.problem import Problem as Plain
from backends.triton.quantised.prepack import by_blocks
from backends.triton.quantised.problem import Problem

FORMAT = "fp8_e4m3"
OTHERS = "gluon takes fp8_e4m3 with scales of blocks (scaling=block); triton takes others"
WARPS = 8  # that multiply
# In their order at 8192^3 on an H200, the first of which was the first at 4096^3 too.  Wider tiles take less from the cache for
# each product, of which a square of 128 needs as much as a cache that feeds every unit at once has: 64 bytes a cycle.
CONFIGS = (
    HopperConfig(4, 256, 8, sums=APART, staged=True),
    HopperConfig(6, 128, 8, sums=PAIRS),
    HopperConfig(6, 128, 16, sums=PAIRS),
    HopperConfig(4, 256, 8, sums=TURNS, staged=True),
    HopperConfig(4, 256, 16, sums=TURNS, staged=True),
    HopperConfig(4, 256, 16, sums=TURNS),
    HopperConfig(4, 256, 8, sums=APART),
    HopperConfig(4, 128, 16, sums=APART),
    HopperConfig(8, 64, 16, sums=PAIRS),
)


def reason(problem: Problem, device: Device) -> str | None:
    """Why the kernel does not take a product or a device; ``None`` where it does."""
    return OTHERS if problem.format != FORMAT else hopper_config.reason(_plain(problem), device, CONFIGS)


def candidates(problem: Problem, device: Device) -> list[HopperConfig]:
    """The cheapest first, by the model of the products whose sums are promoted; of equals as in the table."""
    return sorted(with_room(CONFIGS, device), key=lambda config: _cycles(config, problem, device))


def call(config: HopperConfig, device: Device, given: Tensors) -> Call:
    """The product of one input set."""
    return product(config, given, device.units, -(-given.a.shape[0] // config.block_m))


class OnHopper:
    """See ``product.Product``: scales of A are turned after each refill."""

    conversion = None

    def __init__(self, problem: Problem, device: Device, buffers: Sequence[Buffers]) -> None:
        self._problem, self._device = problem, device
        self._sets = [_tensors(each) for each in buffers]

    def configs(self) -> Sequence[HopperConfig]:
        return candidates(self._problem, self._device)

    def unfit(self, config: HopperConfig) -> str | None:
        needed = shared_bytes(config)
        if needed <= self._device.shared_bytes:
            return None
        return f"{config.label} takes {needed} bytes of shared memory, of {self._device.shared_bytes}"

    def takes(self, conversion: None) -> bool:
        return True

    def calls(self, config: HopperConfig) -> list[list[Call]]:
        return [[call(config, self._device, each)] for each in self._sets]

    def describe(self, config: HopperConfig) -> Mapping[str, Any]:
        return config.facts

    def emulation(self, facts: Mapping[str, Any]) -> str:
        return emulation(facts, self._problem.format)

    def close(self) -> None:
        self._sets = []


def _tensors(each: Buffers) -> Tensors:
    stored: torch.Tensor = quantised_of(each.a).scales
    turned = by_blocks(stored)
    arranged_by(each.a, partial(by_blocks, stored, turned))
    return Tensors(each.a.data, each.b.data, each.output, turned, quantised_of(each.b).scales)


def _cycles(config: HopperConfig, problem: Problem, device: Device) -> float:
    return cycles(Tile(config.block_m, config.block_n, BLOCK, WARPS), _plain(problem), device)


def _plain(problem: Problem) -> Plain:
    """The product that has as many tiles, and rows of as many bytes."""
    return Plain(problem.format, problem.m, problem.n, problem.k, "nt", promoted=True)
