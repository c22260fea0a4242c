"""The streaming kernel by Triton's interpreter, for a process of its own that has TRITON_INTERPRET=1.

    python -m tests.backends.triton.streaming.interpreted     # prints one JSON object: distances for each spec

Everything but the device is the real one: calls, constants, kernels.  Distances are from float64, relative to its norm; a spec
that is broken has a bug planted in its operands or in its sizes.  fp16 and fp32, because the interpreter's bf16 is wrong.
"""

import json
import math
from collections.abc import Callable
from typing import NamedTuple

import torch

from backends.triton.gemm.device import Device
from backends.triton.streaming.call import Operands, Workspace, gathered_call, streamed_call
from backends.triton.streaming.config import MULTIPLIER, REGISTERS, RESIDENT, Config
from backends.triton.streaming.norm import EPSILON, slots
from backends.triton.streaming.problem import ENDS, PLAIN, RESIDUAL, ROTATED, SWIGLU, Problem
from tests.backends.triton.interpreter import exchange_words_once_a_launch
from tests.backends.triton.streaming.llama import operands, workspace

INTERPRETER = Device("gfx942", 4, 65_536)  # whose kernels are said in Triton's words only
ONE = Config(REGISTERS, 8, 64, 1, 1)
ONE_SPLIT = Config(REGISTERS, 16, 32, 1, 2, 2)
STAYS = Config(RESIDENT, 8, 32, 1, 2, a_unit=2)  # 8 programs, whose shares begin within tiles
ALL_STAY = Config(RESIDENT, 4, 16, 1, 3, a_unit=50)  # a program for each block, where there are no more than 200
MANY = Config(MULTIPLIER, 16, 32, 1, 2)
MANY_SPLIT = Config(MULTIPLIER, 32, 16, 1, 3, 3)
POSITIONS = (5, 36, 17)  # where new tokens stand, pages of 8 tokens

Change = Callable[[Operands], Operands]


class Spec(NamedTuple):
    """One product; ``change`` and ``wrong`` plant a bug in its operands or in what the kernel is told of it."""

    name: str
    problem: Problem
    config: Config
    change: Change | None = None
    wrong: Problem | None = None


def sized(end: str, m: int = 3, normed: bool = True, format_name: str = "fp16", **more: int) -> Problem:
    if end == ROTATED:
        heads = {"q_heads": 2, "kv_heads": 1, "head_dim": 32, "page_size": 8, **more}
        width = (heads["q_heads"] + 2 * heads["kv_heads"]) * heads["head_dim"]
        return Problem(format_name, m, width, 80, end, normed, **heads)
    return Problem(format_name, m, 44, 80, end, normed)


SOUND = [
    *(
        Spec(f"{end}, {'normed, ' if normed else ''}{config.label}", sized(end, m, normed), config)
        for end in ENDS
        for normed, config, m in (
            (False, ONE, 1),
            (True, ONE_SPLIT, 1),
            (True, STAYS, 1),
            (False, MANY, 3),
            (True, MANY_SPLIT, 3),
        )
    ),
    Spec("programs that stay for one block each", sized(SWIGLU, 1), ALL_STAY),
    Spec("programs that stay for whole tiles", sized(RESIDUAL, 1)._replace(k=128), STAYS._replace(rows=4)),
    Spec("programs that stay, of one block in all", sized(PLAIN, 1)._replace(n=8, k=32), STAYS),
    Spec("fp32, programs that stay", sized(ROTATED, 1, format_name="fp32"), STAYS),
    Spec("as many rows as columns of a tile", sized(PLAIN, 16), MANY),
    Spec("more rows than 16", sized(SWIGLU, 17), MANY_SPLIT),
    Spec("whole blocks", sized(RESIDUAL)._replace(k=128), MANY),
    Spec("one block and many programs", sized(PLAIN)._replace(k=16), MANY),
    Spec("fp32, one row", sized(ROTATED, 1, format_name="fp32"), ONE),
    Spec("fp32, three rows", sized(ROTATED, 3, format_name="fp32"), MANY),
    Spec("a KV head for each query head", sized(ROTATED, q_heads=2, kv_heads=2), MANY),
    Spec("pages of one token", sized(ROTATED, page_size=1), MANY),
]


def of(name: str, change: Change) -> Change:
    """The same with one operand changed."""
    return lambda given: given._replace(**{name: change(getattr(given, name))})


ROTATED_ONE, SWIGLU_MANY = sized(ROTATED, 1), sized(SWIGLU)
BROKEN = [
    Spec("a row of weights too far", sized(PLAIN), MANY, of("w", lambda w: w.roll(1, 0))),
    Spec("the norm's weights of the next column", sized(RESIDUAL), MANY, of("norm", lambda norm: norm.roll(1))),
    Spec("squares of the next row", sized(PLAIN), MANY, of("squares", lambda squares: squares.roll(1, 1))),
    Spec("squares of every other part left out", sized(PLAIN, 1), ONE, of("squares", lambda squares: _halved(squares))),
    Spec("no residual", sized(RESIDUAL), MANY, of("residual", torch.zeros_like)),
    Spec("X of the next row", sized(PLAIN), MANY, of("x", lambda x: x.roll(1, 0))),
    Spec("not normed", sized(PLAIN), MANY, wrong=sized(PLAIN, normed=False)),
    Spec("the last block of K left out", sized(PLAIN, normed=False)._replace(k=128), MANY, of("x", lambda x: _cut(x))),
    Spec("gates and others exchanged", SWIGLU_MANY, MANY, of("w", lambda w: w.roll(22, 0))),
    Spec("a row of weights too far for programs that stay", sized(PLAIN, 1), STAYS, of("w", lambda w: w.roll(1, 0))),
    Spec("a position too far", ROTATED_ONE, ONE, of("positions", lambda positions: positions + 1)),
    Spec("cosines for sines", ROTATED_ONE, ONE, of("rotation", lambda rotation: rotation.roll(16, 1))),
    Spec("a stale page", sized(ROTATED), MANY, of("table", lambda table: table.roll(1, 0))),
    Spec("K for V", ROTATED_ONE, ONE, of("w", lambda w: torch.cat((w[:64], w[96:], w[64:96])))),
]


def _halved(squares: torch.Tensor) -> torch.Tensor:
    squares = squares.clone()
    squares[1::2] = 0
    return squares


def _cut(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[:, -32:] = 0
    return x


def drawn(p: Problem) -> Operands:
    generator = torch.Generator().manual_seed(11)

    def normal(*sizes: int, kind: torch.dtype) -> torch.Tensor:
        return torch.zeros(sizes, dtype=kind) if kind == torch.int32 else torch.randn(sizes, generator=generator).to(kind)

    given = operands(p, normal)
    given.w.div_(math.sqrt(p.k))
    given.y.fill_(float("nan"))
    if p.normed:
        given.squares.square_()
    if p.end == RESIDUAL:
        given.scaled.fill_(float("nan"))
        given.left.zero_()
    if p.end != ROTATED:
        return given
    positions = torch.tensor((POSITIONS * p.m)[: p.m], dtype=torch.int32)
    pages = max(POSITIONS) // p.page_size + 2
    table = torch.randperm(len(given.k_cache), generator=generator)[: p.m * pages].view(p.m, pages).to(torch.int32)
    angles = torch.arange(64, dtype=torch.float64)[:, None] * 10_000.0 ** (-torch.arange(p.head_dim // 2) / (p.head_dim // 2))
    rotation = torch.cat((angles.cos(), angles.sin()), 1).to(torch.float32)
    return given._replace(positions=positions, table=table, rotation=rotation)


def right(p: Problem, given: Operands) -> list[torch.Tensor]:
    """By definition, in float64: Y; of what is added to a residual that times a norm's weights, and the sums of its squares; of
    what is rotated Q, and the newest keys and values.
    """
    x = given.x.double()
    if p.normed:
        x = x * (given.squares.double().sum(0)[:, None] / p.k + EPSILON).rsqrt()
    sums = x @ given.w.double().t()
    if p.end == RESIDUAL:
        y = sums + given.residual.double()
        return [y, y * given.norm.double(), y.square().sum(1)]
    if p.end == SWIGLU:
        gate, up = sums.chunk(2, 1)
        return [torch.nn.functional.silu(gate) * up]
    if p.end == PLAIN:
        return [sums]
    heads = sums.unflatten(1, (-1, p.head_dim))
    turns = given.rotation.double()[given.positions.long()][:, None]
    cosine, sine = turns.chunk(2, 2)
    low, high = heads.chunk(2, 2)
    turned = torch.cat((low * cosine - high * sine, high * cosine + low * sine), 2)
    q, k, v = turned[:, : p.q_heads], turned[:, p.q_heads : -p.kv_heads], heads[:, -p.kv_heads :]
    return [q, k, v]


def newest(p: Problem, given: Operands, cache: torch.Tensor) -> torch.Tensor:
    """(m, kv_heads, columns)."""
    places = [(int(given.table[row, at // p.page_size]), at % p.page_size) for row, at in enumerate(given.positions.tolist())]
    return torch.stack([cache[page, :, within] for page, within in places])


def run(spec: Spec) -> tuple[list[torch.Tensor], list[torch.Tensor], Workspace]:
    """What was found, what is right, and the workspace as the launch leaves it."""
    p, given = spec.problem, drawn(spec.problem)
    expected = right(p, given)
    caches = [] if p.end != ROTATED else [given.k_cache, given.v_cache]
    before = [cache.clone() for cache in caches]
    taken = spec.change(given) if spec.change else given
    problem = spec.wrong or spec.problem
    held = workspace(problem, spec.config, INTERPRETER, _unset)
    call = streamed_call(problem, spec.config, INTERPRETER, taken, held)
    call.kernel[call.grid](*call.arguments, **call.constants)
    found = [newest(p, given, cache) for cache in caches]
    changed = [int((cache != old).any(-1).sum()) for cache, old in zip(caches, before, strict=True)]
    assert all(count == p.m * p.kv_heads for count in changed) or spec.change, changed  # no place but the newest tokens'
    if p.end == RESIDUAL:
        found = [given.scaled, given.left.double().sum(0)]
    return [given.y, *found], expected, held


def _unset(*sizes: int, kind: torch.dtype) -> torch.Tensor:
    """Sums that nothing wrote are no numbers; counts are 0."""
    return torch.zeros(sizes, dtype=kind) if kind == torch.int32 else torch.full(sizes, float("nan"), dtype=kind)


def distances_of(spec: Spec) -> dict[str, float]:
    """The largest distance of what it wrote, and how many counts are left."""
    found, expected, held = run(spec)
    apart = [float((f.double() - e.view(f.shape)).norm() / e.norm()) for f, e in zip(found, expected, strict=True)]
    return {"distance": max(each if math.isfinite(each) else 1e9 for each in apart), "left": int(held.arrived.abs().sum())}


def gathered() -> float:
    """Numbers of an embedding's rows that are not those asked for, and distances of what they leave for a norm: 0."""
    embedding, tokens = torch.randn(50, 1100).to(torch.float16), torch.tensor([49, 0, 7], dtype=torch.int32)
    y = torch.full((3, 1100), float("nan"), dtype=torch.float16)
    norm, scaled, left = torch.randn(1100).to(torch.float16), y.clone(), torch.zeros(slots(1100, 3), 3)
    call = gathered_call(embedding, tokens, y, norm, scaled, left)
    call.kernel[call.grid](*call.arguments, **call.constants)
    squares = y.double().square().sum(1)
    is_apart = ((left.double().sum(0) - squares).abs() > 1e-6 * squares).sum() + (scaled != y * norm).sum()
    return float((y != embedding[tokens.long()]).sum() + is_apart)


def main() -> None:
    exchange_words_once_a_launch()
    found = {spec.name: distances_of(spec) for spec in [*SOUND, *BROKEN]}
    print(json.dumps({**found, "gathered": {"distance": gathered(), "left": 0}}))


if __name__ == "__main__":
    main()
