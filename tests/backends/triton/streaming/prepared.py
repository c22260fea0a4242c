"""Cases of the decode_step job made ready by roofbench's own kernels and checked, with launches by Triton's interpreter.

    TRITON_INTERPRET=1 python -m tests.backends.triton.streaming.prepared     # prints one JSON object: a verdict for each spec

Everything but the device is the real one: refusals, buffers, calls, kernels, paged attention, reference, check.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from backends.torch import jobs
from backends.torch.decode_step.kernel import StepKernel
from backends.torch.decode_step.operands import StepBuffers
from backends.torch.target import Target
from backends.triton import works
from backends.triton.decode import port as decode_port
from backends.triton.gemm import device as device_module
from backends.triton.gemm.call import Call
from backends.triton.gemm.launch import Loaded
from backends.triton.streaming import products, step
from suite.case import Case
from tests.backends.decode_step.cases import fresh_verdict, run_all, step_case
from tests.backends.triton.interpreter import exchange_words_once_a_launch
from tests.backends.triton.streaming.interpreted import INTERPRETER

FACTS = {"kernel": "interpreted", "registers": 0, "spilled_words": 0, "shared_bytes": 0, "instructions": []}
TARGET = Target(torch.device("cpu"), "cuda", {}, {}, INTERPRETER.name)
SMALL: dict[str, Any] = {
    "layers": 2,
    "hidden_sizes": 16,
    "heads": "2/1x16",
    "intermediate_sizes": 32,
    "vocabularies": 24,
    "batches": [2],
    "kv_lens": [13],
}


class Spec(NamedTuple):
    """A case, given as ``step_case`` takes it."""

    name: str
    part: str = "step"
    format: str = "fp16"
    options: Mapping[str, Any] = MappingProxyType({})


SOUND = [
    Spec("two sequences"),
    Spec("one sequence", options={"batches": [1], "layers": 1}),
    Spec("fp32, pages of one token", format="fp32", options={"page_sizes": [1], "layers": 1}),
    Spec("weights alone", "weights"),
    Spec("weights alone, one row", "weights", options={"batches": [1], "layers": 1}),
]


def interpreted(call: Call) -> Loaded:
    """In the place of compiling and loading."""
    return Loaded(lambda: call.kernel[call.grid](*call.arguments, **call.constants), FACTS)


def on_interpreter() -> None:
    """Make the interpreter the device that the ports find."""
    device_module.of_torch = lambda index: INTERPRETER
    works.why_not = lambda: ""  # type: ignore[assignment]
    step.make.__defaults__ = (interpreted, torch.cuda)
    products.prepare.__defaults__ = (interpreted, torch.cuda)
    assert decode_port.make.__defaults__ is not None


def prepared(spec: Spec) -> tuple[Case, Any]:
    case = step_case("triton", spec.format, spec.part, backend="cuda", **{**SMALL, **spec.options})
    told = jobs.reason(case, TARGET)
    assert told is None, told
    return case, jobs.prepare(case, TARGET, 1, 3)


def verdict_of(spec: Spec) -> dict[str, Any]:
    case, kernel = prepared(spec)
    found = fresh_verdict(kernel, case, 5)
    return {"passed": found.passed, "error_rel": found.error_rel, "reason": found.reason, "described": kernel.describe()}


@contextmanager
def changed(*tensors: torch.Tensor) -> Any:
    """What a launch finds wrong is put right after it."""
    kept = [tensor.clone() for tensor in tensors]
    yield
    for tensor, before in zip(tensors, kept, strict=True):
        tensor.copy_(before)


def stale(name: str) -> Callable[[StepKernel, StepBuffers], None]:
    """The last layer by the weights of the first."""

    def launch(kernel: StepKernel, each: StepBuffers) -> None:
        weights, other = (getattr(each.layers[place], name).data for place in (-1, 0))
        with changed(weights):
            weights.copy_(other)
            run_all(kernel)

    return launch


def a_position_too_few(kernel: StepKernel, each: StepBuffers) -> None:
    with changed(each.positions):
        each.positions.sub_(1)
        run_all(kernel)


def stale_page(kernel: StepKernel, each: StepBuffers) -> None:
    with changed(each.table.data):
        each.table.data[0, 0] = each.table.data[1, 0]
        run_all(kernel)


def another_token(kernel: StepKernel, each: StepBuffers) -> None:
    with changed(each.tokens.data):
        each.tokens.data.add_(1).remainder_(24)
        run_all(kernel)


def truncated_logits(kernel: StepKernel, each: StepBuffers) -> None:
    run_all(kernel)
    each.logits[:, -3:] = each.logits[:, -6:-3].clone()


def stray_key(kernel: StepKernel, each: StepBuffers) -> None:
    run_all(kernel)
    each.layers[0].k.data[int(each.table.data[1, 0]), 0, 2] += 1


WEIGHTS = ("qkv", "o", "gate_up", "down", "attention_norm", "feed_norm")
BUGS: dict[str, Callable[[StepKernel, StepBuffers], None]] = {
    **{f"stale {name}": stale(name) for name in WEIGHTS},
    "a position too few": a_position_too_few,
    "stale page": stale_page,
    "embedding of another token": another_token,
    "last logits repeated": truncated_logits,
    "a key of another token overwritten": stray_key,
}


# Those by the interpreter; on a device all of them are planted.
INTERPRETED = [name for name in BUGS if name not in ("stale o", "stale gate_up", "stale attention_norm")]


def caught() -> dict[str, bool]:
    """Of each planted bug, whether the check finds it."""
    case, kernel = prepared(Spec("planted bugs", options={"page_sizes": [4]}))
    each = kernel.buffers[0]
    return {
        name: not fresh_verdict(kernel, case, 10, run=lambda name=name: BUGS[name](kernel, each)).passed for name in INTERPRETED
    }


def main() -> None:
    exchange_words_once_a_launch()
    on_interpreter()
    print(json.dumps({**{spec.name: verdict_of(spec) for spec in SOUND}, "planted bugs": caught()}))


if __name__ == "__main__":
    main()
