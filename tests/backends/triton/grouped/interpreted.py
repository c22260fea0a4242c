"""Whole cases of the grouped_gemm job by Triton's interpreter, for a process of its own that has TRITON_INTERPRET=1.

    python -m tests.backends.triton.grouped.interpreted     # prints one JSON object: a verdict for each spec

Everything but the device is the real one: refusals, buffers, the list of tiles, calls, kernels, the check.  bf16 is not among
the formats: the interpreter computes its products wrong.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from backends.torch.target import Target
from backends.triton import works
from backends.triton.gemm import device as device_module
from backends.triton.gemm.call import Call
from backends.triton.gemm.config import Config
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Loaded
from backends.triton.grouped import kernels, port
from backends.triton.grouped.call import Matrices, calls, room_of_list
from backends.triton.grouped.problem import Problem
from suite.jobs.grouped_gemm import Sizes
from tests.backends.grouped.cases import fresh_verdict, grouped_case, prepared
from tests.backends.triton.interpreter import exchange_words_once_a_launch

# Three units: every program goes through several tiles, and not all through equally many.
DESCRIBED, POINTED = Device("90", 3, 232_448), Device("89", 3, 166_912)
TARGET = Target(torch.device("cpu"), "cuda", {}, {}, "sm_90")
CONFIG = Config(32, 64, 32, warps=4, stages=3, group=2)
IN_BLOCKS = CONFIG._replace(block_k=128)
FACTS = {"kernel": "interpreted", "instructions": []}
SPARE_ROWS = 64

RAGGED = Sizes(7, 90, 80, 80, "skewed")
FEW = Sizes(16, 12, 48, 64, "balanced")  # most groups have no row
EQUAL = Sizes(3, 96, 48, 96)
FILLED = RAGGED._replace(alignment=16)
ODD = Sizes(5, 61, 37, 35, "skewed")
BLOCKS = Sizes(3, 50, 128, 256, "skewed")

LISTED = [
    ((5, 0, 70, 33, 0, 64, 1), 32),
    ((0, 0, 1), 64),
    ((128,), 64),
    ((0, 600, 0, 0, 17), 16),  # more tiles than one program lists
]

Change = Callable[[Call], Call]


class Spec(NamedTuple):
    """One case; ``change`` plants a bug in what a launch calls, each time it is launched."""

    name: str
    format: str
    sizes: Sizes
    device: Device = DESCRIBED
    config: Config = CONFIG
    scaling: str | None = None
    switches: dict[str, Any] | None = None
    change: Change = lambda call: call


def is_schedule(call: Call) -> bool:
    return call.kernel is kernels.schedule


def argument(position: int, value: Callable[[Any], Any], of_schedule: bool = False) -> Change:
    """One argument of the product, or of the schedule, changed."""

    def changed(call: Call) -> Call:
        if is_schedule(call) != of_schedule:
            return call
        given = [value(each) if at == position else each for at, each in enumerate(call.arguments)]
        return call._replace(arguments=tuple(given))

    return changed


def scheduled_with(**constants: Any) -> Change:
    return lambda call: call._replace(constants={**call.constants, **constants}) if is_schedule(call) else call


def rolled(scales: torch.Tensor) -> torch.Tensor:
    """Those of the row, or of the block, before."""
    return scales.roll(1, 0)


PLACES = (("", DESCRIBED), (", pointers", POINTED))
SOUND = [
    *(
        Spec(f"fp16 {name}{kind}", "fp16", sizes, where)
        for name, sizes in (("ragged", RAGGED), ("few rows", FEW), ("filled up", FILLED))
        for kind, where in PLACES
    ),
    Spec("fp16 equal", "fp16", EQUAL),
    Spec("fp16 odd", "fp16", ODD),
    *(Spec(f"fp16 {slices} slices", "fp16", RAGGED, config=CONFIG._replace(slices=slices)) for slices in (2, 4)),
    Spec("fp16 one group", "fp16", Sizes(1, 50, 48, 64)),
    Spec("fp16 one row", "fp16", Sizes(4, 1, 48, 64, "balanced")),
    Spec("fp8 rows, short sums", "fp8_e4m3", RAGGED, scaling="row"),
    Spec("fp8 rows, promoted sums, pointers", "fp8_e4m3", RAGGED, POINTED, scaling="row", switches={"fp8_fast_accum": False}),
    *(Spec(f"fp8 blocks{kind}", "fp8_e4m3", BLOCKS, where, IN_BLOCKS, "block") for kind, where in PLACES),
]
BROKEN = [
    Spec("one group less in the list", "fp16", RAGGED, change=argument(2, lambda groups: groups - 1, of_schedule=True)),
    Spec("a list of other tiles", "fp16", EQUAL._replace(m=120), change=scheduled_with(BLOCK_M=64)),
    Spec("a list cut short", "fp16", RAGGED, change=scheduled_with(STEP=2)),
    Spec("swapped ends, pointers", "fp16", RAGGED, POINTED, change=argument(5, lambda ends: ends.flip(0).contiguous())),
    Spec("narrower B", "fp16", RAGGED, change=argument(7, lambda n: n - 16)),
    Spec("truncated K", "fp16", RAGGED, change=argument(8, lambda k: k - 32)),
    Spec("scales of other rows of A", "fp8_e4m3", RAGGED, POINTED, scaling="row", change=argument(3, rolled)),
    Spec("scales of another B", "fp8_e4m3", RAGGED, scaling="row", change=argument(4, rolled)),
    Spec("blocks, scales of another block of A", "fp8_e4m3", BLOCKS, DESCRIBED, IN_BLOCKS, "block", change=argument(3, rolled)),
    Spec("blocks, scales of another B", "fp8_e4m3", BLOCKS, POINTED, IN_BLOCKS, "block", change=argument(4, rolled)),
]


def interpreted(call: Call, change: Change = lambda call: call) -> Loaded:
    """In the place of compiling and loading; a bug looks at what the buffers hold when it is launched."""

    def launch() -> None:
        kernel, grid, arguments, constants, _ = change(call)
        kernel[grid](*arguments, **constants)

    return Loaded(launch, FACTS)


def ready(spec: Spec, sets: int = 1) -> Any:
    """The case made ready as a torch backend does, on the spec's device and by its configuration."""
    device_module.of_torch = lambda index: spec.device
    works.why_not = lambda: ""  # type: ignore[assignment]
    port.candidates = lambda problem, device: [spec.config]
    port.make = partial(make, loaded=partial(interpreted, change=spec.change))
    case = grouped_case("triton", spec.format, spec.sizes, scaling=spec.scaling, switches=spec.switches)
    return case, prepared(case, sets, target=TARGET)


make = port.make


def verdict_of(spec: Spec) -> dict[str, Any]:
    case, kernel = ready(spec)
    verdict = fresh_verdict(kernel, case, seed=4)
    return {"passed": verdict.passed, "reason": verdict.reason, "loads": kernel.describe()["loads"]}


def strays(device: Device, slices: int) -> dict[str, int]:
    """Numbers that a launch changes in front of the first row of C and behind its last, and those that it leaves unwritten."""
    problem = Problem("fp16", RAGGED.stored_rows, RAGGED.n, RAGGED.k)
    config = CONFIG._replace(slices=slices)
    whole = torch.full((problem.height + 2 * SPARE_ROWS, problem.n), float("nan"), dtype=torch.float16)
    c = whole[SPARE_ROWS:-SPARE_ROWS]
    a, b = (torch.randn(rows, problem.k).half() for rows in (problem.height, problem.groups * problem.n))
    ends = torch.tensor(RAGGED.ends, dtype=torch.int32)
    tile_list = torch.zeros(room_of_list(problem, config.block_m), dtype=torch.int32)
    for call in calls(problem, config, device, Matrices(a, b, c, ends), tile_list):
        interpreted(call).launch()
    beside = int((~torch.cat([whole[:SPARE_ROWS], whole[-SPARE_ROWS:]]).isnan()).sum())
    return {"beside": beside, "unwritten": int(c.isnan().sum())}


def listed(rows: tuple[int, ...], block_m: int) -> list[int]:
    """What the schedule writes."""
    problem = Problem("fp16", rows, 16, 16)
    ends = torch.tensor(rows).cumsum(0).to(torch.int32)
    tile_list = torch.full((room_of_list(problem, block_m),), -1, dtype=torch.int32)
    matrices = Matrices(*(torch.zeros(max(1, problem.height), 16).half() for _ in range(3)), ends)
    interpreted(calls(problem, CONFIG._replace(block_m=block_m), POINTED, matrices, tile_list)[0]).launch()
    return tile_list.tolist()


def main() -> None:
    exchange_words_once_a_launch()
    verdicts = {spec.name: verdict_of(spec) for spec in [*SOUND, *BROKEN]}
    beside = {
        f"{device.name}, {slices}": strays(device, slices) for device, slices in ((DESCRIBED, 1), (DESCRIBED, 2), (POINTED, 1))
    }
    lists = [{"rows": rows, "block_m": block_m, "list": listed(rows, block_m)} for rows, block_m in LISTED]
    print(json.dumps({"verdicts": verdicts, "strays": beside, "lists": lists}))


if __name__ == "__main__":
    main()
