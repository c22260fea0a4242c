"""Why a decoding step cannot run through XLA on a device."""

from functools import partial

from backends.jax.attention.refusals import unknown
from backends.jax.data import DISTRIBUTIONS
from backends.jax.decode.ways import WAYS
from backends.jax.target import Target
from suite.case import Case, Workload
from suite.jobs.decode import FORMATS, IMPLEMENTATIONS, activation_of, sizes_of
from suite.jobs.decode.lengths import DISTRIBUTIONS as LENGTHS
from suite.jobs.decode.pages import ORDERS

_unknown = partial(unknown, "decoding")


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, sizes = case.workload, sizes_of(case.workload)
    told = (
        _unknown("implementation", case.implementation, WAYS, IMPLEMENTATIONS),
        _unknown("format", workload.format, FORMATS),
        _unknown("distribution", workload.distribution, DISTRIBUTIONS),
        _unknown("spread of lengths", sizes.lengths, LENGTHS),
        _unknown("order of pages", sizes.page_order, ORDERS),
        *(_unknown("switch", name, ()) for name, _ in case.switches),
    )
    no_such_name = next((each for each in told if each is not None), None)
    return (
        no_such_name
        or _semantics_reason(workload)
        or target.missing(activation_of(workload))
        or WAYS[case.implementation].refuses(workload, target)
    )


def _semantics_reason(workload: Workload) -> str | None:
    semantics, fmt = dict(workload.semantics), FORMATS[workload.format]
    if semantics.get("accumulate", "fp32") != "fp32":
        return f"decoding accumulates in fp32 here, not in {semantics['accumulate']}"
    scaling = semantics.get("scaling")
    if scaling is not None and scaling not in fmt.scalings:
        offered = f"; choose from: {', '.join(fmt.scalings)}" if fmt.scalings else ": its numbers have no scales"
        return f"{workload.format} has no scaling {scaling!r}{offered}"
    activation = activation_of(workload)
    if activation not in fmt.activations:
        return f"beside a cache in {workload.format} queries are in {' or '.join(fmt.activations)}, not in {activation}"
    return None
