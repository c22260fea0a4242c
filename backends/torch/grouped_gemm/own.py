"""Roofbench's own kernels (``backends.triton.grouped``) on the buffers of every other implementation."""

from backends.torch.grouped_gemm.way import Task
from backends.torch.refusals import format_reason, no_own_kernels
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload

FORMATS = {"triton": ("bf16", "fp16", "fp8_e4m3"), "triton_tuned": ("bf16", "fp16", "fp8_e4m3"), "gluon": ("fp8_e4m3",)}


def refuses(name: str, workload: Workload, target: Target) -> str | None:
    """Formats, devices and sizes that they are not made for."""
    told = format_reason(name, FORMATS[name], workload.format) or no_own_kernels(name, target)
    if told:
        return told
    from backends.triton.gemm.device import of_torch
    from backends.triton.grouped import port

    return port.reason(name, workload, of_torch(target.device.index))


def make(name: str, task: Task) -> Made:
    """See ``backends.triton.grouped.port``."""
    from backends.triton.gemm.device import of_torch
    from backends.triton.grouped import port

    return port.make(name, task, of_torch(task.target.device.index))
