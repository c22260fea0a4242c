"""What the grouped_gemm job measures: its axes, work model and footprint."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from suite.case import Case, Items, Regime, Workload, items
from suite.errors import UsageError
from suite.jobs.axes import check_choices, check_counts, check_names, check_truths
from suite.jobs.gemm.formats import FORMATS as LADDER
from suite.jobs.gemm.job import DISTRIBUTIONS
from suite.jobs.gemm.switches import asked
from suite.jobs.gemm.tolerance import tolerance
from suite.jobs.grouped_gemm.formats import BLOCK, FORMATS, misfit, scaling_of, semantics, variant
from suite.jobs.grouped_gemm.rows import SPREADS
from suite.jobs.grouped_gemm.sizes import (
    LARGEST_ALIGNMENT,
    LARGEST_ROWS,
    LARGEST_TOKENS,
    PRODUCTS,
    Sizes,
    params_of,
    parse_experts,
    parse_groups,
    parse_weight,
    sizes_of,
)
from suite.jobs.grouped_gemm.work import bytes_of, flops, idle_bytes, stored_bytes_of
from suite.settings import JobSettings
from suite.work import Footprint, Work

# Who computes.  ``library`` is the framework's grouped product; ``loop`` one product of a library for each group that has rows,
# which knows on the host how many; ``triton`` a kernel of roofbench's own, cut by a model of the device, ``triton_tuned`` in
# whichever of several ways was the fastest when they were tried, ``gluon`` one of its own for Hopper, of fp8 in scaled blocks.
IMPLEMENTATIONS = ("library", "loop", "triton", "triton_tuned", "gluon")
RETURNING = ("library",)  # a new matrix from each launch, kept until it is looked at
NAMED = {
    "formats": tuple(FORMATS),
    "products": PRODUCTS,
    "spreads": SPREADS,
    "distributions": DISTRIBUTIONS,
    "implementations": IMPLEMENTATIONS,
}
SCALINGS = tuple(dict.fromkeys(scaling for scalings in FORMATS.values() for scaling in scalings))
SCRATCH_BYTES = 256 * 2**20  # data and references go by blocks of at most 64 MiB
WIDE_BYTES = 2  # of a number converted to bf16
GAPS_AT_MOST = 3  # numbers between the scales of two groups of rows, which begin at multiples of 16 bytes


@dataclass
class GroupedGemmSettings(JobSettings):
    """Axes of the grouped_gemm job; each list is an axis.

    ``groups`` are ``4x8192`` (groups x rows of each in the mean), each with every B of ``shapes``, ``NxK``.  ``moe`` are
    ``256/8x7168x2048`` (experts / of which each token takes, hidden, intermediate), each with every number of ``tokens`` and
    the ``products`` of an expert: ``gate_up`` (hidden to twice the intermediate) and ``down``.  Rows are spread over the groups
    as ``spreads`` say: ``uniform``, or as a router does, ``balanced`` or ``skewed`` (``suite.jobs.grouped_gemm.rows``).  Each
    group's rows are filled up to a multiple of ``alignments``.

    ``scaling`` is one value or a list of what shares a scale in fp8: ``row`` (of A each row, of B each column) or ``block`` (A
    in 1x128, B in 128x128); null is the first.  ``fp8_fast_accum``, true or false or both, sums fp8 with scales of rows in the
    tensor core's short accumulator.
    """

    name: str = "grouped_gemm"
    formats: list[str] = field(default_factory=lambda: ["bf16"])
    groups: list[str] = field(default_factory=lambda: ["4x8192", "4x64"])
    shapes: list[str] = field(default_factory=lambda: ["6144x7168", "7168x3072", "4096x4096", "4096x2048"])
    moe: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=lambda: [4096])
    products: list[str] = field(default_factory=lambda: list(PRODUCTS))
    spreads: list[str] = field(default_factory=lambda: ["uniform"])
    alignments: list[int] = field(default_factory=lambda: [1])
    distributions: list[str] = field(default_factory=lambda: ["normal"])
    implementations: list[str] = field(default_factory=lambda: ["library", "loop", "triton"])
    scaling: Any = None
    fp8_fast_accum: Any = True


class GroupedGemmJob:
    """See ``suite.jobs.job.Job``."""

    name = "grouped_gemm"
    method_version = 2  # 2: measured at several places in memory
    settings_type = GroupedGemmSettings
    formats = tuple(FORMATS)
    implementations = IMPLEMENTATIONS
    usual_regimes: tuple[Regime, ...] = ()

    def check(self, settings: GroupedGemmSettings) -> None:
        """Refuse names that are not known, axes that are empty, and sizes that scales do not divide."""
        for axis, valid in NAMED.items():
            check_names(self.name, axis, getattr(settings, axis), valid)
        check_counts(self.name, "tokens", settings.tokens, range(1, LARGEST_TOKENS + 1))
        check_counts(self.name, "alignments", settings.alignments, range(1, LARGEST_ALIGNMENT + 1))
        check_choices(self.name, "scaling", settings.scaling, SCALINGS)
        check_truths(self.name, "fp8_fast_accum", settings.fp8_fast_accum)
        if bool(settings.groups) != bool(settings.shapes):
            given, missing = ("groups", "shapes") if settings.groups else ("shapes", "groups")
            raise UsageError(f"jobs.grouped_gemm has {given} and no {missing}: each of one is taken with each of the other")
        if not _weights(settings):
            raise UsageError(
                "jobs.grouped_gemm has neither groups nor moe; set jobs.grouped_gemm.moe=[256/8x7168x2048] for instance"
            )
        _check_fit(settings)

    def workloads(self, settings: GroupedGemmSettings) -> Iterator[Workload]:
        """Formats outermost, so that one format's sizes stand together, and its scalings within."""
        for name in dict.fromkeys(settings.formats):
            for numbers in _semantics(settings, name):
                for sizes, distribution in product(_sizes(settings), dict.fromkeys(settings.distributions)):
                    yield Workload(self.name, name, params_of(sizes), distribution, numbers)

    def switches(self, settings: GroupedGemmSettings, workload: Workload) -> tuple[Items, ...]:
        """Sums of fp8 in blocks of 128 are scaled in fp32 after each block, whatever the tensor core adds them up in."""
        if scaling_of(workload) in (None, BLOCK):
            return ((),)
        return tuple(items({"fp8_fast_accum": value}) for value in dict.fromkeys(asked(settings, "fp8_fast_accum")))

    def misfit(self, case: Case) -> str | None:
        """Nothing: what a device lacks is recorded."""
        return None

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """2 n k operations for each row that counts; A, C and where groups end once, and the B of each group that has rows.

        Rows that fill groups up are neither operations nor bytes: what they cost shows.
        """
        return Work(flops(workload), bytes_of(workload).total, LADDER[workload.format].pipe)

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint:
        """What a launch touches.  Beside it the B of groups without rows, rows that fill groups up, and scales of A a second
        time, as they are read; A and one B in bf16 where they are converted; what a library returns.
        """
        sizes, moved, stored = sizes_of(workload), bytes_of(workload), stored_bytes_of(workload)
        wide_bytes = WIDE_BYTES * (sizes.height + sizes.n) * sizes.k if variant(workload).a.name else 0
        in_blocks = scaling_of(workload) == BLOCK
        gaps = 0 if in_blocks else GAPS_AT_MOST * sizes.busy
        again_bytes = variant(workload).a.beside_bytes(sizes.height + gaps, sizes.k) if scaling_of(workload) else 0
        return Footprint(
            input_bytes=moved.total - moved.output,
            output_bytes=moved.output,
            scratch_bytes=SCRATCH_BYTES + (wide_bytes if in_blocks else 0),
            emulation_bytes=0 if in_blocks else wide_bytes,
            rearranged_bytes=stored.total - moved.total + idle_bytes(workload) + again_bytes,
            returned_bytes=tuple((name, stored.output) for name in RETURNING),
        )

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """As of a plain product over the same K (``suite.jobs.gemm.tolerance``): each element is one."""
        plain = Workload("gemm", workload.format, items({"k": sizes_of(workload).k}), workload.distribution, _said(workload))
        return tolerance(plain, dict(switches))


def _said(workload: Workload) -> Items:
    """The semantics with the scaling that a workload of the gemm job would have to name."""
    return semantics(workload.format, scaling_of(workload))


def _weights(settings: GroupedGemmSettings) -> list[tuple[int, int, int, int, int]]:
    """Groups, all their rows, N, K and groups for each token, of what is asked for by groups and by experts."""
    plain = [
        (groups.groups, groups.groups * groups.rows, *weight, 1)
        for groups in map(parse_groups, dict.fromkeys(settings.groups))
        for weight in map(parse_weight, dict.fromkeys(settings.shapes))
    ]
    mixtures = [
        (experts.experts, tokens * experts.top_k, *experts.weight(name), experts.top_k)
        for experts in map(parse_experts, dict.fromkeys(settings.moe))
        for tokens, name in product(dict.fromkeys(settings.tokens), dict.fromkeys(settings.products))
    ]
    return list(dict.fromkeys(plain + mixtures))


def _sizes(settings: GroupedGemmSettings) -> Iterator[Sizes]:
    """Products outermost, then how rows are spread and filled up."""
    spreads = product(dict.fromkeys(settings.spreads), dict.fromkeys(settings.alignments))
    for (groups, rows, n, k, top_k), (spread, alignment) in product(_weights(settings), list(spreads)):
        yield Sizes(groups, rows, n, k, spread, top_k, alignment)


def _semantics(settings: GroupedGemmSettings, name: str) -> list[Items]:
    return list(dict.fromkeys(semantics(name, scaling) for scaling in asked(settings, "scaling")))


def _check_fit(settings: GroupedGemmSettings) -> None:
    """Rows that are not too many together, filled up, and scales that fit."""
    for groups, rows, n, k, _ in _weights(settings):
        most = rows + groups * (max(settings.alignments) - 1)
        if most > LARGEST_ROWS:
            raise UsageError(
                f"{rows} rows in {groups} groups, each filled up to a multiple of {max(settings.alignments)}, can be {most}; "
                f"jobs.grouped_gemm takes {LARGEST_ROWS} together; write fewer tokens or rows"
            )
        for name in settings.formats:
            for numbers in _semantics(settings, name):
                told = misfit(name, str(dict(numbers).get("scaling", "")) or None, groups, n, k)
                if told is not None:
                    raise UsageError(f"{told}, or leave the format or the shape out of jobs.grouped_gemm")
