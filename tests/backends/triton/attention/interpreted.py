"""The kernels by Triton's interpreter, for a process of its own that has TRITON_INTERPRET=1.

    python -m tests.backends.triton.attention.interpreted     # prints one JSON object: distances for each spec

Everything but the device is the real one: calls, constants, kernels.  Distances are from float64, relative to its norm, of
the outputs and of the logarithms of sums; a spec that is broken has a bug planted in its call.
"""

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from backends.triton.attention import call as calls
from backends.triton.attention.config import BackwardConfig, Config
from backends.triton.attention.problem import FULL, Mask, Problem, causal
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from tests.backends.triton.attention.reference import Operands, computed, distance, operands
from tests.backends.triton.interpreter import exchange_words_once_a_launch

DESCRIBED, POINTED = Device("90", 3, 232_448), Device("80", 3, 166_912)
CONFIG = Config(32, 32, 4, 2)
OF_KEYS, OF_QUERIES = BackwardConfig(32, 16, 4, 2), BackwardConfig(16, 32, 4, 2)
DTYPES = {"fp16": torch.float16, "fp8_e4m3": torch.float8_e4m3fn}
FAR = 1e9  # of what is not finite, or finite where it should not be

Change = Callable[[Call], Call]


class Spec(NamedTuple):
    """One problem; ``change`` plants a bug in its forward call."""

    name: str
    problem: Problem
    device: Device = DESCRIBED
    config: Config = CONFIG
    rows_first: bool = False
    change: Change | None = None

    @property
    def has_gradients(self) -> bool:
        return self.problem.format == "fp16" and self.change is None


def sized(q_len: int, kv_len: int, mask: Mask = FULL, **changes: Any) -> Problem:
    return Problem("fp16", 1, 2, 1, q_len, kv_len, 32, 32, mask)._replace(**changes)


PROBLEMS = {
    "full": sized(80, 112),
    "full, whole blocks, two sequences": sized(64, 64, batch=2),
    "causal, one head of keys each": sized(77, 77, causal(77, 77), kv_heads=2),
    "causal, fewer queries": sized(77, 111, causal(77, 111), q_heads=4, kv_heads=2),
    "causal from the top left": sized(111, 70, causal(111, 70, bottom_right=False)),
    "causal, queries without keys": sized(111, 70, causal(111, 70)),
    "window": sized(150, 150, causal(150, 150, window=40)),
    "narrow window, fewer keys": sized(150, 99, causal(150, 99, window=7)),
    "bounds on both sides": sized(70, 99, Mask(-5, 8)),
    "no keys before": sized(70, 99, Mask(20, None)),
    "192 of 128 and 64, in small": sized(70, 99, causal(70, 99), qk_dim=48, v_dim=16),
    "one query": sized(1, 99, causal(1, 99)),
    "given scale": sized(40, 40, scale=0.3),
}
FP8 = {
    "fp8": sized(70, 96, causal(70, 96), format="fp8_e4m3"),
    "fp8, V transposed": sized(70, 96, causal(70, 96), format="fp8_e4m3", v_transposed=True),
}
SOUND = [
    *(
        Spec(f"{name}{suffix}", problem, device)
        for name, problem in {**PROBLEMS, **FP8}.items()
        for suffix, device in (("", DESCRIBED), (", pointers", POINTED))
    ),
    Spec("rows before heads", PROBLEMS["causal, fewer queries"], rows_first=True),
    Spec("rows before heads, pointers", PROBLEMS["causal, fewer queries"], POINTED, rows_first=True),
    Spec("narrow blocks of keys", PROBLEMS["window"], config=Config(64, 16, 4, 2)),
]


def argument(name: str, change: Callable[[Any], Any]) -> Change:
    """A call with one argument changed."""

    def changed(call: Call) -> Call:
        place = call.kernel.arg_names.index(name)
        arguments = [change(each) if at == place else each for at, each in enumerate(call.arguments)]
        return call._replace(arguments=tuple(arguments))

    return changed


def one_program_less(call: Call) -> Call:
    return call._replace(grid=(call.grid[0] - 1, 1, 1))


BROKEN = [
    Spec("mask off by one", PROBLEMS["causal, fewer queries"], change=argument("last", lambda last: last + 1)),
    Spec("window off by one", PROBLEMS["window"], change=argument("first", lambda first: first - 1)),
    Spec("dropped block of keys", PROBLEMS["full"], change=argument("kv_len", lambda kv_len: kv_len - 32)),
    Spec("swapped heads", PROBLEMS["causal, fewer queries"], change=argument("group", lambda group: group * 2)),
    Spec("wrong scale", PROBLEMS["full"], change=argument("scale_log2", lambda scale: scale * 1.05)),
    Spec("wrong scale of V", FP8["fp8"], change=argument("v_scale_ptr", lambda scale: scale * 1.5)),
    Spec("unwritten tile", PROBLEMS["full"], change=one_program_less),
]


def run(call: Call) -> None:
    """In the place of compiling and launching."""
    call.kernel[call.grid](*call.arguments, **call.constants)


def distances_of(spec: Spec) -> dict[str, float]:
    """Of the output, of the logarithm of sums (absolute), and of each gradient where there are any."""
    problem, dtype = spec.problem, DTYPES[spec.problem.format]
    q, k, v, do = operands(problem, dtype, rows_first=spec.rows_first)
    scales = _scales(problem)
    wide = Operands(q, k, v, do)
    if scales is not None:
        scaled = [x.double() * scale[..., None, None] for x, scale in zip((q, k, v), scales, strict=True)]
        wide = Operands(scaled[0], scaled[1], scaled[2], do)
    right = computed(problem, *wide)
    o = torch.full_like(right.o, float("nan"), dtype=torch.float32 if scales else dtype)
    lse = torch.full(right.lse.shape, float("nan"))
    stored = v.transpose(2, 3).contiguous() if problem.v_transposed else v
    call = calls.forward_call(problem, spec.config, spec.device, calls.Operands(q, k, stored, o, lse, *(scales or ())))
    run(spec.change(call) if spec.change else call)
    apart = (lse.double() - right.lse).nan_to_num(0.0, posinf=FAR, neginf=FAR)  # -inf from -inf is NaN, and right
    found = {"o": distance(o, right.o), "lse": float(apart.abs().max()) if not lse.isnan().any() else FAR}
    return {**found, **_gradients(spec, Operands(q, k, v, do))} if spec.has_gradients else found


def _gradients(spec: Spec, given: Operands) -> dict[str, float]:
    problem, (q, k, v, do) = spec.problem, given
    right = computed(problem, *given)
    dq, dk, dv = (torch.full_like(each, float("nan")) for each in (q, k, v))
    lse = right.lse.float().contiguous()
    held = calls.Operands(q, k, v, right.o.to(q.dtype), lse)
    wanted = calls.Gradients(do, dq, dk, dv, torch.full_like(lse, float("nan")))
    for call in calls.backward_calls(problem, OF_KEYS, OF_QUERIES, spec.device, held, wanted):
        run(call)
    names = ("dq", "dk", "dv")
    return {name: distance(*pair) for name, *pair in zip(names, (dq, dk, dv), right.gradients, strict=True)}


def _scales(problem: Problem) -> tuple[torch.Tensor, ...] | None:
    if problem.format != "fp8_e4m3":
        return None
    generator = torch.Generator().manual_seed(9)
    heads = (problem.q_heads, problem.kv_heads, problem.kv_heads)
    return tuple(torch.rand(problem.batch, count, generator=generator) + 0.5 for count in heads)


def main() -> None:
    exchange_words_once_a_launch()
    print(json.dumps({spec.name: distances_of(spec) for spec in [*SOUND, *BROKEN] if spec.name in sys.argv[1:]}))


if __name__ == "__main__":
    main()
