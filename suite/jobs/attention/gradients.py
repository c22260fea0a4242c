"""Gradients that no check can judge by their size."""

from suite.case import Workload
from suite.jobs.attention.sizes import sizes_of

ROUNDING_ALONE = "gradients of Q and K are zero and what a kernel writes there is rounding alone"
OF_DATA = {
    "constant": f"every key is the same, so that {ROUNDING_ALONE}",
    "outliers": "the rounding of one outlier of O, times one of dO, is more than most gradients are",
}


def unchecked(workload: Workload) -> str | None:
    """Why results of a backward pass cannot be judged; ``None`` where they can, and forward."""
    sizes = sizes_of(workload)
    if not sizes.is_backward:
        return None
    if workload.distribution in OF_DATA:
        return f"gradients of {workload.distribution} data cannot be checked: {OF_DATA[workload.distribution]}"
    if sizes.kv_len == 1 or sizes.window == 1:  # weights are 1, whatever the scores
        seen = "a window" if sizes.window == 1 else "sequences"
        return (
            f"gradients of {seen} of 1 token cannot be checked: a query sees one key, so that {ROUNDING_ALONE}; take 2 or more"
        )
    return None
