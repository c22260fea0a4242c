"""The kernels compiled for devices that are not there, and what they became.

    python -m tests.backends.triton.grouped.compiled SPEC...    # DEVICE/FORMAT/SIZES, with /row, /fast or /block behind it

``SIZES`` is a key of ``SIZES``; /fast is /row with short sums, /gluon the kernel for Hopper, and a number behind all takes that
one of the candidates.  Prints one JSON object a line as it goes: a compiler that gives up may take its process with it.
"""

import json
import re
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from triton.errors import TritonError

from backends.targets.absent import compiled
from backends.targets.binary import text_of
from backends.targets.grouped import launched
from backends.triton.fp8_blocks import hopper_config
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import matrix_instructions
from backends.triton.gemm.port import emulation
from backends.triton.gemm.port import reason as plain_reason
from backends.triton.grouped import hopper_call
from backends.triton.grouped.call import calls
from backends.triton.grouped.config import candidates, shared_bytes
from backends.triton.grouped.problem import BLOCK, NONE, ROW, Problem
from suite.jobs.grouped_gemm import Sizes
from tests.backends.triton.compiled import DEVICES, complaints, registers

# A prefill of DeepSeek's experts, a decoding step of few tokens over many of them, and rows that no descriptor steps over.
SIZES = {
    "prefill": Sizes(4, 32768, 6144, 7168),
    "step": Sizes(256, 1024, 4096, 7168, "balanced", top_k=8),
    "odd": Sizes(4, 32768, 6145, 7167),
}


class Spec(NamedTuple):
    device: Device
    problem: Problem
    place: int
    gluon: bool

    @classmethod
    def parse(cls, text: str) -> "Spec":
        device, format_name, sizes, *more = text.split("/")
        rows, wanted = SIZES[sizes], set(more)
        scales = BLOCK if wanted & {"block", "gluon"} else ROW if wanted & {"row", "fast"} else NONE
        place = next((int(each) for each in more if each.isdigit()), 0)
        problem = Problem(format_name, rows.stored_rows, rows.n, rows.k, "row" in wanted, scales)
        return cls(DEVICES[device], problem, place, "gluon" in wanted)

    @property
    def configs(self) -> Sequence[Any]:
        return hopper_call.candidates(self.device) if self.gluon else candidates(self.problem, self.device)

    def expected_bytes(self, config: Any) -> int:
        return hopper_config.shared_bytes(config) if self.gluon else shared_bytes(config, self.problem, self.device)


def calls_of(spec: Spec, config: Any) -> Any:
    """What a launch calls, on tensors without memory."""
    return launched(spec.device, spec.problem, config, hopper_call.calls if spec.gluon else calls)


def outcome(spec: Spec) -> dict[str, Any]:
    """What the kernels of a spec became, or why there are none."""
    refused = plain_reason(spec.problem.plain, {}, spec.device)
    if refused:
        return {"refused": refused}
    config = spec.configs[spec.place]
    began_s = time.monotonic()
    try:
        schedule, product = (compiled(call, spec.device) for call in calls_of(spec, config))
    except (TritonError, RuntimeError) as error:
        return {"config": config.label, "failed": str(error).strip().splitlines()[-1][:200]}
    text = text_of(product)
    instructions = matrix_instructions(text)
    return {
        "config": config.label,
        **registers(product),
        "shared_bytes": product.metadata.shared,
        "expected_shared_bytes": spec.expected_bytes(config),
        "scratch_bytes": getattr(product.metadata, "global_scratch_size", 0),
        "instructions": instructions,
        "emulation": emulation({"instructions": instructions}, spec.problem.format),
        "complaints": complaints(product),
        "clipped_stores": text.count("cp.async.bulk.tensor.4d.global"),
        "copies": text.count("cp.async.bulk.tensor.2d.shared"),
        "limits": sorted({int(limit) for limit in re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32\s+(\d+)", text)}),
        "schedule": registers(schedule),
        "seconds": time.monotonic() - began_s,
    }


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **outcome(Spec.parse(text))}), flush=True)


if __name__ == "__main__":
    main()
