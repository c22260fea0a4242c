"""Why a decoding step cannot run on a device."""

from typing import Any

from backends.torch.data import DISTRIBUTIONS
from backends.torch.decode.ways import WAYS
from backends.torch.target import Target
from suite.case import Case, Workload
from suite.errors import nearest
from suite.jobs.decode import FORMATS, activation_of, sizes_of
from suite.jobs.decode.lengths import DISTRIBUTIONS as LENGTHS
from suite.jobs.decode.pages import ORDERS


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, sizes = case.workload, sizes_of(case.workload)
    for told in (
        _unknown("implementation", case.implementation, WAYS),
        _unknown("format", workload.format, FORMATS),
        _unknown("distribution", workload.distribution, DISTRIBUTIONS),
        _unknown("spread of lengths", sizes.lengths, LENGTHS),
        _unknown("order of pages", sizes.page_order, ORDERS),
        *(_unknown("switch", name, ()) for name, _ in case.switches),
    ):
        if told is not None:
            return told
    return (
        _semantics_reason(workload)
        or target.missing.get(activation_of(workload))
        or WAYS[case.implementation].refuses(workload, target)
    )


def _unknown(kind: str, given: str, known: Any) -> str | None:
    return None if given in known else f"decoding through torch has no {kind} {given!r}{nearest(given, list(known))}"


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
