"""What a configuration depends on: the instruction set of a device, its units and their shared memory."""

from typing import NamedTuple

# bf16 multiply-adds that a unit does in a cycle: half of the operations per clock on the spec sheets of A100, A10, L40S, H200,
# B200, RTX PRO 6000, MI210, MI300X and MI355X.
FMA_PER_CYCLE = {
    "80": 1024,
    "86": 512,
    "89": 512,
    "90": 2048,
    "100": 4096,
    "120": 512,
    "gfx90a": 512,
    "gfx942": 1024,
    "gfx950": 2048,
}


class Device(NamedTuple):
    """``architecture`` is an NVIDIA compute capability without its point (``90``) or an AMD target (``gfx942``).

    ``units`` are multiprocessors or compute units; ``shared_bytes`` is what one program may have of a unit's shared memory.
    """

    architecture: str
    units: int
    shared_bytes: int

    @property
    def is_amd(self) -> bool:
        return self.architecture.startswith("gfx")

    @property
    def name(self) -> str:
        """As compilers write it: ``sm_90``, ``gfx942``."""
        return self.architecture if self.is_amd else f"sm_{self.architecture}"

    @property
    def has_descriptors(self) -> bool:
        """Whether tensor descriptors become copies in hardware (TMA)."""
        return not self.is_amd and int(self.architecture) >= 90

    @property
    def multiplies_by_warpgroups(self) -> bool:
        """Whether four warps multiply together, from shared memory (wgmma, tcgen05); else each warp does, from registers."""
        return not self.is_amd and 90 <= int(self.architecture) < 120

    @property
    def has_fp8(self) -> bool:
        """Whether e4m3 as the OCP defines it is multiplied as it is; gfx942 has another e4m3."""
        return self.architecture == "gfx950" if self.is_amd else int(self.architecture) >= 89

    @property
    def fma_per_cycle(self) -> int | None:
        """Of one unit in bf16; ``None`` for an instruction set that no configuration here is made for."""
        family = self.architecture[:-1] + "0"
        return FMA_PER_CYCLE.get(self.architecture, None if self.is_amd else FMA_PER_CYCLE.get(family))

    @property
    def unknown(self) -> str | None:
        """Why no kernel here runs on it, with the devices that one is made for; ``None`` where one may."""
        if self.fma_per_cycle is not None:
            return None
        known = ", ".join(name if name.startswith("gfx") else f"sm_{name}" for name in FMA_PER_CYCLE)
        return f"no configuration of this kernel is made for {self.name}, only for {known}"


def of_torch(index: int) -> Device:
    """The device that torch has under this index."""
    import torch
    from triton.runtime import driver

    properties = torch.cuda.get_device_properties(index)
    architecture = f"{properties.major}{properties.minor}"
    if torch.version.hip is not None:
        architecture = str(properties.gcnArchName).partition(":")[0]
    shared_bytes = int(driver.active.utils.get_device_properties(index)["max_shared_mem"])  # what it refuses a kernel by
    return Device(architecture, int(properties.multi_processor_count), shared_bytes)
