"""Whole cases by Triton's interpreter, for a process of its own that has TRITON_INTERPRET=1.

    python -m tests.backends.triton.interpreted     # prints one JSON object: a verdict for each spec

Everything but the device is the real one: the port's wiring, the configuration's constants, the kernels, the check.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from backends.torch import jobs
from backends.torch.target import Target
from backends.triton.gemm import device, kernel, kernels, port
from backends.triton.gemm.call import Call
from backends.triton.gemm.config import Config
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Loaded
from tests.backends.cases import fresh_verdict, gemm_case
from tests.backends.triton.interpreter import exchange_words_once_a_launch

# Three units: every program goes through several tiles, and not all through equally many.
DESCRIBED = Device("90", 3, 232448)
POINTED = Device("80", 3, 166912)
ANY = Target(torch.device("cpu"), "cuda", {}, {}, "sm_90")
CONFIG = Config(64, 64, 32, warps=4, stages=3, group=2)
SIZES = (144, 112, 80)  # no multiples of the blocks, but of 16 bytes
ODD_SIZES = (77, 69, 35)

LAYOUTS = ("nt", "nn", "tn", "tt")

Change = Callable[[Call], Call]


class Spec(NamedTuple):
    """One case; ``change`` plants a bug in its calls."""

    name: str
    format: str
    sizes: tuple[int, int, int]
    layout: str = "nt"
    device: Device = DESCRIBED
    config: Config = CONFIG
    switches: dict[str, Any] | None = None
    change: Change = lambda call: call
    tile_of: Any = kernels.tile_of


@triton.jit
def wrong_tile_of(number, tiles_m, tiles_n, GROUP: tl.constexpr):  # noqa: N803
    """The last group is taken to be as high as the others: right where GROUP divides the rows of tiles."""
    group_tiles = GROUP * tiles_n
    first_row = number // group_tiles * GROUP
    within = number % group_tiles
    return first_row + within % GROUP, within // GROUP


def argument(position: int, change: Callable[[Any], Any]) -> Change:
    """A call with one argument changed."""

    def changed(call: Call) -> Call:
        arguments = [change(each) if at == position else each for at, each in enumerate(call.arguments)]
        return call._replace(arguments=tuple(arguments))

    return changed


def wrong_scale(call: Call) -> Call:
    """The scale of A in the place of that of B as well."""
    return argument(4, lambda _: call.arguments[3])(call)


def one_program_less(call: Call) -> Call:
    """A grid without its last program, in which each goes on by the number of programs: harmless; or one tile a program."""
    return call._replace(grid=(call.grid[0] - 1, 1, 1))


BY_DESCRIPTORS = {"fp16": LAYOUTS, "fp8_e4m3": LAYOUTS, "tf32": ("nn",), "int8": ("nt", "tt")}
BY_POINTERS = {"fp16": LAYOUTS, "fp8_e4m3": ("nt",), "tf32": ("nn",), "int8": ("tn",)}
SOUND = [
    *(Spec(f"{name} {layout}", name, SIZES, layout) for name, layouts in BY_DESCRIPTORS.items() for layout in layouts),
    *(
        Spec(f"{name} {layout}, pointers", name, SIZES, layout, POINTED)
        for name, layouts in BY_POINTERS.items()
        for layout in layouts
    ),
    *(Spec(f"{name} odd", name, ODD_SIZES, layout) for name, layout in (("fp16", "nt"), ("fp8_e4m3", "nn"), ("int8", "tt"))),
    *(
        Spec(f"fp16 {slices} slices, flatten {flatten}", "fp16", SIZES, config=CONFIG._replace(slices=slices, flatten=flatten))
        for slices, flatten in ((2, True), (4, False))
    ),
    *(
        Spec(f"fp8_e4m3 promoted{kind}", "fp8_e4m3", SIZES, "nt", where, switches={"fp8_fast_accum": False})
        for kind, where in (("", DESCRIBED), (", pointers", POINTED))
    ),
    Spec("fp16 one row", "fp16", (1, 144, 176)),
    Spec("fp16 one column", "fp16", (208, 1, 176)),
    Spec("fp16 one term", "fp16", (40, 48, 1), "tn"),
    Spec("fp16 one program less", "fp16", SIZES, change=one_program_less),  # a program goes on to whatever tile is left
]
BROKEN = [
    Spec("fp16 unwritten tile", "fp16", SIZES, change=argument(5, lambda m: m - CONFIG.block_m)),
    Spec("fp16 unwritten tile, pointers", "fp16", SIZES, device=POINTED, change=one_program_less),
    Spec("fp16 truncated K", "fp16", SIZES, change=argument(7, lambda k: k - CONFIG.block_k)),
    Spec("int8 truncated K, pointers", "int8", SIZES, device=POINTED, change=argument(7, lambda k: k - CONFIG.block_k)),
    Spec("fp8_e4m3 wrong scale", "fp8_e4m3", SIZES, change=wrong_scale),
    Spec("fp16 wrong group", "fp16", (320, 144, 64), tile_of=wrong_tile_of, config=CONFIG._replace(group=3)),
    Spec("fp16 wrong group, pointers", "fp16", (320, 144, 64), "nt", POINTED, CONFIG._replace(group=3), tile_of=wrong_tile_of),
]


def main() -> None:
    exchange_words_once_a_launch()
    print(json.dumps({spec.name: verdict_of(spec) for spec in [*SOUND, *BROKEN]}))


def verdict_of(spec: Spec) -> dict[str, Any]:
    """Prepare the case as a torch backend does, on two input sets, and check it on fresh data."""
    kernels.tile_of = spec.tile_of
    device.of_torch = lambda index: spec.device
    port.default = lambda problem, where: spec.config
    kernel.prepare = partial(prepare, loaded=partial(interpreted, spec.change))
    case = replace(gemm_case(spec.format, *spec.sizes, layout=spec.layout, switches=spec.switches), implementation="triton")
    made = jobs.prepare(case, ANY, sets=2, seed=3)
    verdict = fresh_verdict(made, case, seed=4)
    return {"passed": verdict.passed, "reason": verdict.reason, "loads": made.describe()["loads"]}


prepare = kernel.prepare


def interpreted(change: Change, call: Call) -> Loaded:
    """In the place of compiling and loading."""
    kernel_, grid, arguments, constants, _ = change(call)
    return Loaded(partial(kernel_[grid], *arguments, **constants), {"instructions": []})


if __name__ == "__main__":
    main()
