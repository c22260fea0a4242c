"""A device for each target: what configurations depend on beside the instruction set."""

from backends.triton.gemm.device import Device

# Units and shared memory of A100, A10, L40S, H200, B200, RTX PRO 6000, MI210, MI300X, MI355X, RX 7900 XTX and R9700: what
# their sheets in configs/hardware give as units, and what CUDA and HIP let one block have.
DEVICES = {
    device.name: device
    for device in (
        Device("80", 108, 166_912),
        Device("86", 72, 101_376),
        Device("89", 142, 101_376),
        Device("90", 132, 232_448),
        Device("100", 148, 232_448),
        Device("120", 188, 101_376),
        Device("gfx90a", 104, 65_536),
        Device("gfx942", 304, 65_536),
        Device("gfx950", 256, 163_840),
        Device("gfx1100", 96, 65_536),
        Device("gfx1201", 64, 65_536),
    )
}
