"""The kernel of one product compiled for Hopper, which is not there, and what it became.

    python -m tests.backends.triton.fp8_blocks.compiled LABEL...    # of a configuration in the table

Prints one JSON object a line as it goes: a compiler that gives up may take its process with it.
"""

import json
import re
import sys
from typing import Any

import torch

from backends.targets.absent import compiled
from backends.triton.fp8_blocks.hopper_call import Tensors
from backends.triton.fp8_blocks.hopper_config import shared_bytes
from backends.triton.gemm.instructions import matrix_instructions
from backends.triton.quantised.on_hopper import CONFIGS, call
from tests.backends.triton.compiled import DEVICES, complaints, registers

META = "meta"
SIDE = 4096


def tensors(m: int, n: int, k: int) -> Tensors:
    """Without memory."""
    a, b = (torch.empty(rows, k, dtype=torch.float8_e4m3fn, device=META) for rows in (m, n))
    c = torch.empty(m, n, dtype=torch.bfloat16, device=META)
    a_scale = torch.empty(k // 128, m + -m % 16, device=META)
    return Tensors(a, b, c, a_scale, torch.empty(-(-n // 128), k // 128, device=META))


def outcome(label: str) -> dict[str, Any]:
    """What the kernel became by one configuration."""
    config = next(each for each in CONFIGS if each.label == label)
    kernel = compiled(call(config, DEVICES["sm_90"], tensors(SIDE, SIDE, SIDE)), DEVICES["sm_90"])
    ptx = str(kernel.asm["ptx"])
    return {
        **registers(kernel),
        "shared_bytes": kernel.metadata.shared,
        "expected_shared_bytes": shared_bytes(config),
        "scratch_bytes": getattr(kernel.metadata, "global_scratch_size", 0),
        "instructions": matrix_instructions(ptx),
        "complaints": complaints(kernel),
        "additions": len(re.findall(r"\bfma\.rn\.f32", ptx)),
        "copies": ptx.count("cp.async.bulk.tensor.2d.shared"),
        "limits": sorted({int(limit) for limit in re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32\s+(\d+)", ptx)}),
    }


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **outcome(text)}), flush=True)


if __name__ == "__main__":
    main()
