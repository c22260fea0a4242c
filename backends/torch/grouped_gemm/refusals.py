"""Why a grouped product cannot run on a device."""

from functools import partial

from backends.torch.data import DISTRIBUTIONS
from backends.torch.grouped_gemm.ways import WAYS
from backends.torch.refusals import first, scales_reason, unknown
from backends.torch.target import Target
from suite.case import Case, Workload
from suite.jobs.gemm.formats import FORMATS as LADDER
from suite.jobs.grouped_gemm import FORMATS, sizes_of
from suite.jobs.grouped_gemm.formats import misfit, scaling_of
from suite.jobs.grouped_gemm.rows import SPREADS

_unknown = partial(unknown, "a grouped product")
SWITCHES = ("fp8_fast_accum",)


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, sizes = case.workload, sizes_of(case.workload)
    no_such_name = first(
        _unknown("implementation", case.implementation, WAYS),
        _unknown("format", workload.format, FORMATS),
        _unknown("distribution", workload.distribution, DISTRIBUTIONS),
        _unknown("spread of rows", sizes.spread, SPREADS),
        *(_unknown("switch", name, SWITCHES) for name, _ in case.switches),
    )
    return (
        no_such_name
        or target.missing.get(workload.format)
        or _semantics_reason(workload)
        or misfit(workload.format, scaling_of(workload), sizes.groups, sizes.n, sizes.k)
        or WAYS[case.implementation].refuses(workload, target)
    )


def _semantics_reason(workload: Workload) -> str | None:
    accumulate, asked = LADDER[workload.format].accumulate, dict(workload.semantics).get("accumulate")
    if asked not in (None, accumulate):
        return f"{workload.format} accumulates in {accumulate} here, not in {asked}"
    return scales_reason(workload, FORMATS[workload.format])
