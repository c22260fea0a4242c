"""How long a case of XLA takes beside settling and sampling: compiling, on a GPU with an autotuner, and a check on the host."""

from suite.backend import DeviceInfo
from suite.work import Work

COMPILE_S = 1.5
# The autotuner tries kernels on the device: products of 8192^3 and 16384^3 took 28.8 and 110.8 s in fp8, 4.4 and 15.7 s in int8
# on an H200 with JAX 0.11.2.
TUNING_S_PER_OPERATION = 1e-11
# Outputs and operands come to the host, which multiplies them in float64: calibrations of 4 GiB took 9.8 to 12.1 s there.
CHECK_S_PER_BYTE = 2.5e-9


def besides_s(work: Work, info: DeviceInfo) -> float:
    """Seconds for one case on one device; only GPUs have the autotuner."""
    is_gpu = (info.architecture or "").startswith(("sm_", "gfx"))
    tuning_s = TUNING_S_PER_OPERATION * work.flops if is_gpu else 0.0
    return COMPILE_S + tuning_s + CHECK_S_PER_BYTE * work.compulsory_bytes
