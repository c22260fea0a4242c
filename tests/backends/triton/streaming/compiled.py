"""The streaming kernel compiled for devices that are not there, and what it became.

    python -m tests.backends.triton.streaming.compiled SPEC...   # DEVICE/FORMAT/KIND/ROWS, with /NUMBER of the candidate

``KIND`` is a product of Llama-3-8B; the first candidate is taken where none is named.  Launches are dependent where the device
has such.  Prints one JSON object a line as it goes.
"""

import json
import re
import sys
from typing import Any

from triton.errors import TritonError

from backends.targets.absent import compiled
from backends.targets.binary import text_of
from backends.targets.streaming import call_of
from backends.triton.gemm.instructions import matrix_instructions
from backends.triton.streaming.config import candidates, shared_bytes
from tests.backends.triton.compiled import DEVICES, registers
from tests.backends.triton.streaming.llama import problem


def outcome(text: str) -> dict[str, Any]:
    """What the kernel of a spec became, or why there is none."""
    name, format_name, kind, rows, *number = text.split("/")
    device, p = DEVICES[name], problem(kind, int(rows), format_name)
    config = candidates(p, device)[int(number[0]) if number else 0]
    try:
        kernel = compiled(call_of(device, p, config), device)
    except (TritonError, RuntimeError) as error:
        return {"failed": str(error).strip().splitlines()[-1][:200]}
    code = text_of(kernel)
    return {
        "config": config.label,
        "kernel": config.kernel,
        **registers(kernel),
        "shared_bytes": kernel.metadata.shared,
        "expected_shared_bytes": shared_bytes(config, p, device),
        "instructions": matrix_instructions(code),
        "wide_loads": len(re.findall(r"ld\.global\S*\.v4\.b32|global_load_dwordx4|buffer_load_dwordx4", code)),
        "copies": code.count("cp.async.c"),
        "waits": code.count("griddepcontrol.wait"),
        "triggers": code.count("griddepcontrol.launch_dependents"),
        "loads_before_the_wait": code.partition("griddepcontrol.wait")[0].count("ld.global") if "griddepcontrol" in code else 0,
    }


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **outcome(text)}), flush=True)


if __name__ == "__main__":
    main()
