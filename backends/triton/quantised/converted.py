"""mxfp8 converted to bf16 by a pass over each operand in every launch, and multiplied by the bf16 kernel.

A product in fp8 would have its sums scaled after every 32 numbers along K.  For a tile of 128 x 128 that is two instructions a
sum, 256 cycles of a Hopper unit's 128 lanes, where the multiplier takes 128.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from backends.torch.gemm.operands import quantised_of
from backends.torch.gemm.way import CONVERTED
from backends.triton.gemm import config as plain_config
from backends.triton.gemm.call import Call, Matrices
from backends.triton.gemm.call import call as plain_call
from backends.triton.gemm.config import Config
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Buffers
from backends.triton.gemm.port import describe, emulation
from backends.triton.gemm.problem import Problem as Plain
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.scaled import to_bf16
from suite.jobs.emulation import EXECUTED_PIPE, PASSING_BYTES

WIDE = torch.bfloat16


class Converted:
    """See ``product.Product``.  All sets share the bf16 copies: their launches follow each other."""

    conversion = None

    def __init__(self, problem: Problem, device: Device, buffers: Sequence[Buffers]) -> None:
        self._plain, self._device, self._buffers = plain_of(problem), device, list(buffers)
        where = buffers[0].output.device
        self._wide = tuple(torch.empty(rows, problem.k, dtype=WIDE, device=where) for rows in (problem.m, problem.n))

    def configs(self) -> Sequence[Config]:
        return plain_config.candidates(self._plain, self._device)

    def unfit(self, config: Config) -> str | None:
        if plain_config.fits(config, self._plain, self._device):
            return None
        needed = plain_config.shared_bytes(config, self._plain, self._device)
        return f"{config.label} takes {needed} bytes of shared memory, of {self._device.shared_bytes}"

    def takes(self, conversion: None) -> bool:
        return True

    def calls(self, config: Config) -> list[list[Call]]:
        a_wide, b_wide = self._wide
        calls = []
        for a, b, output in self._buffers:
            passes = [
                to_bf16(each.data, quantised_of(each).scales.view(torch.uint8), wide)
                for each, wide in zip((a, b), self._wide, strict=True)
            ]
            calls.append([*passes, plain_call(self._plain, config, self._device, Matrices(a_wide, b_wide, output))])
        return calls

    def describe(self, config: Config) -> Mapping[str, Any]:
        return {
            **describe(self._plain, config, self._device),
            "conversion": "mxfp8 to bf16 in memory, in every launch",
            EXECUTED_PIPE: "bf16",
            PASSING_BYTES: sum(each.nbytes for each in self._wide),
        }

    def emulation(self, facts: Mapping[str, Any]) -> str:
        return emulation(facts, "bf16") or CONVERTED

    def close(self) -> None:
        self._buffers, self._wide = [], ()


def plain_of(problem: Problem) -> Plain:
    """The product of the converted operands."""
    return Plain("bf16", problem.m, problem.n, problem.k, "nt")
