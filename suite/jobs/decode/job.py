"""What the decode job measures: its axes, work model and footprint."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from suite.case import Case, Items, Regime, Workload, items
from suite.errors import UsageError
from suite.jobs.axes import check_choices, check_counts, check_names, listed
from suite.jobs.decode.cache import Bytes, cache_bytes, compulsory_bytes, flops, separate_bytes, spare_bytes
from suite.jobs.decode.fit import misfit
from suite.jobs.decode.formats import ACTIVATIONS, FORMATS, activation_of, scaling_of, semantics_of
from suite.jobs.decode.lengths import DISTRIBUTIONS as LENGTHS
from suite.jobs.decode.pages import ORDERS
from suite.jobs.decode.sizes import (
    HEADS,
    LARGEST_BATCH,
    LARGEST_LENGTH,
    LARGEST_PAGE,
    MOST_NEW_TOKENS,
    Sizes,
    params_of,
    sizes_of,
)
from suite.jobs.decode.tolerance import tolerance
from suite.settings import JobSettings
from suite.work import Footprint, Work

# Who computes.  ``naive`` gathers the pages into one piece of memory and attends to that; ``library_*`` are the backends of
# torch's scaled_dot_product_attention on keys and values that lie in one piece already, the baseline that no page table costs
# anything; through XLA ``library_flash`` is the kernel that JAX ships for TPUs, which goes through the page table;
# ``flashinfer`` is the package of this name; ``triton`` a kernel of roofbench's own, cut by a table, ``triton_tuned``
# in whichever of several ways was the fastest when they were tried.
IMPLEMENTATIONS = ("naive", "library_math", "library_flash", "library_cudnn", "flashinfer", "triton", "triton_tuned")
DISTRIBUTIONS = ("normal", "uniform", "integer", "zeros", "constant", "outliers")
NAMED = {
    "formats": tuple(FORMATS),
    "lengths": LENGTHS,
    "page_orders": ORDERS,
    "distributions": DISTRIBUTIONS,
    "implementations": IMPLEMENTATIONS,
}
COUNTED = {
    "batches": range(1, LARGEST_BATCH + 1),
    "kv_lens": range(1, LARGEST_LENGTH + 1),
    "q_lens": range(1, MOST_NEW_TOKENS + 1),
    "page_sizes": range(1, LARGEST_PAGE + 1),
    "shared_prefixes": range(LARGEST_LENGTH),
}
SINGULAR = {"batches": "batch", "lengths": "spread of lengths", "shared_prefixes": "shared prefix"}
SCRATCH_BYTES = 1024 * 2**20  # data and references go by blocks
PLACE_BYTES = 8  # a token's place in the cache, for filling it
LSE_BYTES = 4  # the logarithm of a row's sum, which some kernels write beside it


@dataclass
class DecodeSettings(JobSettings):
    """Axes of the decode job; each list is an axis.

    ``formats`` are of the cache.  ``heads`` are ``32x128`` (heads x head_dim), ``32/8x128`` (query heads / heads of K and V)
    or ``128/1x576/512`` (columns of keys / of values, which are the first of a key's: MLA).  ``kv_lens`` are tokens of a
    sequence in the mean, spread over the batch as ``lengths`` says: ``equal``, ``uniform`` (a quarter to seven quarters of the
    mean) or ``skewed`` (log-normal).  ``q_lens`` are new tokens of a sequence in one step.  Pages of ``page_sizes`` tokens lie
    at ``random`` or one after the other (``contiguous``).  ``shared_prefixes`` are tokens with which all sequences begin, in
    the same pages: whole ones.  Sizes that do not go together are left out: a prefix that is no whole number of pages, or as
    long as a sequence, and more new tokens than a sequence has.

    ``scaling`` is one value or a list of what shares a scale in a cache of 8 bits: ``tensor`` or ``token`` (each token and head
    its own); ``activation`` likewise the type of queries and output beside such a cache: ``bf16`` or ``fp16``.  Null is the
    first of them.
    """

    name: str = "decode"
    formats: list[str] = field(default_factory=lambda: ["bf16"])
    heads: list[str] = field(default_factory=lambda: ["32/8x128"])
    batches: list[int] = field(default_factory=lambda: [32])
    kv_lens: list[int] = field(default_factory=lambda: [4096])
    q_lens: list[int] = field(default_factory=lambda: [1])
    lengths: list[str] = field(default_factory=lambda: ["equal"])
    page_sizes: list[int] = field(default_factory=lambda: [16])
    page_orders: list[str] = field(default_factory=lambda: ["random"])
    shared_prefixes: list[int] = field(default_factory=lambda: [0])
    distributions: list[str] = field(default_factory=lambda: ["normal"])
    implementations: list[str] = field(default_factory=lambda: ["library_flash", "naive", "triton"])
    scaling: Any = None
    activation: Any = None


class DecodeJob:
    """See ``suite.jobs.job.Job``."""

    name = "decode"
    method_version = 2  # 2: measured at several places in memory
    settings_type = DecodeSettings
    formats = tuple(FORMATS)
    implementations = IMPLEMENTATIONS
    usual_regimes: tuple[Regime, ...] = ()

    def check(self, settings: DecodeSettings) -> None:
        """Refuse names that are not known, axes that are empty, and sizes that do not fit each other."""
        for axis, valid in NAMED.items():
            check_names("decode", axis, getattr(settings, axis), valid, SINGULAR.get(axis, ""))
        for axis, allowed in COUNTED.items():
            check_counts("decode", axis, getattr(settings, axis), allowed)
        quantised = [fmt for fmt in FORMATS.values() if fmt.is_quantised]
        check_choices("decode", "scaling", settings.scaling, _each_once(fmt.scalings for fmt in quantised))
        check_choices("decode", "activation", settings.activation, _each_once(fmt.activations for fmt in quantised))
        HEADS.check(settings.heads)
        told = [misfit(sizes) for sizes in sizes_asked(settings)]
        if told[0] is not None and None not in told:
            what, why, instead = told[0]
            raise UsageError(f"jobs.decode leaves nothing: {what}: {why}; write {instead}")

    def workloads(self, settings: DecodeSettings) -> Iterator[Workload]:
        """Formats outermost, so that one format's sizes stand together."""
        for name in dict.fromkeys(settings.formats):
            for semantics, sizes in product(_semantics(settings, name), _sizes(settings)):
                axes = product(_activations(settings, name), dict.fromkeys(settings.distributions))
                for activation, distribution in axes:
                    yield Workload("decode", name, items(dict(params_of(sizes)) | activation), distribution, semantics)

    def switches(self, settings: DecodeSettings, workload: Workload) -> tuple[Items, ...]:
        """None apply."""
        return ((),)

    def misfit(self, case: Case) -> str | None:
        """Nothing: what a device lacks is recorded."""
        return None

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """Operations of the visible pairs, 2(d_qk + d_v) each; K and V once for each token and KV head, a shared prefix once
        for all sequences, with scales, page table, lengths, queries and output.  Products are of the activations' type.
        """
        sizes = sizes_of(workload)
        return Work(
            flops=flops(sizes.heads, sizes.tokens, sizes.q_len),
            compulsory_bytes=bytes_of(workload).total,
            pipe=activation_of(workload),
        )

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint:
        """What a launch touches.  Beside it unused places of cache and table, where each token stands, logarithms of sums, a
        result in a library's own buffer, and keys and values in one piece where a library takes them so.

        What ``naive`` gathers is not reckoned with: a case that has no room for it says so.
        """
        sizes, moved = sizes_of(workload), bytes_of(workload)
        stored = (sizes.heads, sizes.paging, workload.format, scaling_of(workload))
        return Footprint(
            input_bytes=moved.total - moved.output,
            output_bytes=moved.output,
            scratch_bytes=SCRATCH_BYTES,
            rearranged_bytes=cache_bytes(*stored)
            - moved.kv
            - moved.scales
            + spare_bytes(*stored)
            + PLACE_BYTES * sizes.paging.unique_tokens
            + LSE_BYTES * sizes.batch * sizes.q_len * sizes.num_q_heads
            + moved.output
            + (separate_bytes_of(workload).kv if is_in_one_piece(workload) else 0),
        )

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """See ``suite.jobs.decode.tolerance``."""
        return tolerance(workload)


def bytes_of(workload: Workload) -> Bytes:
    """What one step moves at least, part by part."""
    sizes, width = sizes_of(workload), ACTIVATIONS[activation_of(workload)].bytes
    return compulsory_bytes(sizes.heads, sizes.paging, workload.format, scaling_of(workload), sizes.q_len, width)


def separate_bytes_of(workload: Workload) -> Bytes:
    """The same where every sequence reads its own prefix."""
    sizes, width = sizes_of(workload), ACTIVATIONS[activation_of(workload)].bytes
    return separate_bytes(sizes.heads, sizes.paging, workload.format, scaling_of(workload), sizes.q_len, width)


def is_in_one_piece(workload: Workload) -> bool:
    """Whether a library without page tables can be given the same: numbers as they are, of one length, for one new token."""
    sizes = sizes_of(workload)
    return not FORMATS[workload.format].is_quantised and not sizes.is_ragged and sizes.q_len == 1


def _sizes(settings: DecodeSettings) -> Iterator[Sizes]:
    return (sizes for sizes in sizes_asked(settings) if misfit(sizes) is None)


def sizes_asked(settings: DecodeSettings) -> Iterator[Sizes]:
    """Heads outermost, then batches, lengths and pages; those that do not go together too."""
    heads = [HEADS.parse(text) for text in dict.fromkeys(settings.heads)]
    counted = ("batches", "kv_lens", "q_lens", "lengths", "page_sizes", "page_orders", "shared_prefixes")
    axes = (dict.fromkeys(getattr(settings, axis)) for axis in counted)
    for each, batch, kv_len, q_len, spread, page_size, order, shared in product(heads, *axes):
        yield Sizes(batch, each[0], each[1], q_len, kv_len, each[2], each[3], page_size, order, spread, shared)


def _semantics(settings: DecodeSettings, name: str) -> list[Items]:
    return list(dict.fromkeys(semantics_of(name, scaling) for scaling in listed(settings.scaling)))


def _activations(settings: DecodeSettings, name: str) -> list[dict[str, Any]]:
    """What a workload says of the type of its queries: nothing where the cache's format decides it."""
    fmt = FORMATS[name]
    if not fmt.is_quantised:
        return [{}]
    return [{"activation": each} for each in dict.fromkeys(each or fmt.activations[0] for each in listed(settings.activation))]


def _each_once(names: Iterable[tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(each for some in names for each in some))
