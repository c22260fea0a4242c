"""Which jobs torch devices run: one entry a job, naming the functions that judge and prepare its cases."""

from collections.abc import Callable
from typing import NamedTuple

from backends.torch import attention, calibration, collective, decode, decode_step, gemm, grouped_gemm
from backends.torch.target import Target
from suite.backend import Kernel, Sampler
from suite.case import Case
from suite.errors import nearest


class Port(NamedTuple):
    """A job's side of this backend: why a case cannot run, how one is made ready, and how it is timed where the job knows.

    ``own_fp8`` says that it stores fp8 in the encoding of the device, where others have OCP's, which any can convert.
    """

    reason: Callable[[Case, Target], str | None]
    prepare: Callable[[Case, Target, int, int], Kernel]
    sampler: Callable[[Kernel], Sampler] | None = None
    own_fp8: bool = False

    def stored(self, target: Target) -> Target:
        return target if self.own_fp8 else target.in_ocp()


PORTS = {
    "gemm": Port(gemm.reason, gemm.prepare, own_fp8=True),
    "grouped_gemm": Port(grouped_gemm.reason, grouped_gemm.prepare),
    "attention": Port(attention.reason, attention.prepare),
    "decode": Port(decode.reason, decode.prepare),
    "decode_step": Port(decode_step.reason, decode_step.prepare),
    "calibration": Port(calibration.reason, calibration.prepare),
    "collective": Port(collective.reason, collective.prepare, collective.sampler),
}


def reason(case: Case, target: Target) -> str | None:
    """Why a case cannot run on ``target``; ``None`` when it can."""
    port = PORTS.get(case.workload.job)
    if port is None:
        return f"no port of job {case.workload.job!r} to torch on {target.kind}{nearest(case.workload.job, PORTS)}"
    return port.reason(case, port.stored(target))


def prepare(case: Case, target: Target, sets: int, seed: int) -> Kernel:
    """Make a supported case ready on ``target``."""
    port = PORTS[case.workload.job]
    return port.prepare(case, port.stored(target), sets, seed)


def sampler(case: Case, kernel: Kernel) -> Sampler | None:
    """The job's own sampler; ``None`` where the backend's are meant."""
    own = PORTS[case.workload.job].sampler
    return None if own is None else own(kernel)
