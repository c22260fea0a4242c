"""Why attention cannot run on a device."""

from functools import partial

from backends.torch.attention.ways import WAYS
from backends.torch.data import DISTRIBUTIONS
from backends.torch.refusals import first, scales_reason, unknown
from backends.torch.target import Target
from suite.case import Case, Workload
from suite.jobs.attention import FORMATS, HADAMARD, sizes_of
from suite.jobs.attention.gradients import unchecked
from suite.jobs.attention.sizes import DIRECTIONS, MASKS

_unknown = partial(unknown, "attention")


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, sizes = case.workload, sizes_of(case.workload)
    no_such_name = first(
        _unknown("implementation", case.implementation, WAYS),
        _unknown("format", workload.format, FORMATS),
        _unknown("distribution", workload.distribution, DISTRIBUTIONS),
        _unknown("mask", sizes.mask, MASKS),
        _unknown("direction", sizes.direction, DIRECTIONS),
        *(_unknown("switch", name, ()) for name, _ in case.switches),
    )
    return (
        no_such_name
        or target.missing.get(workload.format)
        or _semantics_reason(workload)
        or _gradients_reason(workload)
        or WAYS[case.implementation].refuses(workload, target)
    )


def _semantics_reason(workload: Workload) -> str | None:
    semantics, fmt = dict(workload.semantics), FORMATS[workload.format]
    if semantics.get("accumulate", "fp32") != "fp32":
        return f"attention accumulates in fp32 here, not in {semantics['accumulate']}"
    of_scales = scales_reason(workload, fmt.scalings)
    if of_scales:
        return of_scales
    if semantics.get(HADAMARD) and not fmt.scalings:
        return f"{HADAMARD} is for formats with scales, not for {workload.format}"
    return None


def _gradients_reason(workload: Workload) -> str | None:
    if not sizes_of(workload).is_backward:
        return None
    if not FORMATS[workload.format].has_gradients:
        return f"{workload.format} is offered forward only; gradients are of bf16, fp16 and fp32"
    return unchecked(workload)
