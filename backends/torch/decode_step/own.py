"""Roofbench's own kernels (``backends.triton.streaming``) for a whole step."""

from backends.torch.decode_step.way import Task
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload

NAMES = ("triton", "triton_tuned")


def refuses(name: str, workload: Workload, target: Target) -> str | None:
    """Devices and sizes that they are not made for."""
    told = not_here(name, target)
    if told:
        return told
    from backends.triton.gemm.device import of_torch
    from backends.triton.streaming import layers

    return layers.reason(workload, of_torch(target.device.index))


def not_here(name: str, target: Target) -> str | None:
    """Why none of roofbench's own kernels runs on a device; ``None`` where one may."""
    if target.kind != "cuda":
        return f"implementation {name} runs on GPUs; the device here is a {target.kind.upper()}"
    from backends.triton.works import why_not

    return why_not() or None


def make(name: str, task: Task) -> Made:
    """See ``backends.triton.streaming.step``."""
    from backends.triton.gemm.device import of_torch
    from backends.triton.streaming import step

    return step.make(name, task, of_torch(task.target.device.index))
