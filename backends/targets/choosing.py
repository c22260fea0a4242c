"""Which configuration of a program a target takes, and what became of it."""

import time
from collections.abc import Mapping
from typing import Any

from triton.errors import TritonError

from backends.targets import binary
from backends.targets.absent import compiled
from backends.targets.made import Made
from backends.targets.refused import NothingFits
from backends.triton.gemm.device import Device
from backends.triton.gemm.fitting import told_by

NATIVE, UPCAST, NONE, NO_PRODUCT = "native", "upcast", "none", ""
ONE_WAY = "as it is"  # of a kernel that is not cut


def became(made: Made, device: Device) -> dict[str, Any]:
    """The configuration that is taken and the facts of its kernel; raises ``NothingFits``, or the compiler's own errors."""
    began_s = time.monotonic()
    passed_over: dict[str, str] = {}
    for config in made.configs:
        label = getattr(config, "label", ONE_WAY)
        try:
            kernels = [compiled(call, device) for call in made.calls(config)]
            facts = binary.facts(kernels[-1])
        except (TritonError, RuntimeError) as error:
            if not made.first_fitting:
                raise
            passed_over[label] = told_by(error)
            continue
        told = unfit(facts, device, 4 * made.spared_words(config) if made.first_fitting else None)
        if told is None:
            more = {"passed_over": passed_over} if passed_over else {}
            return {"configuration": label, "facts": {**facts, **executed(made, facts), **more}, "seconds": _since(began_s)}
        passed_over[label] = told
    tried = "; ".join(f"{label}: {why}" for label, why in passed_over.items())
    raise NothingFits(f"no configuration fits, of {len(passed_over)}: {tried}")


def unfit(facts: Mapping[str, Any], device: Device, spared_bytes: int | None) -> str | None:
    """Why a launch would be refused; ``None`` where it would not.  Without ``spared_bytes`` any spill is taken."""
    if facts["shared_bytes"] > device.shared_bytes:
        return f"takes {facts['shared_bytes']} bytes of shared memory, of {device.shared_bytes}"
    if spared_bytes is not None and facts["spilled_bytes"] > spared_bytes:
        return f"spills {facts['spilled_bytes']} bytes of each thread's registers"
    return None


def executed(made: Made, facts: Mapping[str, Any]) -> dict[str, str]:
    """Whether it multiplies the format itself, and what it multiplies in place of it."""
    if made.emulation is None:
        return {"execution": NO_PRODUCT, "instead": ""}
    if not facts["instructions"]:
        return {"execution": NONE, "instead": "multiplied without matrix instructions"}
    instead = made.emulation(facts)
    return {"execution": UPCAST if instead else NATIVE, "instead": instead}


def _since(began_s: float) -> float:
    return time.monotonic() - began_s
