"""What the attention job measures: its axes, work model and footprint."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from suite.case import Case, Items, Regime, Workload
from suite.errors import UsageError
from suite.jobs.attention.formats import FORMATS, SCALE_BYTES, AttentionFormat, scaling_of, semantics_of
from suite.jobs.attention.sizes import (
    DIRECTIONS,
    HEADS,
    LARGEST_LENGTH,
    MASKS,
    SLIDING_WINDOW,
    Sizes,
    params_of,
    sizes_of,
)
from suite.jobs.attention.tolerance import tolerance
from suite.jobs.axes import check_choices, check_counts, check_names, check_truths, listed
from suite.settings import JobSettings
from suite.values import written
from suite.work import Footprint, Work

# Who computes.  ``naive`` writes the scores to memory; ``library_*`` are the backends of torch's
# scaled_dot_product_attention, through XLA those of jax.nn's dot_product_attention (``library_math``, ``library_cudnn``) and
# the kernel that JAX ships for TPUs (``library_flash``); ``flex`` is flex_attention, compiled; ``flash_attn`` and
# ``flash_attn_4`` the packages of these names; ``triton`` a portable kernel of roofbench's own, cut into tiles by a table,
# ``triton_tuned`` in whichever of several ways was the fastest when they were tried, ``gluon`` a kernel of its own for Hopper.
IMPLEMENTATIONS = (
    "naive",
    "library_math",
    "library_flash",
    "library_cudnn",
    "library_efficient",
    "flex",
    "flash_attn",
    "flash_attn_4",
    "triton",
    "triton_tuned",
    "gluon",
)
DISTRIBUTIONS = ("normal", "uniform", "integer", "zeros", "constant", "outliers")
LSE_BYTES = 4  # the logarithm of a row's sum, which a forward pass hands to its backward pass
BLOCK_OF_ROWS = 64  # of queries, as the gradients by ``gluon`` keep their sums
SCRATCH_BYTES = 1024 * 2**20  # data and references go by blocks; row sums of all heads stay


@dataclass
class AttentionSettings(JobSettings):
    """Axes of the attention job; each list is an axis.

    ``heads`` are ``16x128`` (heads x head_dim), ``32/8x128`` (query heads / heads of K and V), ``128x192/128`` (columns of Q
    and K / columns of V).  ``tokens`` are those of all sequences together: a length in ``seq_lens`` takes tokens / length
    sequences, and is left out of tokens that are no multiple of it.  ``masks``: ``full``, ``causal`` (no key behind the query)
    and ``sliding_window`` (of those before it the latest of each length in ``windows``, itself included).

    ``scaling`` is one value or a list of what shares a scale in fp8: ``tensor`` or ``head``; null is ``tensor``.  ``hadamard``,
    true or false or both, has fp8 rotate Q and K by a random-sign Hadamard matrix before they are rounded (incoherent
    processing): attention stays what it is, and the error of quantisation of data with outliers falls.
    """

    name: str = "attention"
    directions: list[str] = field(default_factory=lambda: ["forward"])
    formats: list[str] = field(default_factory=lambda: ["bf16"])
    heads: list[str] = field(default_factory=lambda: ["16x128"])
    tokens: list[int] = field(default_factory=lambda: [16384])
    seq_lens: list[int] = field(default_factory=lambda: [1024, 4096, 16384])
    masks: list[str] = field(default_factory=lambda: ["full", "causal"])
    windows: list[int] = field(default_factory=lambda: [1024])
    distributions: list[str] = field(default_factory=lambda: ["normal"])
    implementations: list[str] = field(default_factory=lambda: ["library_flash"])
    scaling: Any = None
    hadamard: Any = False


class AttentionJob:
    """See ``suite.jobs.job.Job``."""

    name = "attention"
    method_version = 2  # 2: measured at several places in memory
    settings_type = AttentionSettings
    formats = tuple(FORMATS)
    implementations = IMPLEMENTATIONS
    usual_regimes: tuple[Regime, ...] = ()

    def check(self, settings: AttentionSettings) -> None:
        """Refuse names that are not known, axes that are empty, and sizes that do not fit each other."""
        axes = {
            "directions": DIRECTIONS,
            "formats": self.formats,
            "masks": MASKS,
            "distributions": DISTRIBUTIONS,
            "implementations": self.implementations,
        }
        for axis, valid in axes.items():
            check_names(self.name, axis, getattr(settings, axis), valid)
        slides = SLIDING_WINDOW in settings.masks  # without that mask windows may be empty
        for axis in ("tokens", "seq_lens", *["windows"] * bool(slides or settings.windows)):
            check_counts(self.name, axis, getattr(settings, axis), range(1, LARGEST_LENGTH + 1))
        check_choices(self.name, "scaling", settings.scaling, [each for fmt in FORMATS.values() for each in fmt.scalings])
        check_truths(self.name, "hadamard", settings.hadamard)
        HEADS.check(settings.heads)
        _check_lengths(settings)
        if next(self.workloads(settings), None) is None:
            names = ", ".join(dict.fromkeys(settings.formats))
            raise UsageError(f"jobs.attention.directions=[backward] leaves nothing: {names} has no gradients; add bf16 or fp16")

    def workloads(self, settings: AttentionSettings) -> Iterator[Workload]:
        """Directions and formats outermost, so that one format's sizes stand together.  A format without gradients has none."""
        for direction, name in product(dict.fromkeys(settings.directions), dict.fromkeys(settings.formats)):
            if direction == "backward" and not FORMATS[name].has_gradients:
                continue
            for semantics, sizes in product(_semantics(settings, name), _sizes(settings, direction)):
                for distribution in dict.fromkeys(settings.distributions):
                    yield Workload("attention", name, params_of(sizes), distribution, semantics)

    def switches(self, settings: AttentionSettings, workload: Workload) -> tuple[Items, ...]:
        """None apply."""
        return ((),)

    def misfit(self, case: Case) -> str | None:
        """Nothing: what a device lacks is recorded."""
        return None

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """Operations of the visible pairs: 2(d_qk + d_v) for each forward, 2(3 d_qk + 2 d_v) backward, which computes scores
        again.  Operands and results once with what they carry; backward also the output and the logarithms of its sums.
        """
        sizes, fmt = sizes_of(workload), FORMATS[workload.format]
        per_pair = sizes.head_dim + sizes.v_head_dim
        if sizes.is_backward:
            per_pair = 3 * sizes.head_dim + 2 * sizes.v_head_dim
        return Work(
            flops=2 * sizes.visible_pairs * per_pair,
            compulsory_bytes=_input_bytes(workload, sizes, fmt) + _output_bytes(sizes, fmt),
            pipe=fmt.pipe,
        )

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint:
        """What a launch touches; beside it a result in a library's own buffer, and V transposed where fp8 wants it so.

        The scores that ``naive`` and ``library_math`` write are not reckoned with: a case that has no room for them says so.
        """
        sizes, fmt = sizes_of(workload), FORMATS[workload.format]
        output_bytes = _output_bytes(sizes, fmt)
        transposed = sizes.elements()["v"] * fmt.operand_bytes if fmt.scalings else 0
        return Footprint(
            input_bytes=_input_bytes(workload, sizes, fmt),
            output_bytes=output_bytes,
            scratch_bytes=SCRATCH_BYTES,
            rearranged_bytes=output_bytes + transposed,
            returned_bytes=(("gluon", _sums_bytes(sizes)),) if sizes.is_backward else (),
        )

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """See ``suite.jobs.attention.tolerance``."""
        return tolerance(workload)


def _sums_bytes(sizes: Sizes) -> int:
    """Of gradients by ``gluon``: dQ and two numbers a row in fp32, rows in whole blocks."""
    rows = sizes.batch * sizes.num_q_heads * -(-sizes.q_len // BLOCK_OF_ROWS) * BLOCK_OF_ROWS
    return 4 * rows * (sizes.head_dim + 2)


def _input_bytes(workload: Workload, sizes: Sizes, fmt: AttentionFormat) -> int:
    elements = sizes.elements()
    inputs = fmt.operand_bytes * (elements["q"] + elements["k"] + elements["v"]) + _scales_bytes(workload, sizes)
    if not sizes.is_backward:
        return inputs
    rows = sizes.batch * sizes.num_q_heads * sizes.q_len
    return inputs + 2 * fmt.output_bytes * elements["o"] + LSE_BYTES * rows  # O and its gradient


def _output_bytes(sizes: Sizes, fmt: AttentionFormat) -> int:
    elements = sizes.elements()
    written = ("q", "k", "v") if sizes.is_backward else ("o",)
    return fmt.output_bytes * sum(elements[name] for name in written)


def _scales_bytes(workload: Workload, sizes: Sizes) -> int:
    scaling = scaling_of(workload)
    if scaling is None:
        return 0
    heads = sizes.batch * (sizes.num_q_heads + 2 * sizes.num_kv_heads)
    return SCALE_BYTES * (heads if scaling == "head" else 3)


def _sizes(settings: AttentionSettings, direction: str) -> Iterator[Sizes]:
    """Heads outermost, then tokens, masks and lengths; a length of which the tokens are no multiple is left out."""
    heads = [HEADS.parse(text) for text in dict.fromkeys(settings.heads)]
    axes = (heads, dict.fromkeys(settings.tokens), _masks(settings), dict.fromkeys(settings.seq_lens))
    for each, tokens, (mask, window), length in product(*axes):
        if tokens % length == 0:
            q, kv, head_dim, v_head_dim = each
            yield Sizes(direction, tokens // length, q, kv, length, length, head_dim, v_head_dim, mask, window)


def _masks(settings: AttentionSettings) -> list[tuple[str, int | None]]:
    found: list[tuple[str, int | None]] = []
    for mask in dict.fromkeys(settings.masks):
        found += [(mask, window) for window in dict.fromkeys(settings.windows)] if mask == SLIDING_WINDOW else [(mask, None)]
    return found


def _semantics(settings: AttentionSettings, name: str) -> list[Items]:
    pairs = product(listed(settings.scaling), listed(settings.hadamard))
    return list(dict.fromkeys(semantics_of(name, scaling, hadamard) for scaling, hadamard in pairs))


def _check_lengths(settings: AttentionSettings) -> None:
    """Some tokens are whole sequences of some length."""
    if all(tokens % length for tokens, length in product(settings.tokens, settings.seq_lens)):
        tokens, length = max(settings.tokens), min(settings.seq_lens)
        raise UsageError(
            f"jobs.attention.tokens={written(settings.tokens)} leaves nothing of seq_lens={written(settings.seq_lens)}: tokens "
            f"are those of whole sequences; write tokens=[{min(-(-tokens // length), LARGEST_LENGTH // length) * length}]"
        )
