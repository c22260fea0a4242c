"""Why a product cannot run on a device."""

from typing import Any

import torch

from backends.distributions import CONSTANT, largest_product, past_the_largest
from backends.torch.data import DISTRIBUTIONS
from backends.torch.emulated import MODES, library_reason
from backends.torch.gemm import compiled
from backends.torch.gemm.epilogue import weight_factor
from backends.torch.gemm.library import way_of
from backends.torch.gemm.operands import misfit
from backends.torch.gemm.sizes import LAYOUTS, Sizes
from backends.torch.precision import SWITCHES
from backends.torch.refusals import first, format_reason, no_own_kernels, unknown
from backends.torch.target import FORMATS, Target
from suite.case import Case, Workload
from suite.jobs.emulation import EMULATIONS
from suite.jobs.gemm import IMPLEMENTATIONS
from suite.jobs.gemm.epilogue import NONE as NO_EPILOGUE
from suite.jobs.gemm.epilogue import epilogue_of, name_of, not_offered
from suite.jobs.gemm.formats import FORMATS as LADDER
from suite.jobs.gemm.formats import NONE, variant_of


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, switches, target = case.workload, dict(case.switches), storing_for(case, target)
    no_such_name = first(
        _unknown("implementation", case.implementation, IMPLEMENTATIONS),
        _unknown("format", workload.format, FORMATS),
        _unknown("distribution", workload.distribution, DISTRIBUTIONS),
        _unknown("layout", Sizes.of(workload).layout, LAYOUTS),
        *(_unknown("switch", name, SWITCHES) for name in switches),
    )
    return (
        no_such_name
        or target.missing.get(workload.format)
        or _semantics_reason(workload)
        or _epilogue_reason(case)
        or misfit(workload, target)
        or _switches_reason(workload.format, switches, target)
        or _weights_reason(workload)
        or _range_reason(workload)
        or _REASONS.get(case.implementation, _triton_reason)(case, target)
    )


def storing_for(case: Case, target: Target) -> Target:
    """The device with fp8 stored as who computes takes it: roofbench's own kernels take OCP's, and convert that on gfx942."""
    return target if case.implementation == "library" else target.in_ocp()


def output_type(workload: Workload) -> torch.dtype:
    """Of a result: scaled integers are worth real numbers."""
    return torch.bfloat16 if workload.format == "int8" and variant_of(workload).roundoff else FORMATS[workload.format].output


def _unknown(kind: str, given: str, known: Any) -> str | None:
    return unknown("gemm", kind, given, known)


def _semantics_reason(workload: Workload) -> str | None:
    semantics, fmt = dict(workload.semantics), LADDER[workload.format]
    accumulate = semantics.get("accumulate", fmt.accumulate)
    if accumulate != fmt.accumulate:
        return f"{workload.format} accumulates in {fmt.accumulate} here, not in {accumulate}"
    scaling = semantics.get("scaling")
    if scaling is not None and scaling not in fmt.variants:
        offered = " or ".join(name for name in fmt.scalings if name != NONE)
        return f"{workload.format} with {scaling} scales is not offered" + (f", only with {offered} scales" if offered else "")
    if not semantics.get("zero_point"):
        return None
    shifted = variant_of(Workload("gemm", workload.format, (), semantics=tuple(_without_zero_point(semantics)))).shifted
    return None if shifted else f"{workload.format} has no zero point; leave zero_point out"


def _without_zero_point(semantics: dict[str, Any]) -> list[tuple[str, Any]]:
    return [each for each in semantics.items() if each[0] != "zero_point"]


def _epilogue_reason(case: Case) -> str | None:
    name = name_of(case.workload)
    if name == NO_EPILOGUE:
        return None
    if "emulation" in dict(case.switches):
        return f"an emulated product goes to cuBLAS itself, without epilogue {name}; take none, or leave the emulation out"
    return not_offered(case.workload)


def _switches_reason(format_name: str, switches: dict[str, Any], target: Target) -> str | None:
    if "tf32" in switches and format_name in ("fp32", "tf32") and bool(switches["tf32"]) != (format_name == "tf32"):
        return f"format {format_name} contradicts the switch tf32={switches['tf32']}"
    if "workspace_mib" in switches and target.kind == "cpu":
        return "workspace_mib is given to cuBLAS; the libraries of a CPU take their own"
    return _emulation_reason(format_name, str(switches["emulation"]), target) if "emulation" in switches else None


def _emulation_reason(format_name: str, name: str, target: Target) -> str | None:
    if name not in MODES:
        return _unknown("emulation", name, MODES)
    if EMULATIONS[name].format != format_name:
        return f"emulation {name} computes {EMULATIONS[name].format}, not {format_name}"
    return target.missing.get(f"{format_name} by {name}") or library_reason(name)


def _range_reason(workload: Workload) -> str | None:
    """Constant data adds up with K: past the largest number of the output no kernel can be right."""
    output, k = output_type(workload), Sizes.of(workload).k
    # Scales follow exact sums in int32; with a zero point the numbers are multiplied as bf16.
    in_int32 = workload.format == "int8" and not dict(workload.semantics).get("zero_point")
    held = torch.int32 if in_int32 else output
    holder = "the output" if held == output else "a sum in int32"
    info = torch.finfo(held) if held.is_floating_point else torch.iinfo(held)
    term = largest_product(workload.distribution, integers=in_int32)
    if term is not None and epilogue_of(workload).steps:
        term *= weight_factor(k, workload.distribution)
    return past_the_largest(workload.distribution, k, term, info.max, holder)


def _weights_reason(workload: Workload) -> str | None:
    """Before an epilogue B is drawn the smaller the deeper the product: constant numbers round to 0 at last, all of them."""
    if workload.distribution != "constant" or not epilogue_of(workload).steps:
        return None
    k = Sizes.of(workload).k
    number = CONSTANT * weight_factor(k, workload.distribution)
    if torch.tensor(number, dtype=FORMATS[workload.format].operand):
        return None
    return f"constant data over k={k} has a B of {number:.4g}, which {workload.format} rounds to 0; take a smaller k, or bf16"


def _library_reason(case: Case, target: Target) -> str | None:
    """Sizes and layouts that the library behind the way refuses."""
    return way_of(case.workload, target).refuses(Sizes.of(case.workload))


def _compiled_reason(case: Case, target: Target) -> str | None:
    return compiled.refuses(case.workload.format, dict(case.switches), target)


def _triton_reason(case: Case, target: Target) -> str | None:
    """Formats, epilogues, devices and switches that roofbench's own kernels are not made for."""
    name = name_of(case.workload)
    if name != NO_EPILOGUE and target.kind != "cpu":  # there, taking none would not help
        return f"implementation {case.implementation} has no epilogue {name}; library and compiled have, or take none"
    taken = IMPLEMENTATIONS[case.implementation]
    told = format_reason(case.implementation, taken, case.workload.format) or no_own_kernels(case.implementation, target)
    if told:
        return told
    from backends.triton import ladder
    from backends.triton.gemm.device import of_torch

    told = ladder.not_taken(case.workload)
    if told:
        return told
    gluon = case.implementation == "gluon"
    return ladder.reason(ladder.problem_of(case), dict(case.switches), of_torch(target.device.index), gluon=gluon)


_REASONS = {"library": _library_reason, "compiled": _compiled_reason}
