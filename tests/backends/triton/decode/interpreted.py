"""The kernels by Triton's interpreter, for a process of its own that has TRITON_INTERPRET=1.

    python -m tests.backends.triton.decode.interpreted     # prints one JSON object: distances for each spec

Everything but the device is the real one: plans, calls, constants, kernels.  Distances are from float64, relative to its norm,
of the outputs and of the logarithms of sums; a spec that is broken has a bug planted in its operands or in its plan.
"""

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from backends.triton.decode.call import Operands, Workspace, decode_call, workspace_shapes
from backends.triton.decode.config import REGISTERS, STAGED, Config
from backends.triton.decode.plan import Plan, planned
from backends.triton.decode.problem import Problem
from backends.triton.gemm.device import Device
from suite.jobs.decode.pages import paged
from tests.backends.triton.decode.reference import computed, distance, operands
from tests.backends.triton.interpreter import exchange_words_once_a_launch

INTERPRETER = Device("gfx942", 4, 65_536)  # whose kernels are said in Triton's words only
STAGED_CONFIG = Config(STAGED, 16, 16, 1, 2, 2)
REGISTERS_CONFIG = Config(REGISTERS, 8, 32, 1, 1, 2)
FAR = 1e9  # of what is not finite, or finite where it should not be

ChangePlan = Callable[[Plan], Plan]
ChangeOperands = Callable[[Operands], Operands]


class Spec(NamedTuple):
    """One problem; ``plan`` and ``operands`` plant a bug."""

    name: str
    problem: Problem
    lengths: tuple[int, ...]
    config: Config = STAGED_CONFIG
    shared_tokens: int = 0
    tokens_first: bool = False
    v_size: float = 1.0
    q_dtype: torch.dtype = torch.float16  # beside 8 bits
    slots: int = 8
    plan: ChangePlan | None = None
    operands: ChangeOperands | None = None


def sized(page_size: int = 4, **changes: Any) -> Problem:
    return Problem("fp16", 4, 2, 16, page_size)._replace(**changes)


def eight(format_name: str, scales: str, page_size: int = 16, **changes: Any) -> Problem:
    return Problem(format_name, 4, 2, 64, page_size, scales=scales)._replace(**changes)


RAGGED = (150, 1, 67, 32)
MLA = sized(width=32, tail=16, shared_values=True, q_heads=8, kv_heads=1)

STAGED_SPECS = [
    *(Spec(f"pages of {size}", sized(size), RAGGED) for size in (1, 2, 16, 64, 128)),
    Spec("fp32, a row for each of a group", sized(format="fp32"), RAGGED, STAGED_CONFIG._replace(rows=2)),
    Spec("fp32, one row", sized(format="fp32", kv_heads=4), RAGGED, STAGED_CONFIG._replace(rows=1)),
    Spec("whole pages, one split", sized(16), (64, 64), slots=1),
    Spec("many splits", sized(), (700,), slots=64),
    Spec("heads of keys of their own", sized(kv_heads=4), RAGGED),
    Spec("MQA", sized(kv_heads=1), RAGGED),
    Spec("more rows than a block has", sized(kv_heads=1, q_heads=24), RAGGED),
    Spec("a prefix that all share", sized(), (150, 100, 67), shared_tokens=64),
    Spec("tokens before heads", sized(), RAGGED, tokens_first=True),
    *(Spec(f"{count} new tokens", sized(q_len=count), (150, 16, 67, 32)) for count in (2, 5, 8)),
    Spec("more new tokens than keys", sized(q_len=8), (5, 33)),
    Spec("MLA, in small", MLA, RAGGED),
    Spec("MLA, fp8", MLA._replace(format="fp8_e4m3", scales="tensor"), RAGGED),
    Spec("MLA, int8, two tokens", MLA._replace(format="int8", scales="token", q_len=2), RAGGED),
    Spec("always masked, as wide heads are", sized(width=256), RAGGED),
    Spec("given scale", sized(scale=0.4), RAGGED),
    Spec("staged int8, values near nothing", eight("int8", "token", width=16), RAGGED, v_size=1e-7, q_dtype=torch.float32),
    *(
        Spec(f"staged {name}, scales of the {scales}", eight(name, scales, 8, width=16), RAGGED)
        for name in ("fp8_e4m3", "int8")
        for scales in ("tensor", "token")
    ),
]
REGISTERS_SPECS = [
    Spec(f"registers {name}, {what}", problem, lengths, REGISTERS_CONFIG, **changes)
    for name in ("fp8_e4m3", "int8")
    for what, problem, lengths, changes in (
        ("tensor scales", eight(name, "tensor"), RAGGED, {}),
        ("token scales", eight(name, "token"), RAGGED, {}),
        ("heads of 128, many splits", eight(name, "token", width=128), (300, 45), {"slots": 32}),
        ("pages of 1", eight(name, "token", 1), RAGGED, {}),
        ("pages of 2, tokens before heads", eight(name, "tensor", 2), RAGGED, {"tokens_first": True}),
        ("pages of 8", eight(name, "token", 8), RAGGED, {}),
        ("pages of 128", eight(name, "token", 128), RAGGED, {}),
        ("4 new tokens", eight(name, "token", q_len=4), (150, 3, 67, 32), {}),
        ("more rows than a block has", eight(name, "tensor", q_len=5, kv_heads=1), RAGGED, {}),
        ("a prefix that all share", eight(name, "token"), (100, 67), {"shared_tokens": 64}),
        ("values near nothing", eight(name, "token"), (100, 67), {"v_size": 1e-7, "q_dtype": torch.float32}),
        ("large values", eight(name, "token"), (100, 67), {"v_size": 1e4, "q_dtype": torch.float32}),
    )
]
SOUND = [*STAGED_SPECS, *REGISTERS_SPECS]


def without_last_page(plan: Plan, page_size: int) -> Plan:
    """The tail of each sequence left out, as where a length is divided by a page's and rounded down."""
    items = [item._replace(end=min(item.end, item.kv_len // page_size * page_size)) for item in plan.items]
    return plan._replace(items=tuple(item._replace(begin=min(item.begin, item.end)) for item in items))


def one_key_more(plan: Plan) -> Plan:
    return plan._replace(items=tuple(item._replace(kv_len=item.kv_len + 1) for item in plan.items))


def stale_page(given: Operands) -> Operands:
    """One sequence reads a page of another."""
    table = given.table.clone()
    table[0, 1] = table[-1, 0]
    return given._replace(table=table)


def swapped_heads(given: Operands) -> Operands:
    return given._replace(k=given.k.flip(1))


def wrong_scale(given: Operands) -> Operands:
    """Values take the scale of the token before."""
    return given._replace(v_scale=given.v_scale.roll(1, dims=2).nan_to_num(1.0))


def wrong_tensor_scale(given: Operands) -> Operands:
    return given._replace(k_scale=given.k_scale * 1.3)


BROKEN = [
    broken._replace(name=f"{kind}: {broken.name}", problem=problem, config=config)
    for kind, problem, config in (
        ("staged", sized(16), STAGED_CONFIG),
        ("registers", eight("fp8_e4m3", "token"), REGISTERS_CONFIG),
    )
    for broken in (
        Spec("dropped tail page", problem, (150, 67), plan=lambda plan: without_last_page(plan, 16)),
        Spec("stale page", problem, (150, 67), operands=stale_page),
        Spec("swapped heads", problem, (150, 67), operands=swapped_heads),
        Spec("dropped split", problem, (150, 67), plan=lambda plan: plan._replace(items=plan.items[:-1])),
    )
]
BROKEN += [
    Spec("staged: mask off by one", sized(16, q_len=4), (150, 67), plan=one_key_more),
    Spec("registers: mask off by one", eight("int8", "token", q_len=4), (150, 67), REGISTERS_CONFIG, plan=one_key_more),
    Spec("staged: wrong scale", eight("int8", "token", width=16), (150, 67), operands=wrong_scale),
    Spec("registers: wrong scale", eight("int8", "token"), (150, 67), REGISTERS_CONFIG, operands=wrong_scale),
    Spec("registers: wrong tensor scale", eight("int8", "tensor"), (150, 67), REGISTERS_CONFIG, operands=wrong_tensor_scale),
]


def workspace_of(problem: Problem, plan: Plan, batch: int) -> Workspace:
    shapes = workspace_shapes(problem, plan, batch)
    parts, parts_lse = (torch.full(shape, float("nan")) for shape in shapes[1:3])
    return Workspace(
        torch.tensor(plan.numbers, dtype=torch.int32), parts, parts_lse, torch.zeros(shapes.arrived, dtype=torch.int32)
    )


def run(spec: Spec) -> tuple[Operands, Workspace]:
    """The operands, decoded into, and the workspace as the launch leaves it."""
    problem, config = spec.problem, spec.config
    pages = paged(spec.lengths, problem.page_size, shared_tokens=spec.shared_tokens, seed=3)
    given = operands(problem, pages, tokens_first=spec.tokens_first, v_size=spec.v_size, q_dtype=spec.q_dtype)
    blocks = -(-problem.rows // config.rows)
    plan = planned(spec.lengths, config.block, problem.kv_heads * blocks, spec.slots)
    taken = spec.operands(given) if spec.operands else given
    plan = spec.plan(plan) if spec.plan else plan
    workspace = workspace_of(problem, plan, len(spec.lengths))
    call = decode_call(problem, config, INTERPRETER, plan, taken, workspace)
    call.kernel[call.grid](*call.arguments, **call.constants)
    return given, workspace


def distances_of(spec: Spec) -> dict[str, float]:
    """Of the output and of the logarithm of sums (absolute); how many counts are left; how many splits there were."""
    given, workspace = run(spec)
    right = computed(spec.problem, given, spec.lengths)
    apart = (given.lse.double() - right.lse).nan_to_num(0.0, posinf=FAR, neginf=FAR)  # -inf from -inf is NaN, and right
    return {
        "o": distance(given.o, right.o),
        "lse": float(apart.abs().max()) if not given.lse.isnan().any() else FAR,
        "left": int(workspace.arrived.abs().sum()),
        "splits": int(workspace.items[:, 4].max()),
    }


IN_ANY_ORDER = [
    Spec("staged, in any order", sized(), (700, 90), slots=64),
    Spec("registers, in any order", eight("int8", "token"), (700, 90), REGISTERS_CONFIG, slots=64),
]


def differing(spec: Spec) -> dict[str, float]:
    """Of three orders in which the splits arrive, how many give other bits than the first; and how many splits there are."""
    orders: tuple[ChangePlan, ...] = (
        lambda plan: plan,
        lambda plan: plan._replace(items=plan.items[::-1]),
        lambda plan: plan._replace(items=(*plan.items[1::2], *plan.items[::2])),
    )
    found = [run(spec._replace(plan=order)) for order in orders]
    first = found[0][0]
    same = [torch.equal(each.o, first.o) and torch.equal(each.lse, first.lse) for each, _ in found]
    return {"differing": same.count(False), "splits": int(found[0][1].items[:, 4].max())}


def main() -> None:
    exchange_words_once_a_launch()
    asked = set(sys.argv[1:])
    distances = {spec.name: distances_of(spec) for spec in [*SOUND, *BROKEN] if spec.name in asked}
    print(json.dumps({**distances, **{spec.name: differing(spec) for spec in IN_ANY_ORDER if spec.name in asked}}))


if __name__ == "__main__":
    main()
