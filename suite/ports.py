"""Which jobs each backend of ours has a port of, for plans: known here without importing a framework.

The backends' own registries are in ``backends.torch.jobs`` and ``backends.jax.jobs``; a test holds this table against them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from suite.planned import DeviceSlot

BY_TORCH = ("gemm", "grouped_gemm", "attention", "decode", "decode_step", "calibration", "collective")
BY_XLA = ("gemm", "attention", "decode", "calibration", "collective")
# By the module of a backend's target: a name may stand for another's backend, of which nothing is known.
PORTS: Mapping[str, Sequence[str]] = {
    "backends.cpu": BY_TORCH,
    "backends.cuda": BY_TORCH,
    "backends.rocm": BY_TORCH,
    "backends.xla": BY_XLA,
}
BY_ITSELF = "calibration"  # the job that no user selects


def has_port(target: str, job: str) -> bool:
    """Whether the backend of a target may have a port of a job; one that is not ours is asked when it measures."""
    ports = PORTS.get(target.partition(":")[0])
    return ports is None or job in ports


def choice(jobs: Collection[str]) -> str:
    """Those of a backend that can be selected: ``attention, decode and gemm``."""
    *others, last = sorted(job for job in jobs if job != BY_ITSELF)
    return f"{', '.join(others)} and {last}" if others else last


def without_port_lines(jobs: Collection[str], slots: Sequence[DeviceSlot]) -> Iterator[str]:
    """A line for each backend that has no port of some of the jobs."""
    for backend, target in _backends(slots):
        if lacking := [job for job in jobs if not has_port(target, job)]:
            yield f"no port of job {', '.join(lacking)} to backend {backend}, {_which_has(target)}: such cases are unsupported"


def nothing_ported(jobs: Collection[str], slots: Sequence[DeviceSlot]) -> str:
    """Why a run of these jobs would measure nothing but calibration on any of its backends; empty where it would."""
    backends = _backends(slots)
    if not jobs or not backends or any(has_port(target, job) for _, target in backends for job in jobs):
        return ""
    asked = f"{' and '.join(f'jobs.{job}' for job in jobs)} {'ask' if len(jobs) > 1 else 'asks'} for"
    where = ", nor on ".join(f"backend {backend}, {_which_has(target)}" for backend, target in backends)
    return f"nothing that {asked} exists on {where}; ask for something else"


def _backends(slots: Sequence[DeviceSlot]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((slot.backend, slot.target) for slot in slots))


def _which_has(target: str) -> str:
    return f"which has {choice(PORTS[target.partition(':')[0]])}"
