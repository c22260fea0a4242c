"""What the decode_step job measures: its axes, work model and footprint."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from suite.case import Case, Items, Regime, Workload
from suite.errors import UsageError
from suite.jobs.axes import check_counts, check_names, listed
from suite.jobs.decode.cache import NUMBER_BYTES
from suite.jobs.decode_step.axes import (
    COUNTED,
    HEADS,
    SIZED,
    parts_of,
    sizes_asked,
)
from suite.jobs.decode_step.formats import FORMATS, as_gemm, misfit, semantics
from suite.jobs.decode_step.sizes import PARTS, STEP, WEIGHTS, Sizes, params_of, sizes_of
from suite.jobs.decode_step.tolerance import tolerance
from suite.jobs.decode_step.work import (
    GEMM,
    activation_bytes,
    one_piece_bytes,
    resting_bytes,
    step_bytes,
    step_flops,
    weights_bytes,
)
from suite.jobs.gemm.job import SCRATCH_BYTES as GEMM_SCRATCH_BYTES
from suite.settings import JobSettings
from suite.values import written
from suite.work import Footprint, Work

# Who computes.  ``library`` is torch, launch by launch: its products, norms and attention on keys and values in one piece.
# ``triton`` are roofbench's own kernels: weights streamed once, with norm, rotation, activation and residual in the products'
# own launches, and paged attention; ``triton_tuned`` the same, each cut in whichever of several ways was the fastest.
IMPLEMENTATIONS = ("library", "triton", "triton_tuned")
DISTRIBUTIONS = ("normal", "uniform", "zeros")
NAMED = {"parts": PARTS, "distributions": DISTRIBUTIONS, "implementations": IMPLEMENTATIONS}
SCRATCH_BYTES = 1024 * 2**20  # data and references go by blocks
COLD = Regime("cold", "sustained", "device")
COLD_CALL = Regime("cold", "sustained", "call")


@dataclass
class DecodeStepSettings(JobSettings):
    """Axes of the decode_step job; each list is an axis.

    ``parts``: ``weights`` streams the matrices of all layers and of the vocabulary, each once, against activations of
    ``batches`` rows; ``step`` is a whole decode step of as many sequences with ``kv_lens`` tokens each, the new one included:
    row of the embedding, norms, products, rotation, appending to a cache in pages of ``page_sizes``, attention, logits.  Which
    token they choose is no part of it: that is up to sampling, and a check of the choice alone would see one logit of all.
    ``formats`` that a part does not have leave it out.

    ``models`` are names of ``configs/models``.  ``layers``, ``hidden_sizes``, ``heads`` (``32/8x128``), ``intermediate_sizes``
    and ``vocabularies`` are one value or a list of what stands in the place of the model's own; null leaves it.
    """

    name: str = "decode_step"
    parts: list[str] = field(default_factory=lambda: [STEP])
    formats: list[str] = field(default_factory=lambda: ["bf16"])
    models: list[str] = field(default_factory=lambda: ["llama-3-8b"])
    batches: list[int] = field(default_factory=lambda: [1])
    kv_lens: list[int] = field(default_factory=lambda: [4096])
    page_sizes: list[int] = field(default_factory=lambda: [16])
    distributions: list[str] = field(default_factory=lambda: ["normal"])
    implementations: list[str] = field(default_factory=lambda: ["library", "triton"])
    layers: Any = None
    hidden_sizes: Any = None
    heads: Any = None
    intermediate_sizes: Any = None
    vocabularies: Any = None


class DecodeStepJob:
    """See ``suite.jobs.job.Job``.

    A step is measured on the device, where launches stand in a graph, and as whoever calls it launch by launch waits for it.
    """

    name = "decode_step"
    method_version = 2  # 2: measured at several places in memory
    settings_type = DecodeStepSettings
    formats = FORMATS[WEIGHTS]
    implementations = IMPLEMENTATIONS
    usual_regimes: tuple[Regime, ...] = (COLD, COLD_CALL)

    def check(self, settings: DecodeStepSettings) -> None:
        """Refuse names that are not known, axes that are empty, and sizes that no step here has."""
        for axis, valid in {**NAMED, "formats": self.formats}.items():
            check_names(self.name, axis, getattr(settings, axis), valid)
        for axis, allowed in COUNTED.items():
            check_counts(self.name, axis, getattr(settings, axis), allowed)
        for axis, (_, allowed) in SIZED.items():
            given = listed(getattr(settings, axis))
            own = [allowed[0]] * (None in given)  # of the model, which is none of the setting's
            check_counts(self.name, axis, [each for each in given if each is not None] or own, allowed)
        if not settings.models:
            raise UsageError("jobs.decode_step.models is empty; name for instance llama-3-8b, whose sizes may be replaced")
        named = [each for each in listed(settings.heads) if each is not None]
        if named or not listed(settings.heads):
            HEADS.check(named)
        for name in settings.formats:
            told = (misfit(name, sizes) for part in parts_of(settings, name) for sizes in sizes_asked(settings, part))
            found = next((each for each in told if each is not None), None)
            if found is not None:
                raise UsageError(f"{found}, or leave the format out of jobs.decode_step")
        if next(self.workloads(settings), None) is None:
            raise UsageError(
                f"jobs.decode_step.formats={written(settings.formats)} leaves nothing of parts={written(settings.parts)}: a "
                f"step is in {', '.join(FORMATS[STEP])}; add parts=[weights]"
            )

    def workloads(self, settings: DecodeStepSettings) -> Iterator[Workload]:
        """Formats outermost, then parts and models."""
        for name in dict.fromkeys(settings.formats):
            for part in parts_of(settings, name):
                for sizes, distribution in product(sizes_asked(settings, part), dict.fromkeys(settings.distributions)):
                    yield Workload("decode_step", name, params_of(sizes), distribution, semantics(name))

    def switches(self, settings: DecodeStepSettings, workload: Workload) -> tuple[Items, ...]:
        """None apply: sums are in fp32."""
        return ((),)

    def misfit(self, case: Case) -> str | None:
        """Nothing: what a device lacks is recorded."""
        return None

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """Of ``weights`` every product's operations and operands; of a ``step`` 2 operations a weight and sequence, and those
        of attention, with the bytes of ``StepBytes``.
        """
        sizes = sizes_of(workload)
        if sizes.part == STEP:
            return Work(step_flops(sizes), step_bytes(workload).total, workload.format)
        pipe = GEMM.work(as_gemm(workload, sizes, sizes.products[0])).pipe
        return Work(2 * sizes.batch * sizes.weights, weights_bytes(workload), pipe)

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint:
        """What a launch touches.  Beside it stand activations that pass on, what rests of embedding, caches and tables, and
        what libraries want in an order of their own; of the library also attention's results and what its caches have more.
        """
        sizes = sizes_of(workload)
        if sizes.part == WEIGHTS:
            return _of_products(workload, sizes)
        moved, width = step_bytes(workload), NUMBER_BYTES[workload.format]
        passed = activation_bytes(sizes, width)
        return Footprint(
            input_bytes=moved.total - moved.logits,
            output_bytes=moved.logits,
            scratch_bytes=SCRATCH_BYTES,
            rearranged_bytes=passed + resting_bytes(workload),
            returned_bytes=(("library", passed + one_piece_bytes(workload)),),
        )

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """See ``suite.jobs.decode_step.tolerance``."""
        return tolerance(workload)


def _of_products(workload: Workload, sizes: Sizes) -> Footprint:
    """Every layer has operands and results of its own; scratch is there once."""
    each = [(product.times, GEMM.footprint(as_gemm(workload, sizes, product))) for product in sizes.products]
    return Footprint(
        input_bytes=sum(count * of_one.input_bytes for count, of_one in each),
        output_bytes=sum(count * of_one.output_bytes for count, of_one in each),
        scratch_bytes=SCRATCH_BYTES + sum(of_one.scratch_bytes - GEMM_SCRATCH_BYTES for _, of_one in each),
        emulation_bytes=sum(of_one.emulation_bytes for _, of_one in each),
        rearranged_bytes=sum(count * of_one.rearranged_bytes for count, of_one in each),
    )
