"""Why a decoding step cannot run on a device."""

from functools import partial

from backends.torch.data import DISTRIBUTIONS
from backends.torch.decode.ways import WAYS
from backends.torch.refusals import first, scales_reason, unknown
from backends.torch.target import Target
from suite.case import Case, Workload
from suite.jobs.decode import FORMATS, activation_of, sizes_of
from suite.jobs.decode.lengths import DISTRIBUTIONS as LENGTHS
from suite.jobs.decode.pages import ORDERS

_unknown = partial(unknown, "decoding")


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, sizes = case.workload, sizes_of(case.workload)
    no_such_name = first(
        _unknown("implementation", case.implementation, WAYS),
        _unknown("format", workload.format, FORMATS),
        _unknown("distribution", workload.distribution, DISTRIBUTIONS),
        _unknown("spread of lengths", sizes.lengths, LENGTHS),
        _unknown("order of pages", sizes.page_order, ORDERS),
        *(_unknown("switch", name, ()) for name, _ in case.switches),
    )
    return (
        no_such_name
        or _semantics_reason(workload)
        or target.missing.get(activation_of(workload))
        or WAYS[case.implementation].refuses(workload, target)
    )


def _semantics_reason(workload: Workload) -> str | None:
    semantics, fmt = dict(workload.semantics), FORMATS[workload.format]
    if semantics.get("accumulate", "fp32") != "fp32":
        return f"decoding accumulates in fp32 here, not in {semantics['accumulate']}"
    of_scales = scales_reason(workload, fmt.scalings)
    if of_scales:
        return of_scales
    activation = activation_of(workload)
    if activation not in fmt.activations:
        return f"beside a cache in {workload.format} queries are in {' or '.join(fmt.activations)}, not in {activation}"
    return None
