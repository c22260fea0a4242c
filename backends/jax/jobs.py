"""Which jobs XLA runs: one entry a job, naming the functions that judge and prepare its cases."""

from collections.abc import Callable
from typing import NamedTuple

from backends.jax import attention, calibration, collective, decode, gemm
from backends.jax.collective.kernel import XlaCollective
from backends.jax.kernel import XlaKernel
from backends.jax.target import Target
from suite.case import Case
from suite.ports import choice


class Port(NamedTuple):
    """A job's side of this backend: why a case cannot run, and how a case is made ready."""

    reason: Callable[[Case, Target], str | None]
    prepare: Callable[[Case, Target, int, int], XlaKernel | XlaCollective]


PORTS = {
    "gemm": Port(gemm.reason, gemm.prepare),
    "calibration": Port(calibration.reason, calibration.prepare),
    "collective": Port(collective.reason, collective.prepare),
    "attention": Port(attention.reason, attention.prepare),
    "decode": Port(decode.reason, decode.prepare),
}


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    port = PORTS.get(case.workload.job)
    if port is None:
        return f"no port of job {case.workload.job!r} to XLA, which has {choice(PORTS)}"
    return port.reason(case, target)


def prepare(case: Case, target: Target, sets: int, seed: int) -> XlaKernel | XlaCollective:
    """Make a supported case ready on ``target``."""
    return PORTS[case.workload.job].prepare(case, target, sets, seed)
