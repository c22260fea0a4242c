"""Occupancy against what NVIDIA's own header and LLVM's backend say of the same figures."""

import pytest

from suite.targets.limits import AMD, LIMITS
from suite.targets.names import TARGETS, TRITON
from suite.targets.occupancy import Occupancy, Taken, occupancy

# Warps of a block, registers of a thread, bytes of shared memory; the blocks that cudaOccMaxActiveBlocksPerMultiprocessor of
# cuda_occupancy.h (CUDA 13.5) gives for them with the figures of each compute capability, all memory carved out as shared.
KERNELS = (
    (4, 37, 0),
    (10, 37, 0),
    (8, 64, 0),
    (8, 212, 73728),
    (8, 155, 90000),
    (12, 168, 197032),
    (2, 168, 20000),
    (1, 213, 4096),
    (16, 128, 8192),
    (32, 64, 49152),
    (4, 255, 16384),
    (1, 12, 0),
    (3, 40, 10000),
)
BY_HEADER = {
    "sm_80": (12, 4, 4, 1, 1, 0, 6, 8, 1, 1, 2, 32, 15),
    "sm_86": (12, 4, 4, 1, 1, 0, 4, 8, 1, 1, 2, 16, 9),
    "sm_89": (12, 4, 4, 1, 1, 0, 4, 8, 1, 1, 2, 24, 9),
    "sm_90": (12, 4, 4, 1, 1, 1, 6, 8, 1, 1, 2, 32, 16),
    "sm_100": (12, 4, 4, 1, 1, 1, 6, 8, 1, 1, 2, 32, 16),
    "sm_120": (12, 4, 4, 1, 1, 0, 4, 8, 1, 1, 2, 24, 9),
}
# Waves of a workgroup, vector and scalar registers, and the waves of a SIMD that LLVM 20 wrote as "; Occupancy:" into the
# assembly of kernels without LDS.
BY_LLVM = {
    "gfx90a": ((1, 62, 18, 8), (1, 104, 18, 4), (1, 160, 18, 3), (2, 101, 18, 4), (4, 64, 18, 8), (4, 204, 18, 2)),
    "gfx942": ((1, 62, 16, 8), (1, 104, 16, 4), (2, 164, 16, 3), (8, 64, 16, 8), (8, 182, 42, 2), (4, 204, 16, 2)),
    "gfx950": ((1, 62, 16, 8), (1, 160, 16, 3), (4, 36, 16, 8), (4, 204, 16, 2)),
    "gfx1100": ((1, 114, 8, 12), (1, 228, 8, 6), (1, 256, 8, 5), (4, 68, 8, 16), (4, 120, 8, 12), (8, 124, 8, 10)),
    "gfx1201": ((1, 113, 8, 12), (1, 225, 8, 6), (2, 256, 8, 5), (4, 65, 8, 16), (8, 113, 8, 12)),
}


@pytest.mark.parametrize("target", BY_HEADER)
def test_blocks_are_those_of_nvidias_header(target: str) -> None:
    found = tuple(occupancy(target, Taken(*kernel)).blocks for kernel in KERNELS)
    assert found == BY_HEADER[target]


@pytest.mark.parametrize(("warps", "blocks", "share"), [(4, 12, 0.75), (10, 4, 0.625)])
def test_the_examples_of_the_best_practices_guide(warps: int, blocks: int, share: float) -> None:
    """CUDA C++ Best Practices Guide, "Calculating Occupancy": 37 registers in blocks of 128 and of 320 threads."""
    found = occupancy("sm_80", Taken(warps, 37, 0))
    assert (found.blocks, found.share) == (blocks, share)


@pytest.mark.parametrize("target", BY_LLVM)
def test_waves_are_those_that_llvm_writes(target: str) -> None:
    """Whole workgroups: of eight waves two to a SIMD, five of which make ten waves."""
    for warps, registers, scalar_registers, waves in BY_LLVM[target]:
        found = occupancy(target, Taken(warps, registers, 0, scalar_registers))
        assert found.warps / LIMITS[target].partitions == waves, (warps, registers)


@pytest.mark.parametrize(
    ("target", "taken", "expected"),
    [
        ("sm_90", Taken(8, 155, 213_016), Occupancy(1, 8, 0.125, "registers, shared memory")),
        ("sm_100", Taken(4, 64, 8192, tensor_columns=256), Occupancy(2, 8, 0.125, "tensor memory")),
        ("gfx942", Taken(8, 60, 49_152), Occupancy(1, 8, 0.25, "shared memory")),
        ("gfx950", Taken(4, 60, 49_152), Occupancy(3, 12, 0.375, "shared memory")),
        ("gfx942", Taken(1, 24, 0), Occupancy(32, 32, 1.0, "warps, registers")),  # a wave by itself takes no barrier
        ("gfx942", Taken(4, 24, 0, 112), Occupancy(7, 28, 0.875, "registers")),  # 800 scalar registers in steps of 16
        ("sm_80", Taken(8, 32, 170_000), Occupancy(0, 0, 0.0, "shared memory")),
        ("sm_80", Taken(8, 256, 0), Occupancy(0, 0, 0.0, "registers")),
    ],
)
def test_what_keeps_a_unit_from_holding_more_is_named(target: str, taken: Taken, expected: Occupancy) -> None:
    assert occupancy(target, taken) == expected


def test_every_gpu_of_the_matrix_has_its_limits() -> None:
    assert set(LIMITS) == {target.name for target in TARGETS if target.kind == TRITON}
    assert {name for name, limits in LIMITS.items() if limits.vendor == AMD} == {each for each in LIMITS if each[:3] == "gfx"}
