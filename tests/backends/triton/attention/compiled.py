"""The kernels compiled for devices that are not there, and what they became.

    python -m tests.backends.triton.attention.compiled SPEC...     # a spec is DEVICE/KERNEL/MASK/FORMAT/HEAD[/GROUP]

``KERNEL`` is forward, fastest, preparation, keys, queries, hopper or hopper_gradients; ``HEAD`` is 64, 128, 256 or 192 (of
which V has 128); ``GROUP`` query heads share one of keys, two where none is given.  Prints one JSON object a line as it goes: a
compiler that gives up may take its process with it.
"""

import json
import re
import sys
from typing import Any, NamedTuple

import torch
from triton.errors import TritonError

from backends.targets.absent import compiled
from backends.targets.attention import backward, operands
from backends.targets.binary import text_of
from backends.triton.attention.call import Gradients, forward_call, hopper_call
from backends.triton.attention.config import BackwardConfig, Config, HopperBackwardConfig, HopperConfig
from backends.triton.attention.hopper_backward_call import hopper_backward_calls, room_for
from backends.triton.attention.problem import FULL, Mask, Problem, causal
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import matrix_instructions
from tests.backends.triton.compiled import DEVICES, registers

DEPENDENCY = re.compile(r"WARPGROUP\.DEPBAR\.LE gsb0, (?P<left>0x\d+)")
LABEL = re.compile(r"LBB\d+:")
JUMP = re.compile(r"\bBRA (?P<label>LBB\d+);")
SPILL = re.compile(r"\b(LDL|STL)\b")
LENGTH = 4096
RAGGED = LENGTH - 40
MASKS = {
    "full": FULL,
    "causal": causal(LENGTH, LENGTH),
    "window": causal(LENGTH, LENGTH, window=1000),
    "ragged": FULL,
    "ragged-window": causal(LENGTH, RAGGED, window=1000),
}
FORWARD = {"nvidia": Config(128, 64, 8, 2), "amd": Config(128, 64, 4, 1)}
FASTEST = Config(128, 64, 4, 2)  # of the portable kernel on Hopper
WIDE = {"nvidia": Config(64, 32, 4, 2), "amd": Config(64, 32, 4, 1)}  # heads of more than 128 columns
OF_KEYS = {"nvidia": BackwardConfig(32, 64, 4, 2), "amd": BackwardConfig(32, 64, 4, 1)}
OF_QUERIES = {"nvidia": BackwardConfig(64, 32, 4, 2), "amd": BackwardConfig(64, 32, 4, 1)}


class Spec(NamedTuple):
    """What is compiled, for what."""

    device: Device
    kernel: str
    problem: Problem

    @classmethod
    def parse(cls, text: str) -> "Spec":
        device, kernel, mask, format_name, head, *group = text.split("/")
        kv_len = RAGGED if mask.startswith("ragged") else LENGTH
        kv_heads = 16 // int(group[0]) if group else 8
        v_dim = 128 if head == "192" else int(head)
        transposed = format_name == "fp8_e4m3"
        kind: Mask = MASKS[mask]
        problem = Problem(format_name, 2, 16, kv_heads, LENGTH, kv_len, int(head), v_dim, kind, None, transposed)
        return cls(DEVICES[device], kernel, problem)


def call_of(spec: Spec) -> Call:
    """As a launch would have it, on tensors without memory."""
    device, kernel, problem = spec
    vendor = "amd" if device.is_amd else "nvidia"
    if kernel == "hopper":
        own_output = problem.qk_dim <= 128
        config = HopperConfig(block=128 if own_output else 64, own_output=own_output)
        return hopper_call(problem, config, device, operands(problem))
    if kernel == "hopper_gradients":
        held = operands(problem)
        given = Gradients(held.o, held.q, held.k, held.v, held.lse)
        return hopper_backward_calls(problem, HopperBackwardConfig(), held, given, room_for(problem, torch.device("meta")))[1]
    if kernel == "fastest":
        return forward_call(problem, FASTEST, device, operands(problem))
    if kernel == "forward":
        narrow = FORWARD if problem.qk_dim <= 128 else WIDE
        return forward_call(problem, narrow[vendor], device, operands(problem))
    calls = backward(problem, (OF_KEYS[vendor], OF_QUERIES[vendor]), device)
    return calls[("preparation", "keys", "queries").index(kernel)]


def outcome(spec: Spec) -> dict[str, Any]:
    """What the kernel of a spec became, or why there is none."""
    try:
        kernel = compiled(call_of(spec), spec.device)
    except (TritonError, RuntimeError) as error:
        return {"failed": str(error).strip().splitlines()[-1][:200]}
    text = text_of(kernel)
    return {
        **registers(kernel),
        "shared_bytes": kernel.metadata.shared,
        "instructions": matrix_instructions(text),
        "tensor_copies": text.count("cp.async.bulk.tensor"),
        "barriers": text.count("mbarrier.try_wait"),
        "overlapped": overlapped(kernel.asm["sass"]) if spec.kernel == "hopper" else [],
        "spills_of_loops": spills_of_loops(kernel.asm["sass"]) if spec.kernel == "fastest" else [],
    }


def overlapped(sass: str) -> list[int]:
    """Exponentials between each wait that leaves a product under way and the wait for that product, as they are executed."""
    counts: list[int] = []
    is_under_way = False
    for line in sass.splitlines():
        if found := DEPENDENCY.search(line):
            is_under_way = int(found["left"], 16) > 0
            counts += [0] if is_under_way else []
        elif is_under_way:
            counts[-1] += "MUFU.EX2" in line
    return counts


def spills_of_loops(sass: str) -> list[int]:
    """How often each innermost loop that multiplies stores or loads what is spilled, as they lie in the code."""
    lines = sass.splitlines()
    places = {line.removesuffix(":"): place for place, line in enumerate(lines) if LABEL.fullmatch(line)}
    jumps = [(places[found["label"]], place) for place, line in enumerate(lines) if (found := JUMP.search(line))]
    loops = [(first, last) for first, last in jumps if first < last]
    innermost = [
        lines[first:last]
        for first, last in loops
        if not any(first <= other_first and other_last < last for other_first, other_last in loops)
    ]
    products = [body for body in innermost if any("HGMMA" in line for line in body)]
    return [sum(SPILL.search(line) is not None for line in body) for body in products]


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **outcome(Spec.parse(text))}), flush=True)


if __name__ == "__main__":
    main()
