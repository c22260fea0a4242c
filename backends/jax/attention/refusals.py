"""Why attention cannot run through XLA on a device."""

from collections.abc import Collection

from backends.jax.attention.ways import WAYS
from backends.jax.data import DISTRIBUTIONS
from backends.jax.target import Target
from suite.case import Case, Workload
from suite.errors import nearest
from suite.jobs.attention import FORMATS, HADAMARD, IMPLEMENTATIONS, sizes_of
from suite.jobs.attention.gradients import unchecked
from suite.jobs.attention.sizes import DIRECTIONS, MASKS

TAKEN = ("fp32", "bf16", "fp16")


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, sizes = case.workload, sizes_of(case.workload)
    told = (
        unknown("attention", "implementation", case.implementation, WAYS, IMPLEMENTATIONS),
        unknown("attention", "format", workload.format, FORMATS),
        unknown("attention", "distribution", workload.distribution, DISTRIBUTIONS),
        unknown("attention", "mask", sizes.mask, MASKS),
        unknown("attention", "direction", sizes.direction, DIRECTIONS),
        *(unknown("attention", "switch", name, ()) for name, _ in case.switches),
    )
    no_such_name = next((each for each in told if each is not None), None)
    return (
        no_such_name
        or _format_reason(workload)
        or target.missing(workload.format)
        or unchecked(workload)
        or WAYS[case.implementation].refuses(workload, target)
    )


def unknown(job: str, kind: str, given: str, known: Collection[str], elsewhere: Collection[str] = ()) -> str | None:
    """Of a name that is not among those known, with the nearest of them; what is known ``elsewhere`` is no misspelling.

    ``job`` is as a sentence begins: ``attention``.
    """
    if given in known:
        return None
    if given in elsewhere:
        return f"{job} through XLA has no {kind} {given}, only {', '.join(known)}; take one of those, or a backend of torch"
    return f"{job} through XLA has no {kind} {given!r}{nearest(given, known)}"


def _format_reason(workload: Workload) -> str | None:
    semantics = dict(workload.semantics)
    if workload.format not in TAKEN:
        return f"attention through XLA takes {', '.join(TAKEN)}, not {workload.format}: nothing that JAX offers has its scales"
    if semantics.get("accumulate", "fp32") != "fp32":
        return f"attention accumulates in fp32 here, not in {semantics['accumulate']}"
    if "scaling" in semantics:
        return f"{workload.format} has no scaling {semantics['scaling']!r}: its numbers have no scales"
    if semantics.get(HADAMARD):
        return f"{HADAMARD} is for formats with scales, not for {workload.format}"
    return None
