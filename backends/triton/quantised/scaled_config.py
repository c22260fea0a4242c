"""How a product of fp8 in scaled blocks is cut: tiles whose sums have room for those of a block of K beside them."""

from typing import Any, NamedTuple

from backends.triton.gemm.config import ACCUMULATOR_REGISTERS, SPARE_SHARED_BYTES, Tile, cycles
from backends.triton.gemm.device import Device
from backends.triton.gemm.problem import Problem as Plain
from backends.triton.quantised.problem import STEP, Problem

SUMS = 2  # held at once: of a block of K, and of all before it


class Config(NamedTuple):
    """Constants of a compiled kernel.  ``registers`` of a thread at most, 0 for as many as it likes."""

    block_m: int
    block_n: int
    warps: int
    stages: int
    group: int = 8
    registers: int = 0

    @property
    def label(self) -> str:
        """For people: ``128x128, 8 warps, 4 stages, group 8``."""
        limit = f", {self.registers} registers" if self.registers else ""
        return f"{self.block_m}x{self.block_n}, {self.warps} warps, {self.stages} stages, group {self.group}{limit}"

    @property
    def constants(self) -> dict[str, Any]:
        return {"BLOCK_M": self.block_m, "BLOCK_N": self.block_n, "GROUP": self.group}

    @property
    def options(self) -> dict[str, int]:
        limit = {"maxnreg": self.registers} if self.registers else {}
        return {"num_warps": self.warps, "num_stages": self.stages, **limit}


# Chosen by what the compiler makes of them for sm_90; their order there is not measured yet.
BY_WARPGROUPS = (
    Config(128, 128, 8, 4),
    Config(128, 128, 8, 3, registers=128),
    Config(64, 128, 4, 4),
    Config(64, 128, 4, 3),
    Config(128, 64, 4, 4),
    Config(64, 64, 4, 4),
)
BY_WARPS = (Config(128, 128, 8, 3), Config(64, 128, 4, 2), Config(64, 64, 4, 3), Config(64, 64, 4, 2))
CONVERTED = (Config(64, 64, 4, 2), Config(64, 32, 4, 2))  # fp8 that becomes fp16 takes registers for both
AMD = (Config(128, 128, 8, 2), Config(64, 128, 4, 2), Config(64, 64, 4, 2), Config(64, 32, 4, 2))


def candidates(problem: Problem, device: Device) -> list[Config]:
    """The cheapest first, by the model of the products whose sums are promoted."""
    sound = [config for config in _offered(device) if not unfit(config, problem, device)]
    return sorted(sound, key=lambda config: _cycles(config, problem, device))


def _offered(device: Device) -> tuple[Config, ...]:
    if device.multiplies_by_warpgroups:
        return BY_WARPGROUPS
    if not device.is_amd:
        return BY_WARPS
    return AMD if device.has_fp8 else CONVERTED


def _cycles(config: Config, problem: Problem, device: Device) -> float:
    plain = Plain(problem.format, problem.m, problem.n, problem.k, "nt", promoted=True)
    return cycles(Tile(config.block_m, config.block_n, STEP[problem.format], config.warps), plain, device)


def unfit(config: Config, problem: Problem, device: Device) -> str | None:
    """Why a configuration cannot compute the product; ``None`` where it can."""
    threads = config.warps * (64 if device.is_amd else 32)
    if config.block_m * config.block_n * SUMS > ACCUMULATOR_REGISTERS * threads:
        return f"{config.label} has no room for its sums in registers"
    needed = shared_bytes(config, problem, device)
    if needed > device.shared_bytes:
        return f"{config.label} takes {needed} bytes of shared memory, of {device.shared_bytes}"
    return None


def shared_bytes(config: Config, problem: Problem, device: Device) -> int:
    """Shared memory that a program takes: blocks of both operands and the scales of A on their way."""
    stage = (config.block_m + config.block_n) * STEP[problem.format] + 4 * config.block_m
    return (config.stages - 1 if device.is_amd else config.stages) * stage + SPARE_SHARED_BYTES
