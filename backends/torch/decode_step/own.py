"""Roofbench's own kernels (``backends.triton.streaming``) for a whole step."""

from backends.torch.decode_step.way import Task
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
    from backends.triton.gemm.device import of_torch
    from backends.triton.streaming import layers

    return layers.reason(workload, of_torch(target.device.index))


def make(name: str, task: Task) -> Made:
    """See ``backends.triton.streaming.step``."""
    from backends.triton.gemm.device import of_torch
    from backends.triton.streaming import step

    return step.make(name, task, of_torch(task.target.device.index))
