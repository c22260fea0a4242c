"""The products of a decode step as they are launched, on tensors without memory."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from backends.targets.made import Made, empty
from backends.targets.refused import refuse
from backends.triton.gemm.call import Call
from backends.triton.gemm.dependent import has_dependent_launches
from backends.triton.gemm.device import Device
from backends.triton.streaming.call import (
    Operands,
    Workspace,
    gathered_call,
    streamed_call,
    workspace_sizes,
)
from backends.triton.streaming.config import RESIDENT, Config, candidates
from backends.triton.streaming.norm import slots
from backends.triton.streaming.port import emulation
from backends.triton.streaming.problem import RESIDUAL, ROTATED, SWIGLU, Problem, reason

PAGES, CONTEXT = 300, 4096


def streamed(device: Device, **given: Any) -> Made:
    """As in a decode step: launches depend on those before them where the device has such; ``given`` makes a ``Problem``."""
    problem = Problem(**given)
    refuse(reason(problem, device))
    calls = partial(call_of, device, problem)
    return Made(candidates(problem, device), lambda config: [calls(config)], True, partial(_emulation, problem.format))


def staying(device: Device, **given: Any) -> Made:
    """The same by programs that stay, where they are among what is tried."""
    made = streamed(device, **given)
    staying = [each for each in made.configs if each.kernel == RESIDENT]
    refuse("" if staying else f"programs that stay are not made for {device.name}, or have no room there; others are taken")
    return replace(made, configs=staying)


def call_of(device: Device, problem: Problem, config: Config) -> Call:
    """One launch."""
    sizes = workspace_sizes(problem, config, device)
    workspace = Workspace(empty(sizes.parts), empty(sizes.arrived, kind="int32"))
    dependent = has_dependent_launches(device)
    return streamed_call(problem, config, device, operands(problem), workspace, dependent=dependent)


def operands(p: Problem) -> Operands:
    """Weights, activations and what the end of the product reads and writes."""
    kind = p.format
    y = empty(p.m, p.n // 2 if p.end == SWIGLU else p.n, kind=kind)
    more: dict[str, Any] = {"squares": empty(slots(p.k, p.m), p.m)} if p.normed else {}
    if p.end == RESIDUAL:
        more |= {name: empty(p.m, p.n, kind=kind) for name in ("residual", "scaled")}
        more |= {"norm": empty(p.n, kind=kind), "left": empty(slots(p.n, p.m), p.m)}
    if p.end == ROTATED:
        y = empty(p.m, p.q_heads, p.head_dim, kind=kind)
        cache = (PAGES, p.kv_heads, p.page_size, p.head_dim)
        more |= {
            "k_cache": empty(*cache, kind=kind),
            "v_cache": empty(*cache, kind=kind),
            "rotation": empty(CONTEXT, p.head_dim),
            "positions": empty(p.m, kind="int32"),
            "table": empty(p.m, CONTEXT // p.page_size + 1, kind="int32"),
        }
    return Operands(empty(p.n, p.k, kind=kind), empty(p.m, p.k, kind=kind), y, **more)


def gathered(device: Device, rows: int, width: int, kind: str) -> Made:
    """Rows of an embedding, the first launch of a step."""
    tokens, y = empty(rows, kind="int32"), empty(rows, width, kind=kind)
    refuse(device.unknown)
    norm, scaled, left = empty(width, kind=kind), empty(rows, width, kind=kind), empty(slots(width, rows), rows)
    return Made([None], lambda _: [gathered_call(empty(PAGES, width, kind=kind), tokens, y, norm, scaled, left)])


def _emulation(format_name: str, facts: Mapping[str, Any]) -> str:
    return emulation(facts, format_name)
