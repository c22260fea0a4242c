"""Roofbench's own kernels (``backends.triton.decode``) on the buffers of every other implementation."""

from backends.torch.decode.way import Task
from backends.torch.refusals import no_own_kernels
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload

NAMES = ("triton", "triton_tuned")


def refuses(name: str, workload: Workload, target: Target) -> str | None:
    """Devices and sizes that they are not made for."""
    told = no_own_kernels(name, target)
    if told:
        return told
    from backends.triton.decode import port
    from backends.triton.gemm.device import of_torch

    return port.reason(workload, of_torch(target.device.index))


def make(name: str, task: Task) -> Made:
    """See ``backends.triton.decode.port``."""
    from backends.triton.decode import port
    from backends.triton.gemm.device import of_torch

    return port.make(name, task, of_torch(task.target.device.index))
