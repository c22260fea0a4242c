"""The tables of choices compiled for devices that are not there: the first choice that fits and spills nothing.

    python -m tests.backends.triton.attention.chosen SPEC...     # a spec is as in ``compiled``

``KERNEL`` is forward, hopper, keys or queries.  Prints one JSON object a line.  Registers and spills are those of NVIDIA's
assembler, or what the code for AMD says of itself.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from triton.errors import TritonError

from backends.targets.absent import compiled
from backends.targets.attention import SMALL, backward, operands
from backends.triton.attention.call import forward_call, hopper_call
from backends.triton.attention.choices import (
    choices_of_forward,
    choices_of_keys,
    choices_of_queries,
    hopper_choices,
    spared_words,
)
from backends.triton.gemm.call import Call
from tests.backends.triton.attention.compiled import Spec
from tests.backends.triton.compiled import registers


def choices_of(spec: Spec) -> Sequence[Any]:
    device, kernel, problem = spec
    if kernel == "hopper":
        return hopper_choices(problem)
    tables = {"forward": choices_of_forward, "keys": choices_of_keys, "queries": choices_of_queries}
    return tables[kernel](problem, device)


def call_of(spec: Spec, config: Any) -> Call:
    """As a launch would have it, on tensors without memory."""
    device, kernel, problem = spec
    if kernel == "forward":
        return forward_call(problem, config, device, operands(problem))
    if kernel == "hopper":
        return hopper_call(problem, config, device, operands(problem))
    calls = backward(problem, (config, SMALL) if kernel == "keys" else (SMALL, config), device)
    return calls[1] if kernel == "keys" else calls[2]


def chosen(spec: Spec) -> dict[str, Any]:
    """The label of the first sound choice, and why those before it are none."""
    device = spec.device
    passed_over: dict[str, str] = {}
    for config in choices_of(spec):
        try:
            kernel = compiled(call_of(spec, config), device)
        except (TritonError, RuntimeError) as error:
            passed_over[config.label] = str(error).strip().splitlines()[-1][:200]
            continue
        spilled, shared = registers(kernel)["spilled_bytes"], kernel.metadata.shared
        spared = 4 * spared_words(spec.problem, device, config) if spec.kernel == "forward" else 0
        if spilled <= spared and shared <= device.shared_bytes:
            return {"chosen": config.label, "passed_over": passed_over}
        passed_over[config.label] = f"spills {spilled} bytes, {shared} bytes of shared memory"
    return {"chosen": None, "passed_over": passed_over}


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **chosen(Spec.parse(text))}), flush=True)


if __name__ == "__main__":
    main()
