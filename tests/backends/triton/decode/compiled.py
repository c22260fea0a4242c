"""The kernels compiled for devices that are not there, and what they became.

    python -m tests.backends.triton.decode.compiled SPEC...   # DEVICE/FORMAT/SCALES/HEADS/PAGE, with /NUMBER of the candidate

``HEADS`` is a key of ``HEADS``; the first candidate is taken where none is named.  Prints one JSON object a line as it goes: a
compiler that gives up may take its process with it.
"""

import json
import sys
from typing import Any, NamedTuple

from triton.errors import TritonError

from backends.targets.absent import compiled
from backends.targets.binary import text_of
from backends.targets.decode import call_of
from backends.triton.decode.config import candidates, shared_bytes
from backends.triton.decode.problem import Problem, reason
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import matrix_instructions
from tests.backends.triton.compiled import DEVICES, registers

HEADS: dict[str, dict[str, Any]] = {
    "8b": {"q_heads": 32, "kv_heads": 8, "width": 128},
    "8b-4-tokens": {"q_heads": 32, "kv_heads": 8, "width": 128, "q_len": 4},
    "70b": {"q_heads": 64, "kv_heads": 8, "width": 128},
    "mqa": {"q_heads": 32, "kv_heads": 1, "width": 128},
    "mha-64": {"q_heads": 16, "kv_heads": 16, "width": 64},
    "256": {"q_heads": 16, "kv_heads": 8, "width": 256},
    "mla": {"q_heads": 128, "kv_heads": 1, "width": 512, "tail": 64, "shared_values": True},
    "mla-16": {"q_heads": 16, "kv_heads": 1, "width": 512, "tail": 64, "shared_values": True},
}


class Spec(NamedTuple):
    """What is compiled, for what."""

    device: Device
    problem: Problem
    candidate: int

    @classmethod
    def parse(cls, text: str) -> "Spec":
        device, format_name, scales, heads, page, *number = text.split("/")
        problem = Problem(format=format_name, scales=scales, page_size=int(page), **HEADS[heads])
        return cls(DEVICES[device], problem, int(number[0]) if number else 0)


def outcome(spec: Spec) -> dict[str, Any]:
    """What the kernel of a spec became, or why there is none."""
    device, problem, number = spec
    refused = reason(problem, device)
    if refused:
        return {"refused": refused}
    config = candidates(problem, device)[number]
    try:
        kernel = compiled(call_of(device, problem, config), device)
    except (TritonError, RuntimeError) as error:
        return {"failed": str(error).strip().splitlines()[-1][:200]}
    text = text_of(kernel)
    return {
        "config": config.label,
        "kernel": config.kernel,
        **registers(kernel),
        "shared_bytes": kernel.metadata.shared,
        "expected_shared_bytes": shared_bytes(config, problem, device),
        "instructions": matrix_instructions(text),
        "copies": text.count("cp.async.c"),
        "conversions": text.count("cvt.rn.f16x2.e4m3x2"),
        "wide_loads": text.count("ld.global.v4.b32"),
        "stored_words": text.count("st.shared"),
    }


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **outcome(Spec.parse(text))}), flush=True)


if __name__ == "__main__":
    main()
