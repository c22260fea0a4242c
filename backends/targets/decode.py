"""A decoding step's kernels as they are launched, on tensors without memory."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from backends.targets.made import Made, empty
from backends.targets.refused import refuse
from backends.triton.decode.call import Operands, Workspace, decode_call, workspace_shapes
from backends.triton.decode.config import Config, candidates
from backends.triton.decode.plan import planned
from backends.triton.decode.port import emulation
from backends.triton.decode.problem import Problem, reason
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device

LENGTHS = (4096, 4000)
PAGES = 600
WIDE = "bf16"  # of queries beside a cache of 8 bits


def decode(device: Device, **given: Any) -> Made:
    """The first configuration that fits of those worth trying; ``given`` makes a ``Problem``."""
    problem = Problem(**given)
    refuse(device.unknown or reason(problem, device))
    calls = partial(call_of, device, problem)
    return Made(candidates(problem, device), lambda config: [calls(config)], True, partial(_emulation, problem))


def call_of(device: Device, problem: Problem, config: Config) -> Call:
    """As a launch would have it."""
    p, batch = problem, len(LENGTHS)
    q = empty(batch, p.q_len, p.q_heads, p.width + p.tail, kind=_activation(p))
    cache = empty(PAGES, p.kv_heads, p.page_size, p.width + p.tail, kind=p.format)
    scale = empty(PAGES, p.kv_heads, p.page_size) if p.scales == "token" else empty(1)
    table = empty(batch, -(-max(LENGTHS) // p.page_size), kind="int32")
    operands = Operands(q, cache, cache, q[..., : p.width], empty(batch, p.q_len, p.q_heads), table, scale, scale)
    plan = planned(LENGTHS, config.block, p.kv_heads, device.units * config.resident)
    items, parts, parts_lse, arrived = workspace_shapes(p, plan, batch)
    ints = [empty(*shape, kind="int32") for shape in (items, arrived)]
    return decode_call(p, config, device, plan, operands, Workspace(ints[0], empty(*parts), empty(*parts_lse), ints[1]))


def _activation(problem: Problem) -> str:
    return WIDE if problem.has_eight_bits else problem.format


def _emulation(problem: Problem, facts: Mapping[str, Any]) -> str:
    return emulation(problem, _activation(problem), facts["instructions"])
