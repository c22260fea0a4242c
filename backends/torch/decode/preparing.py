"""A decoding step made ready: buffers, launches, and what is said of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from backends.blind_spots import of_decode
from backends.decode_data import meeting_columns
from backends.torch.decode.error import quantisation_error
from backends.torch.decode.kernel import DecodeKernel
from backends.torch.decode.operands import Buffers, allocate
from backends.torch.decode.reference import Decoding
from backends.torch.decode.way import Task
from backends.torch.decode.ways import WAYS
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Case, Workload
from suite.jobs.decode import FORMATS, DecodeJob, Sizes, activation_of, scaling_of, sizes_of
from suite.jobs.decode.cache import cache_bytes
from suite.jobs.decode.job import bytes_of, separate_bytes_of


def prepare(case: Case, target: Target, sets: int, seed: int) -> DecodeKernel:
    """Allocate and fill ``sets`` input sets; raises torch's and Triton's own errors when memory or a compiler gives out."""
    workload, sizes = case.workload, sizes_of(case.workload)
    buffers = [allocate(workload, target.device) for _ in range(sets)]
    made = WAYS[case.implementation].make(Task(workload, sizes, target, buffers, seed))
    execution = "emulated" if made.emulation else target.execution(activation_of(workload))
    described = {**_description(case, sizes, buffers), **_emulation(workload, target, made), **made.facts}
    moved_bytes = DecodeJob().work(workload).compulsory_bytes
    kernel = DecodeKernel(buffers, made, Decoding(sizes), workload.distribution, execution, described, moved_bytes)
    kernel.of_inputs = partial(_of_inputs, kernel, case)
    kernel.refill(seed)
    kernel.poison()
    return kernel


def _description(case: Case, sizes: Sizes, buffers: Sequence[Buffers]) -> dict[str, Any]:
    first, moved, paging = buffers[0], bytes_of(case.workload), sizes.paging
    quantised = FORMATS[case.workload.format].is_quantised
    shared = {"bytes_without_sharing": separate_bytes_of(case.workload).total} if sizes.shared_prefix else {}
    return {
        "cache_layout": "pages, KV heads, tokens of a page, columns",
        "operand_dtype": str(first.k.data.dtype).removeprefix("torch."),
        "activation_dtype": str(first.q.data.dtype).removeprefix("torch."),
        "output_dtype": str(first.o.dtype).removeprefix("torch."),
        **({"scales": f"fp32, one a {scaling_of(case.workload)}"} if quantised else {}),
        "values": "the first columns of the keys, stored once" if sizes.has_shared_values else "of their own",
        "mask_alignment": "the last new token stands at the last key",
        "lengths": {"shortest": min(sizes.tokens), "longest": max(sizes.tokens)},
        "pages": paging.page_count,
        "page_memory_wasted": paging.wasted,
        "cache_bytes": cache_bytes(sizes.heads, paging, case.workload.format, scaling_of(case.workload)),
        "bytes": moved._asdict(),
        **shared,
        **_latest_keys(case.workload, sizes),
        "accumulate": "fp32",
        "reference": "float64",
        "check_cannot_see": list(of_decode(case.workload, sizes)),
    }


def _latest_keys(workload: Workload, sizes: Sizes) -> dict[str, Any]:
    """How many columns each sequence's latest key has of a query of each group, where it has any."""
    columns = meeting_columns(sizes, workload.distribution)
    return {"latest_keys": {"columns_of_a_query": columns}} if columns else {}


def _emulation(workload: Workload, target: Target, made: Made) -> dict[str, str]:
    return {"emulation": made.emulation or target.emulated.get(activation_of(workload), "")}


def _of_inputs(kernel: DecodeKernel, case: Case) -> Mapping[str, Any]:
    error = quantisation_error(kernel, case.workload.format, sizes_of(case.workload))
    return {} if error is None else {"quantisation_error": error}
