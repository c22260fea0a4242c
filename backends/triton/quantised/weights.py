"""bf16 activations times quantised weights: buffers in the order of the kernels, and the calls that multiply them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.torch.gemm.operands import arranged_by, quantised_of
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Buffers
from backends.triton.quantised import weight_config, weight_only
from backends.triton.quantised.emulated import of_converted_weights
from backends.triton.quantised.exponents import Exponents
from backends.triton.quantised.prepack import Prepacked
from backends.triton.quantised.problem import STEP, Problem
from backends.triton.quantised.weight_config import Config, tiles_on


class Scratch(NamedTuple):
    """What programs that share a tile leave for each other: sums, and a count of each tile that is 0 between launches."""

    parts: torch.Tensor
    arrived: torch.Tensor

    @classmethod
    def of(cls, problem: Problem, config: Config, device: torch.device) -> "Scratch":
        """Buffers for one launch at a time."""
        tiles = tiles_on(config, problem)
        size = tiles * config.split * config.block_n * config.block_m if config.split > 1 else 1
        return cls(torch.empty(size, dtype=torch.float32, device=device), torch.zeros(tiles, dtype=torch.int32, device=device))


class Conversion(NamedTuple):
    """How weights become bf16: ``kind`` is int4, uint4, mxfp4, mxfp4_full or int8; ``asm`` is PTX for two numbers at once."""

    kind: str
    asm: bool
    described: bool


def call(
    problem: Problem, how: Conversion, config: Config, x: torch.Tensor, w: Prepacked, c: torch.Tensor, held: Scratch
) -> Call:
    """C (m x n) = X (m x k, bf16) W^T."""
    m, n, k, blocks = problem.m, problem.n, problem.k, config.blocks
    per_row, turn_k = how.kind == "int8", 32 * blocks * (2 if how.kind == "int8" else 4)

    def through(matrix: torch.Tensor | None, rows: int, columns: int) -> Any:
        return matrix if matrix is None or not how.described else TensorDescriptor.from_tensor(matrix, [rows, columns])

    arguments: list[Any] = [
        through(w.words, config.block_n, 32 * blocks),
        through(x, config.block_m, turn_k),
        None if per_row else through(w.scales, blocks, config.block_n),
        through(w.zero_points, blocks, config.block_n),
        w.scales if per_row else None,
        c,
    ]
    constants: dict[str, Any] = {"BLOCK_N": config.block_n, "BLOCK_M": config.block_m, "BLOCKS": blocks}
    if config.split:
        arguments += [held.parts, held.arrived]
        constants["SPLIT"] = config.split
    else:
        constants["GROUP"] = config.group
    constants |= {"FORMAT": how.kind, "ASM": how.asm, "DESCRIBED": how.described}
    kernel = weight_only.weight_only_split if config.split else weight_only.weight_only_tiles
    grid = (tiles_on(config, problem) * config.parts, 1, 1)
    options = {"num_warps": config.warps, "num_stages": config.stages}
    return Call(kernel, grid, (*arguments, m, n, k), constants, options)


Seen = list[Exponents | None]


class WeightOnly:
    """See ``product.Product``.  Weights are kept twice: as they are stored, for the check, and in the order of the kernels.

    ``seen`` are the scales that the weights of each set have now; ``None`` where they are no powers of two, or not yet filled.
    """

    def __init__(self, problem: Problem, device: Device, buffers: Sequence[Buffers]) -> None:
        self._problem, self._device = problem, device
        self._sets = [(each, Prepacked.empty(quantised_of(each.b))) for each in buffers]
        self.seen: Seen = [None] * len(self._sets)
        for set_index, (each, packed) in enumerate(self._sets):
            # Without the product itself, which holds the operand: buffers in a cycle would outlast a case that failed.
            arranged_by(each.b, partial(_arrange, packed, self.seen, set_index))

    def configs(self) -> Sequence[Config]:
        return weight_config.candidates(self._problem, self._device)

    def unfit(self, config: Config) -> str | None:
        return weight_config.unfit(config, self._problem, self._device)

    @property
    def conversion(self) -> Conversion:
        full = any(exponents is not None and exponents.need_full for exponents in self.seen)
        kind = {"w8a16": "int8", "mxfp4a16": "mxfp4_full" if full else "mxfp4"}.get(self._problem.format)
        kind = kind or ("uint4" if self._problem.zero_point else "int4")
        return Conversion(kind, not self._device.is_amd, self._device.has_descriptors)

    def takes(self, conversion: Conversion) -> bool:
        return conversion in (self.conversion, self.conversion._replace(kind="mxfp4_full"))

    def calls(self, config: Config) -> list[list[Call]]:
        problem = self._problem
        output = self._sets[0][0].output
        held = Scratch.of(problem, config, output.device)  # of all sets: their launches follow each other
        how = self.conversion
        return [[call(problem, how, config, each.a.data, packed, each.output, held)] for each, packed in self._sets]

    def describe(self, config: Config) -> Mapping[str, Any]:
        return {
            "loads": "tensor descriptors" if self.conversion.described else "pointers",
            "tiles": f"{config.block_n}x{config.block_m}x{config.blocks * STEP[self._problem.format]}",
            "tiles_axes": "n m k",
            "warps": config.warps,
            "stages": config.stages,
            **({"programs_per_tile": config.split} if config.split else {"group": config.group}),
            "conversion": f"{self.conversion.kind} to bf16 in registers",
        }

    def emulation(self, facts: Mapping[str, Any]) -> str:
        return of_converted_weights(facts)

    def close(self) -> None:
        self._sets = []


def _arrange(packed: Prepacked, seen: Seen, set_index: int) -> None:
    """Raises ``UsageError`` for scales of mxfp4 that no conversion takes."""
    exponents = packed.fill()
    if exponents is not None:
        exponents.check()
    seen[set_index] = exponents
