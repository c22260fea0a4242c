"""What every job says alike of a case that it does not take."""

from collections.abc import Iterable

from backends.torch.target import Target
from suite.case import Workload
from suite.errors import nearest


def first(*told: str | None) -> str | None:
    """The first reason there is."""
    return next((each for each in told if each is not None), None)


def unknown(job: str, kind: str, given: str, known: Iterable[str]) -> str | None:
    """Of a name that is not among those known, with the nearest of them; ``job`` is as a sentence begins: ``attention``."""
    names = list(known)
    return None if given in names else f"{job} through torch has no {kind} {given!r}{nearest(given, names)}"


def scales_reason(workload: Workload, scalings: tuple[str, ...]) -> str | None:
    """Of a scaling that the workload's format, which has ``scalings``, does not have."""
    scaling = dict(workload.semantics).get("scaling")
    if scaling is None or scaling in scalings:
        return None
    offered = f"; choose from: {', '.join(scalings)}" if scalings else ": its numbers have no scales"
    return f"{workload.format} has no scaling {scaling!r}{offered}"


def format_reason(implementation: str, taken: Iterable[str], given: str) -> str | None:
    """Of a format that an implementation does not take."""
    names = tuple(taken)
    return None if given in names else f"implementation {implementation} takes {', '.join(names)}, not {given}"


def no_own_kernels(implementation: str, target: Target) -> str | None:
    """Why none of roofbench's own kernels (``backends.triton``) runs on a device; ``None`` where one may."""
    if target.kind != "cuda":
        return f"implementation {implementation} runs on GPUs; the device here is a {target.kind.upper()}"
    from backends.triton.works import why_not

    return why_not() or None
