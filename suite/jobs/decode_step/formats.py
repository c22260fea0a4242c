"""In which formats weights are streamed, and in which a whole step is computed."""

from collections.abc import Mapping

from suite.case import Items, Workload, items
from suite.jobs.decode.formats import ACTIVATIONS, Activation
from suite.jobs.decode_step.sizes import STEP, WEIGHTS, Product, Sizes
from suite.jobs.gemm.formats import FORMATS as GEMM_FORMATS
from suite.jobs.gemm.formats import scalings_of, semantics_of

PLAIN = ("bf16", "fp16", "fp32")
FORMATS: Mapping[str, tuple[str, ...]] = {WEIGHTS: (*PLAIN, "fp8_e4m3", "w8a16", "w4a16"), STEP: PLAIN}
LAYOUT = "nt"  # a weight as a Linear layer stores it: n x k


def semantics(name: str) -> Items:
    """What a workload says of how its numbers came about: each format's own scaling."""
    ((scaling, zero_point),) = scalings_of(name, (False,), (None,))
    return semantics_of(name, scaling, zero_point)


def as_gemm(workload: Workload, sizes: Sizes, product: Product) -> Workload:
    """One product of a step as a workload of the gemm job."""
    params = items({"m": sizes.batch, "n": product.n, "k": product.k, "layout": LAYOUT})
    return Workload("gemm", workload.format, params, workload.distribution, workload.semantics)


def misfit(name: str, sizes: Sizes) -> str | None:
    """Why a model's matrices cannot be stored in a format; ``None`` when they can."""
    variant = next(iter(GEMM_FORMATS[name].variants.values()))
    told = (variant.misfit(name, product.k) for product in sizes.products)
    return next((each for each in told if each is not None), None)


def activation_of(workload: Workload) -> Activation:
    """The type of everything in a step: weights, activations, cache and logits."""
    return ACTIVATIONS[workload.format]
