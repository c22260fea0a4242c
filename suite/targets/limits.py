"""What a multiprocessor or compute unit of each architecture holds at once, and in which steps it hands that out.

NVIDIA: "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide, and the tables of
cuda_occupancy.h (CUDA 13): four partitions a multiprocessor, whose 16,384 registers are 512 of each of 32 lanes, handed out
to warps in steps of 256, 8 of each lane; 1 KiB of shared memory beside each block's own.  Tensor memory of compute
capability 10.0: 512 columns a multiprocessor (PTX ISA, tcgen05.alloc).

AMD: LLVM's AMDGPUBaseInfo.cpp and AMDGPU.td (20): four SIMDs a compute unit of gfx9, and of gfx11 and gfx12 in their WGP
mode, which is LLVM's default; vector registers of gfx90a and later are those of both kinds together.  LDS is of the
compute unit, of gfx11 and gfx12 of the WGP.  Without a barrier, a workgroup of one wave takes none of the places for groups.
"""

from typing import NamedTuple

NVIDIA, AMD = "nvidia", "amd"
KIB = 1024


class Limits(NamedTuple):
    """``registers`` of a lane are those of one partition; ``warps`` (waves) are of a partition, ``blocks`` of the whole unit.

    ``shared_bytes`` of the unit; ``block_shared_bytes`` what one block may have of it, ``reserved_bytes`` what the system
    takes beside each block's own.  ``scalar_registers`` of a partition, 0 where they never limit.
    """

    vendor: str
    lanes: int
    partitions: int
    warps: int
    blocks: int
    registers: int
    register_step: int
    most_registers: int
    shared_bytes: int
    block_shared_bytes: int
    shared_step: int
    reserved_bytes: int = 0
    scalar_registers: int = 0
    scalar_step: int = 1
    tensor_columns: int = 0

    @property
    def most_warps(self) -> int:
        """Of the whole unit."""
        return self.warps * self.partitions


def _nvidia(warps: int, blocks: int, shared_kib: int, tensor_columns: int = 0) -> Limits:
    shared = shared_kib * KIB
    return Limits(NVIDIA, 32, 4, warps // 4, blocks, 512, 8, 255, shared, shared - KIB, 128, KIB, tensor_columns=tensor_columns)


def _cdna(shared_kib: int, shared_step: int) -> Limits:
    shared = shared_kib * KIB
    return Limits(AMD, 64, 4, 8, 16, 512, 8, 512, shared, shared, shared_step, scalar_registers=800, scalar_step=16)


# In steps of 24 where there are 1,536 registers a lane (wave32), as on the large chips of gfx11 and on gfx12.
_RDNA = Limits(AMD, 32, 4, 16, 32, 1536, 24, 256, 128 * KIB, 64 * KIB, 1024)

LIMITS = {
    "sm_80": _nvidia(64, 32, 164),
    "sm_86": _nvidia(48, 16, 100),
    "sm_89": _nvidia(48, 24, 100),
    "sm_90": _nvidia(64, 32, 228),
    "sm_100": _nvidia(64, 32, 228, tensor_columns=512),
    "sm_120": _nvidia(48, 24, 100),
    "gfx90a": _cdna(64, 512),
    "gfx942": _cdna(64, 512),
    "gfx950": _cdna(160, 1280),
    "gfx1100": _RDNA,
    "gfx1201": _RDNA,
}
