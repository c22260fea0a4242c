"""flashinfer's paged decoding, where it is installed."""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from backends.torch.decode.operands import Buffers
from backends.torch.decode.way import Task, Way
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.jobs.decode import FORMATS, sizes_of

NAME, MODULE = "flashinfer", "flashinfer"
DISTRIBUTIONS = ("flashinfer-python", "flashinfer")  # what has been installed under either name
WORKSPACE_BYTES = 256 << 20  # for what is put together of splits, shared by the input sets
HEAD_DIMS = (64, 128, 256)
TAKEN = ("bf16", "fp16")


def installed() -> str | None:
    """Its version; ``None`` where it is not."""
    for each in DISTRIBUTIONS:
        try:
            return version(each)
        except PackageNotFoundError:
            continue
    return None


def refuses(workload: Workload, target: Target) -> str | None:
    """What is not installed, and what is known not to be taken; the rest the package says itself."""
    sizes = sizes_of(workload)
    if target.kind != "cuda":
        return f"{NAME} runs on CUDA devices; the device here is a {target.kind.upper()}"
    if target.is_amd:
        return f"{NAME} is written for NVIDIA's devices, not for {target.architecture}"
    if installed() is None:
        return f"{NAME} is not installed; pip install {DISTRIBUTIONS[0]}"
    if FORMATS[workload.format].is_quantised:
        return f"{NAME} takes scales as numbers of the host, which a captured graph keeps while data changes; triton reads them"
    if workload.format not in TAKEN:
        return f"{NAME} takes {' and '.join(TAKEN)}, not {workload.format}"
    if sizes.q_len > 1:
        return f"{NAME} decodes one token a sequence here, not {sizes.q_len}; naive and triton take several"
    if sizes.has_shared_values or sizes.head_dim not in HEAD_DIMS:
        taken = ", ".join(map(str, HEAD_DIMS))
        return f"{NAME} takes one head_dim of {taken} here, not {sizes.head_dim} and {sizes.v_head_dim}; triton takes MLA"
    return None


def make(task: Task) -> Made:
    """Planned once for the lengths, here; page tables follow the data, in the buffers that the plans know."""
    space = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=task.target.device)
    paths = [_Planned(task, each, space) for each in task.buffers]
    facts = {
        "call": "flashinfer.BatchDecodeWithPagedKVCacheWrapper.run",
        "library": f"flashinfer {installed()}",
        "cache_layout": "HND, with tensor cores",
    }
    return Made([each.launch for each in paths], facts, returns=True, renewals=[each.renew for each in paths])


class _Planned:
    """One input set, with the wrapper that is planned for it."""

    def __init__(self, task: Task, each: Buffers, space: torch.Tensor) -> None:
        sizes, device = task.sizes, task.target.device
        self._buffers = each
        self._used = torch.from_numpy(each.table.used).to(device)
        counts = torch.tensor(sizes.paging.counts, dtype=torch.int32)
        first = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(torch.int32).to(device)
        rest = [(length - 1) % sizes.page_size + 1 for length in sizes.tokens]
        self._entries = torch.zeros(sizes.paging.entries, dtype=torch.int32, device=device)
        wrapper = import_module(MODULE).BatchDecodeWithPagedKVCacheWrapper(space, "HND", use_tensor_cores=True)
        kinds = {"q_data_type": each.q.data.dtype, "kv_data_type": each.k.data.dtype}
        last = torch.tensor(rest, dtype=torch.int32, device=device)
        heads = (sizes.num_q_heads, sizes.num_kv_heads, sizes.head_dim, sizes.page_size)
        wrapper.plan(first, self._entries, last, *heads, **kinds)
        _refuse_a_copy(wrapper, self._entries)
        self._run: Callable[..., torch.Tensor] = wrapper.run

    def renew(self) -> None:
        """The table as it now is, one sequence's pages after another."""
        self._entries.copy_(self._buffers.table.data[:, :-1][self._used])

    def launch(self) -> tuple[torch.Tensor]:
        each = self._buffers
        return (self._run(each.q.data[:, 0], (each.k.data, each.v.data))[:, None],)


def _refuse_a_copy(wrapper: Any, entries: torch.Tensor) -> None:
    """A plan that keeps a page table of its own would go on reading the old one."""
    kept: Sequence[torch.Tensor] = [each for name, each in vars(wrapper).items() if name == "_paged_kv_indices_buf"]
    if not kept or kept[0].data_ptr() != entries.data_ptr():
        raise NotImplementedError(
            f"flashinfer {installed()} keeps page tables of its own, which cannot follow new data in a graph; take another "
            "version, or triton and naive, which read the table as it is"
        )


WAY = Way(refuses, make)
