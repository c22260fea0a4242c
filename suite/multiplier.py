"""Which unit a plan expects to multiply a product on a device: the format's own, or what stands in for it."""

from collections.abc import Callable

from suite.backend import DeviceInfo
from suite.case import Workload
from suite.hardware.makers import is_cpu
from suite.jobs.emulation import WIDE_ON_A_CPU, pipe_on_a_cpu
from suite.work import Work


def expected_pipe(workload: Workload, work: Work, info: DeviceInfo, lacks: Callable[[str | None], bool]) -> str | None:
    """The pipe by whose peak a product is reckoned; ``lacks`` says of one whether the device has no known peak for it.

    A GPU converts a format without a peak to bf16; what a CPU multiplies in its place does not depend on the peaks.
    """
    on_cpu = is_cpu(info)
    pipe = (pipe_on_a_cpu(info.backend, workload) if on_cpu and work.flops else None) or work.pipe
    if not lacks(pipe):
        return pipe
    return WIDE_ON_A_CPU if on_cpu or lacks("bf16") else "bf16"
