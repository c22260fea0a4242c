"""Cases of the decode job made ready by the port and checked, with launches by Triton's interpreter.

    TRITON_INTERPRET=1 python -m tests.backends.triton.decode.prepared NAME...    # prints one JSON object, a verdict each

Everything but the device is the real one: refusals, buffers, plans, calls, kernels, reference, check.  fp16, because the
interpreter's bf16 products are wrong; on an AMD device, whose kernels are said in Triton's words only.
"""

import json
import sys
from typing import Any, NamedTuple

import torch

from backends.torch import jobs
from backends.torch.decode.kernel import DecodeKernel
from backends.torch.target import Target
from backends.triton import works
from backends.triton.decode import port
from backends.triton.gemm import device as device_module
from backends.triton.gemm.call import Call
from backends.triton.gemm.launch import Loaded
from suite.jobs.decode import sizes_of
from tests.backends.decode_bugs import BUGS
from tests.backends.decode_cases import decode_case, fresh_verdict
from tests.backends.triton.decode.interpreted import INTERPRETER
from tests.backends.triton.interpreter import exchange_words_once_a_launch

FACTS = {"kernel": "interpreted", "registers": 0, "spilled_words": 0, "shared_bytes": 0, "instructions": []}
TARGET = Target(torch.device("cpu"), "cuda", {}, {}, INTERPRETER.name)
EIGHT = {"scaling": "token", "activation": "fp16"}


class Spec(NamedTuple):
    """A case, given as ``decode_case`` takes it."""

    name: str
    options: dict[str, Any]
    format: str = "fp16"
    thorough: bool = False


def interpreted(call: Call) -> Loaded:
    """In the place of compiling and loading."""
    return Loaded(lambda: call.kernel[call.grid](*call.arguments, **call.constants), FACTS)


def prepared(spec: Spec, sets: int) -> tuple[Any, DecodeKernel]:
    case = decode_case("triton", spec.format, **{"heads": "4/2x32", "batch": 2, "kv_len": 67, **spec.options})
    told = jobs.reason(case, TARGET)
    assert told is None, told
    kernel = jobs.prepare(case, TARGET, sets, seed=3)
    assert isinstance(kernel, DecodeKernel)
    return case, kernel


def verdict_of(spec: Spec) -> dict[str, Any]:
    case, kernel = prepared(spec, 2)
    found = [fresh_verdict(kernel, case, seed) for seed in (5, 6)]
    worst = next((each for each in found if not each.passed), found[0])
    return {"passed": worst.passed, "error_rel": worst.error_rel, "reason": worst.reason, "described": kernel.describe()}


def caught(spec: Spec) -> dict[str, bool]:
    """Of each planted bug, whether the check finds it."""
    case, kernel = prepared(spec, 1)
    verdicts = {}
    for bug in BUGS:
        broken = bug.wrap(kernel, sizes_of(case.workload))
        verdicts[bug.name] = not [fresh_verdict(broken, case, seed) for seed in (10, 11)][-1].passed
    return verdicts


SOUND = [
    Spec("pages of 16", {}),
    Spec("pages of 1, skewed", {"page_size": 1, "lengths": "skewed"}),
    Spec("pages of 128, in order", {"page_size": 128, "order": "contiguous"}, thorough=True),
    Spec("a shared prefix", {"shared_prefix": 32, "lengths": "uniform", "batch": 3, "kv_len": 100}),
    Spec("MQA, several new tokens", {"heads": "4/1x32", "q_len": 3}, thorough=True),
    Spec("MLA", {"heads": "8/1x48/32"}),
    Spec("fp32", {}, "fp32", thorough=True),
    Spec("int8, scales of tokens", EIGHT, "int8"),
    Spec("int8, scale of the tensor", {**EIGHT, "scaling": "tensor"}, "int8", thorough=True),
    Spec("fp8, scales of tokens", EIGHT, "fp8_e4m3"),
    Spec("MLA in int8", {**EIGHT, "heads": "8/1x48/32"}, "int8", thorough=True),
    Spec("many splits", {"batch": 1, "kv_len": 500}),
]
BROKEN = Spec("planted bugs", {**EIGHT, "kv_len": 37, "page_size": 8}, "int8")


def main() -> None:
    exchange_words_once_a_launch()
    device_module.of_torch = lambda index: INTERPRETER
    works.why_not = lambda: ""  # type: ignore[assignment]
    port.make.__defaults__ = (interpreted, torch.cuda)
    asked = [spec for spec in SOUND if spec.name in sys.argv[1:]]
    print(json.dumps({**{spec.name: verdict_of(spec) for spec in asked}, BROKEN.name: caught(BROKEN)}))


if __name__ == "__main__":
    main()
