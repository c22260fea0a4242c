"""Cases of the attention job made ready by the port and checked, with launches by Triton's interpreter.

    TRITON_INTERPRET=1 python -m tests.backends.triton.attention.prepared NAME...    # prints one JSON object, a verdict each

Everything but the device is the real one: refusals, buffers, calls, kernels, reference, check.  fp16, because the interpreter's
bf16 products are wrong.
"""

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from backends.torch import jobs
from backends.torch.attention.kernel import AttentionKernel
from backends.torch.target import Target
from backends.triton import works
from backends.triton.attention import port
from backends.triton.gemm import device as device_module
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Loaded
from tests.backends.attention_cases import JOB, attention_case, fresh_verdict
from tests.backends.triton.interpreter import exchange_words_once_a_launch

HOPPER, AMPERE = Device("90", 132, 232_448), Device("80", 108, 166_912)
TRUNCATED = 2.0  # the interpreter cuts off what e4m3 does not hold, where a device rounds to the nearest
FACTS = {"kernel": "interpreted", "registers": 0, "spilled_words": 0, "shared_bytes": 0, "instructions": []}


class Spec(NamedTuple):
    """A case; ``sees`` is told each call before it is launched, and may change it."""

    name: str
    device: Device = HOPPER
    format: str = "fp16"
    heads: str = "2/1x32"
    direction: str = "forward"
    mask: str = "causal"
    lengths: tuple[int, int] = (2, 160)
    semantics: dict[str, Any] = {}  # noqa: RUF012
    change: Callable[[Call], Call] | None = None
    thorough: bool = False


def interpreted(change: Callable[[Call], Call] | None) -> Callable[[Call], Loaded]:
    """In the place of compiling and loading."""

    def load(call: Call) -> Loaded:
        changed = change(call) if change else call
        return Loaded(lambda: changed.kernel[changed.grid](*changed.arguments, **changed.constants), FACTS)

    return load


def verdict_of(spec: Spec) -> dict[str, Any]:
    device_module.of_torch = lambda index: spec.device
    works.why_not = lambda: ""  # type: ignore[assignment]
    port.make.__defaults__ = (interpreted(spec.change), torch.cuda)
    case = attention_case(
        "triton", spec.format, spec.heads, *spec.lengths, spec.mask, spec.direction, window=41, semantics=spec.semantics
    )
    target = Target(torch.device("cpu"), "cuda", {}, {}, spec.device.name)
    told = jobs.reason(case, target)
    assert told is None, told
    kernel = jobs.prepare(case, target, 2, seed=3)
    assert isinstance(kernel, AttentionKernel)
    allowed = JOB.tolerance(case.workload, case.switches) * (TRUNCATED if spec.format == "fp8_e4m3" else 1.0)
    found = fresh_verdict(kernel, case, seed=5, tolerance=allowed)
    return {"passed": found.passed, "error_rel": found.error_rel, "reason": found.reason, "described": kernel.describe()}


def one_key_more(call: Call) -> Call:
    if "last" not in call.kernel.arg_names:  # sums of rows, which no mask touches
        return call
    place = call.kernel.arg_names.index("last")
    return call._replace(
        arguments=tuple(each + (at == place) if at == place else each for at, each in enumerate(call.arguments))
    )


SOUND = [
    Spec("causal"),
    Spec("causal, pointers", AMPERE),
    Spec("full", mask="full"),
    Spec("window", mask="sliding_window"),
    Spec("fp8, scales of heads", format="fp8_e4m3", semantics={"scaling": "head"}),
    Spec("fp8, rotated", format="fp8_e4m3", mask="full", semantics={"scaling": "tensor", "hadamard": True}, thorough=True),
    Spec("MLA", heads="2x48/16"),
    Spec("gradients", direction="backward"),
    Spec("gradients, pointers", AMPERE, direction="backward", mask="sliding_window", thorough=True),
    Spec("gradients of MLA", heads="2x48/16", direction="backward", mask="full", lengths=(1, 96), thorough=True),
]
BROKEN = [
    Spec("mask off by one", change=one_key_more),
    Spec("mask of the gradients off by one", direction="backward", change=one_key_more),
]


def main() -> None:
    exchange_words_once_a_launch()
    print(json.dumps({spec.name: verdict_of(spec) for spec in [*SOUND, *BROKEN] if spec.name in sys.argv[1:]}))


if __name__ == "__main__":
    main()
