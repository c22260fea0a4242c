"""What a device that is not here would not offer, as far as its sheet tells: a plan says it, as no device can be asked.

Of a rate that a sheet leaves out nothing follows, as nobody may have published it; a format is lacking where the sheet has a
sourced list of formats and it is not among them, or where the compute capability is below what NVIDIA says that it takes (CUDA
C++ Programming Guide, "Arithmetic Instructions"; cuBLAS documentation, "Floating Point Emulation").
"""

from collections.abc import Iterable, Iterator

from suite.case import Case
from suite.hardware.spec import HardwareSpec, is_pipe, parse_pipe
from suite.jobs.emulation import EMULATIONS, NATIVE
from suite.planned import PlannedCase

Capability = tuple[int, int]
BY_CUBLAS, WITHOUT_CUBLAS = "cuda", ("rocm", "xla", "cpu")  # another's backend may call whatever it likes
BY_TORCH_ON_GPUS = ("cuda", "rocm")
INT8_SINCE: Capability = (7, 5)
EMULATED_FP64_SINCE: Capability = (8, 0)
EMULATED_FP32_ON: tuple[Capability, ...] = ((10, 0), (10, 3))


def lacking(planned: PlannedCase, spec: HardwareSpec | None) -> str:
    """Why a device of this sheet, if there is one, would not offer a case; empty where it may."""
    case, unit = planned.case, _unit(planned)
    emulation = str(dict(case.switches).get("emulation") or NATIVE)
    if emulation in EMULATIONS:
        return _no_emulation(case, emulation, spec)
    if spec is None or case.backend not in BY_TORCH_ON_GPUS:
        return ""
    if unit == "tf32" and not has_listed(spec, "tf32"):
        return f"the sheet lists {', '.join(spec.formats)}, and no tf32"
    if unit == "int8" and (found := capability(spec)) is not None and found < INT8_SINCE:
        return f"int8 tensor cores need compute capability {_text(INT8_SINCE)}, and the sheet says {_text(found)}"
    return ""


def without_unit(cases: Iterable[PlannedCase], spec: HardwareSpec) -> Iterator[str]:
    """The formats of these cases for which a device of the sheet has no unit: it converts them, or does not offer them."""
    asked = dict.fromkeys((each.case.workload.format, unit) for each in cases if (unit := _unit(each)))
    known = (name for name, unit in asked if not has_listed(spec, unit) and spec.peak_flop_s(unit) is None)
    yield from dict.fromkeys(known)


def has_listed(spec: HardwareSpec, unit: str) -> bool:
    """Whether a unit's format is among those that the sheet's maker lists, or nobody listed them."""
    return not spec.formats or any(unit.partition("_")[0] in text for text in spec.formats)


def capability(spec: HardwareSpec) -> Capability | None:
    """NVIDIA's compute capability, as (9, 0); ``None`` of others."""
    major, _, minor = (spec.runtime.compute_capability or "").partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def _no_emulation(case: Case, name: str, spec: HardwareSpec | None) -> str:
    what = f"{EMULATIONS[name].format} by {name}"
    found = capability(spec) if spec is not None else None
    if case.backend in WITHOUT_CUBLAS:
        return f"{what} is a mode of NVIDIA's cuBLAS, which backend {case.backend} does not call"
    if case.backend != BY_CUBLAS or found is None:
        return ""
    if name == "bf16x9" and found not in EMULATED_FP32_ON:
        needed = " or ".join(map(_text, EMULATED_FP32_ON))
    elif name != "bf16x9" and found < EMULATED_FP64_SINCE:
        needed = _text(EMULATED_FP64_SINCE)
    else:
        return ""
    return f"{what} needs compute capability {needed}, and the sheet says {_text(found)}"


def _unit(planned: PlannedCase) -> str:
    """The unit that a case's products are for; empty where there are none."""
    pipe = planned.work.pipe
    return parse_pipe(pipe).unit if pipe is not None and planned.work.flops and is_pipe(pipe) else ""


def _text(found: Capability) -> str:
    return ".".join(map(str, found))
