"""Products of quantised operands by Triton's interpreter, for a process of its own that has TRITON_INTERPRET=1.

    python -m tests.backends.triton.interpreted_rungs     # prints one JSON object: a verdict for each spec

Everything but the device is the real one, down to the check.  The interpreter computes products of bf16 wrong: what a kernel
would have in bf16 is in fp32 here, and numbers are converted by Triton's words and not by PTX.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import triton.language as tl

from backends.triton import ladder
from backends.triton.gemm import config as gemm_config
from backends.triton.gemm import kernel as gemm_kernel
from backends.triton.gemm import port as gemm_port
from backends.triton.gemm.call import Call
from backends.triton.gemm.config import Config as GemmConfig
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Loaded
from backends.triton.quantised import converted, scaled_config, weight_config
from backends.triton.quantised import kernel as quantised_kernel
from backends.triton.quantised.few_rows import config as few_config
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.scaled_config import Config as ScaledConfig
from backends.triton.quantised.weight_config import Config
from tests.backends.cases import fresh_verdict
from tests.backends.triton.interpreter import exchange_words_once_a_launch
from tests.backends.triton.rungs import (
    BLOCKS,
    BY_ROWS,
    FP8_ROW,
    INT8_ROW,
    MX4,
    MX8,
    W4,
    W4_ZERO,
    W8,
    WEIGHT_ONLY,
    Rung,
    buffers_of,
    shared_of,
)

DESCRIBED, POINTED = Device("90", 3, 232448), Device("89", 3, 166912)
SIZES = (19, 72, 512)  # neither m nor n a multiple of a tile, nor n of what scales are padded to
GEMM = GemmConfig(64, 64, 32, warps=4, stages=3, group=2)

Change = Callable[[Call], Call]


class Spec(NamedTuple):
    """One product by one configuration; ``change`` plants a bug in its calls."""

    name: str
    rung: Rung
    config: Any
    sizes: tuple[int, int, int] = SIZES
    device: Device = DESCRIBED
    change: Change = lambda call: call
    distribution: str = "normal"


FEW = few_config.Config(2, 4, 1, 128)
OF_ZEROS = FEW._replace(tiles=1)
TILES = Config(64, 16, 1, 4, 3, group=2)
SCALED = ScaledConfig(64, 64, 4, 3, group=2)
CONFIGS = {
    "tiles": TILES,
    "two blocks": Config(32, 16, 2, 4, 3),
    "split 2": Config(32, 16, 2, 4, 3, split=2),
    "split 3": Config(64, 32, 1, 4, 3, split=3),
    "split 1": Config(64, 32, 1, 4, 3, split=1),
}


def argument(position: int, change: Callable[[Any], Any]) -> Change:
    """A call with one argument changed."""

    def changed(call: Call) -> Call:
        arguments = [change(each) if at == position else each for at, each in enumerate(call.arguments)]
        return call._replace(arguments=tuple(arguments))

    return changed


def one_program_less(call: Call) -> Call:
    return call._replace(grid=(call.grid[0] - 1, 1, 1))


def another_format(name: str) -> Change:
    return lambda call: call._replace(constants={**call.constants, "FORMAT": name})


def neighbour_scales(scales: torch.Tensor) -> torch.Tensor:
    """Those of the rows before, which stand along the first axis where there is one for each row alone."""
    return scales.roll(1, dims=0 if scales.shape[-1] == 1 else -1)


SOUND = [
    *(Spec(f"{rung.name}, {name}", rung, config) for rung in WEIGHT_ONLY for name, config in CONFIGS.items()),
    *(Spec(f"{rung.name}, pointers", rung, TILES, device=POINTED) for rung in WEIGHT_ONLY),
    *(Spec(f"{rung.name}, pointers, split", rung, CONFIGS["split 3"], device=POINTED) for rung in (W4, MX4)),
    *(Spec(f"{rung.name}, one row", rung, CONFIGS["split 2"], (1, 72, 512)) for rung in WEIGHT_ONLY),
    Spec("w4a16, one column", W4, TILES, (5, 1, 256)),
    *(
        Spec(f"few rows, {rung.name}, one row", rung, config, (1, 48, 1024))
        for rung, config in ((W4, FEW), (W4_ZERO, OF_ZEROS))
    ),
    Spec("few rows, w4a16, one row, split", W4, FEW._replace(warps=1, split=2, sets=4), (1, 48, 1024)),
    Spec("few rows, w4a16, ragged groups", W4, FEW, (3, 48, 640)),
    Spec("few rows, w4a16, a single group", W4, FEW, (8, 33, 128)),
    Spec("few rows, w4a16, four groups a phase, an odd number of phases", W4, FEW._replace(warps=1, sets=4), (2, 32, 2560)),
    Spec("few rows, w4a16, two groups a phase, over rounds", W4, FEW._replace(warps=1, sets=2), (4, 32, 3200)),
    Spec("few rows, w4a16, a group a phase", W4, FEW._replace(warps=2), (6, 32, 2432)),
    Spec("few rows, w4a16, sixteen rows", W4, FEW._replace(tiles=4, registers=255), (16, 64, 2304)),
    Spec("few rows, w4a16, eleven rows, split", W4, FEW._replace(tiles=1, sets=1, warps=2, split=2), (11, 24, 2176)),
    Spec(
        "few rows, w4a16, sixteen rows, eight warps, groups missing",
        W4,
        FEW._replace(tiles=4, warps=8, registers=255),
        (16, 64, 640),
    ),
    Spec("few rows, w4a16, eight warps, over rounds", W4, FEW._replace(warps=8), (8, 32, 4480)),
    Spec("few rows, w4a16, sums over two of eight warps, split", W4, FEW._replace(warps=8, split=2), (3, 32, 8192)),
    Spec("few rows, w4a16, one tile of two warps", W4, FEW._replace(tiles=1, warps=2), (7, 24, 1152)),
    Spec("few rows, w4a16, one tile, four groups a phase", W4, FEW._replace(tiles=1, warps=2, sets=4), (1, 40, 1408)),
    Spec("few rows, w4a16 zero_point=True, split", W4_ZERO, FEW._replace(warps=1, split=2), (5, 48, 640)),
    Spec("few rows, w4a16 zero_point=True, four groups a phase", W4_ZERO, FEW._replace(sets=4), (2, 40, 1408)),
    Spec("few rows, w4a16, outliers", W4, FEW, (8, 32, 512), distribution="outliers"),
    Spec("w8a16, a single block of K", W8, TILES, (5, 40, 64)),
    Spec("mxfp4a16, zeros", MX4, TILES, distribution="zeros"),
    Spec("mxfp4a16, outliers", MX4, TILES, distribution="outliers"),
    Spec("mxfp4a16, the full conversion", MX4, TILES, change=another_format("mxfp4_full")),
    Spec("fp8 in blocks", BLOCKS, SCALED, (80, 144, 512)),
    Spec("fp8 in blocks, wide tiles", BLOCKS, ScaledConfig(32, 128, 4, 3), (80, 272, 384)),
    Spec("fp8 in blocks, pointers", BLOCKS, SCALED, (83, 131, 384), POINTED),
    Spec("fp8 in blocks, one row", BLOCKS, SCALED, (1, 131, 384)),
    Spec("mxfp8", MX8, GEMM, (80, 72, 512)),
    Spec("mxfp8, ragged", MX8, GEMM, (19, 37, 96)),
    Spec("mxfp8, pointers", MX8, GEMM, (19, 37, 96), POINTED),
    *(Spec(f"{rung.name}", rung, GEMM, (80, 144, 96)) for rung in BY_ROWS),
    *(Spec(f"{rung.name}, pointers", rung, GEMM, (77, 69, 35), POINTED) for rung in BY_ROWS),
]
BROKEN = [
    Spec("few rows, w4a16 unwritten rows", W4, FEW, (5, 48, 640), change=one_program_less),
    Spec("few rows, w4a16 missing part", W4, FEW._replace(warps=1, split=2), (5, 48, 640), change=one_program_less),
    Spec("few rows, w4a16 truncated K", W4, FEW, (5, 48, 640), change=argument(9, lambda k: k - 128)),
    Spec("few rows, w4a16 as unsigned", W4_ZERO, OF_ZEROS, (5, 48, 640), change=another_format("int4")),
    Spec("few rows, w4a16 wrong scales", W4, FEW, (5, 48, 640), change=argument(2, neighbour_scales)),
    Spec("few rows, w4a16 wrong zero points", W4_ZERO, OF_ZEROS, (5, 48, 640), change=argument(3, neighbour_scales)),
    Spec("few rows, w4a16 one group late", W4, FEW, (5, 48, 640), change=argument(0, lambda words: words.roll(256))),
    Spec("w4a16 unwritten tile", W4, TILES, change=one_program_less),
    Spec("w4a16 missing part", W4, CONFIGS["split 2"], change=one_program_less),
    Spec("w4a16 truncated K", W4, TILES, change=argument(8, lambda k: k - 128)),
    Spec("w4a16 as unsigned", W4_ZERO, TILES, change=another_format("int4")),
    Spec("w4a16 wrong scales", W4, TILES, device=POINTED, change=argument(2, neighbour_scales)),
    Spec("w4a16 wrong zero points", W4_ZERO, TILES, device=POINTED, change=argument(3, neighbour_scales)),
    Spec("w8a16 wrong scales", W8, TILES, change=argument(4, neighbour_scales)),
    Spec("mxfp4a16 wrong scales", MX4, TILES, device=POINTED, change=argument(2, neighbour_scales)),
    Spec("fp8 in blocks, wrong scales of B", BLOCKS, SCALED, (80, 144, 512), change=argument(3, neighbour_scales)),
    Spec("fp8 in blocks, wrong scales of A", BLOCKS, SCALED, (80, 144, 512), POINTED, argument(2, neighbour_scales)),
    Spec("fp8 in blocks, truncated K", BLOCKS, SCALED, (80, 144, 512), change=argument(7, lambda k: k - 128)),
    Spec("int8 by rows, scales exchanged", INT8_ROW, GEMM, (80, 80, 96), change=argument(3, neighbour_scales)),
    Spec("fp8 by rows, wrong scales", FP8_ROW, GEMM, (80, 80, 96), POINTED, argument(4, neighbour_scales)),
]


def main() -> None:
    exchange_words_once_a_launch()
    asked = set(sys.argv[1:])
    print(json.dumps({spec.name: verdict_of(spec) for spec in [*SOUND, *BROKEN] if spec.name in asked}))


def verdict_of(spec: Spec) -> dict[str, Any]:
    """Prepare the case on two input sets, and check it on fresh data."""
    case = spec.rung.case(*spec.sizes, distribution=spec.distribution)
    made = prepared(spec)
    verdict = fresh_verdict(made, case, seed=4)
    return {"passed": verdict.passed, "reason": verdict.reason, "loads": made.describe()["loads"]}


def prepared(spec: Spec) -> Any:
    """By the spec's configuration in the place of any that a model would choose."""
    use(spec.config)
    case = spec.rung.case(*spec.sizes, distribution=spec.distribution)
    loaded = partial(interpreted, spec.change)
    parts = (shared_of(case), 3)
    # The interpreter multiplies bf16 wrongly.  A kernel that reads X by words of two numbers has fp16 in its place.
    a_type = torch.float16 if isinstance(spec.config, few_config.Config) else torch.float32
    buffers, problem = buffers_of(case, 2, a_type), ladder.problem_of(case)
    told = ladder.not_taken(case.workload) or ladder.reason(problem, {}, spec.device)
    assert told is None, told
    if isinstance(problem, Problem):
        task = quantised_kernel.Task(problem, spec.device, buffers)
        return quantised_kernel.prepare(task, *parts, tuned=False, loaded=loaded)
    return gemm_kernel.prepare(gemm_kernel.Task(problem, spec.device, buffers), *parts, tuned=False, loaded=loaded)


few_rows_asked = few_config.reason


def use(config: Any) -> None:
    converted.WIDE = torch.float32
    few_config.reason = few_rows_asked if isinstance(config, few_config.Config) else lambda *_: "another is asked for"
    few_config.candidates = lambda problem, device: [config]
    weight_config.candidates = lambda problem, device: [config]
    scaled_config.candidates = lambda problem, device: [config]
    gemm_config.candidates = lambda problem, device: [config]
    gemm_port.default = lambda problem, device: config


IN_PLACE = {"ASM": False, "DTYPE": tl.float16}  # of what the interpreter has not


def interpreted(change: Change, call: Call) -> Loaded:
    """In the place of compiling and loading; a bug looks at what the buffers hold when it is launched."""

    def launch() -> None:
        kernel_, grid, arguments, constants, _ = change(call)
        kernel_[grid](*arguments, **{**constants, **{name: IN_PLACE[name] for name in constants if name in IN_PLACE}})

    return Loaded(launch, {"instructions": []})


if __name__ == "__main__":
    main()
