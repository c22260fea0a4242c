"""Roofbench's own kernels (``backends.triton.attention``) on the buffers of every other implementation."""

from backends.torch.attention.way import Task
from backends.torch.refusals import format_reason, no_own_kernels
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload

NAMES = ("triton", "triton_tuned", "gluon")
TAKEN = ("bf16", "fp16", "fp8_e4m3")


def refuses(name: str, workload: Workload, target: Target) -> str | None:
    """Devices and sizes that they are not made for."""
    told = no_own_kernels(name, target) or format_reason(name, TAKEN, workload.format)
    if told:
        return told
    from backends.triton.attention import port
    from backends.triton.gemm.device import of_torch

    return port.reason(name, workload, of_torch(target.device.index))


def make(name: str, task: Task) -> Made:
    """See ``backends.triton.attention.port``."""
    from backends.triton.attention import port
    from backends.triton.gemm.device import of_torch

    return port.make(name, task, of_torch(task.target.device.index))
