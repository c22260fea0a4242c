"""Whether a search has something to search in."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from suite.errors import UsageError
from suite.jobs.registry import find
from suite.settings import RunConfig

if TYPE_CHECKING:  # no job is loaded before it is asked for
    from suite.jobs.gemm import GemmSettings

SEARCHED = "gemm"  # the job whose shapes are sought


def check_search(config: RunConfig) -> None:
    """Raise ``UsageError`` for sizes and times that find nothing, and for jobs whose shapes are not searched for."""
    assert config.search is not None, "a run without a search has nothing to check"
    config.search.check()
    others = [name for name in config.jobs if name != SEARCHED]
    if others or not config.jobs:
        raise UsageError(
            f"search looks for shapes of the job {SEARCHED} alone, not of {', '.join(others) or 'none'}; write job={SEARCHED}"
        )
    from suite.jobs.gemm import GemmSettings

    (job,) = config.jobs.values()
    assert isinstance(job, GemmSettings)
    _check_job(job)
    _refuse_step(job, config.search.step)


def _check_job(job: "GemmSettings") -> None:
    """As any run does; but a job may name no shapes, for the search has its own."""
    from suite.jobs.gemm.formats import FORMATS

    named = job.shapes or job.models
    fitting = math.lcm(*(variant.depth for each in FORMATS.values() for variant in each.variants.values()))
    find(SEARCHED).check(job if named else replace(job, shapes=[str(fitting)]))


def _refuse_step(job: "GemmSettings", step: int) -> None:
    """Every K of the grid is a multiple of the step, and so the step of what shares a scale along K."""
    from suite.jobs.gemm.formats import variant_of

    at_one_shape = replace(job, shapes=[str(step)], models=[])
    depths = {each.format_label: variant_of(each).depth for each in find(SEARCHED).workloads(at_one_shape)}
    label, depth = max(depths.items(), key=lambda each: each[1] if step % each[1] else 0)
    if step % depth:
        nearest = max(depth, round(step / depth) * depth)
        raise UsageError(
            f"search.step={step} is no multiple of {depth}: {label} has scales for every {depth} numbers along K; "
            f"take search.step={nearest} for instance"
        )
