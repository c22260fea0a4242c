"""Why a part of the decode_step job cannot run on a device."""

from functools import partial

from backends.torch.decode_step import weights
from backends.torch.decode_step.ways import WAYS
from backends.torch.refusals import first, unknown
from backends.torch.target import Target
from suite.case import Case
from suite.jobs.decode_step import DISTRIBUTIONS, FORMATS, WEIGHTS, sizes_of
from suite.jobs.decode_step.sizes import PARTS

_unknown = partial(unknown, "decode_step")


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, sizes = case.workload, sizes_of(case.workload)
    no_such_name = first(
        _unknown("part", sizes.part, PARTS),
        _unknown("implementation", case.implementation, WAYS),
        _unknown("distribution", workload.distribution, DISTRIBUTIONS),
        *(_unknown("switch", name, ()) for name, _ in case.switches),
    )
    if no_such_name:
        return no_such_name
    told = _unknown("format", workload.format, FORMATS[sizes.part]) or target.missing.get(workload.format)
    if told:
        return told
    if sizes.part == WEIGHTS:
        return weights.reason(case, target)
    return WAYS[case.implementation].way.refuses(workload, target)
