"""XLA programs of one computation: a single launch, and a loop of launches that the compiler cannot shorten.

Time inside one program is the difference between a program of 2N turns and one of N.  That is worth something only
while every turn does the work: a compiler folds constants, takes invariant work out of a loop, and drops what nobody
reads.  So every operand is an argument, and each launch is tied to the one before it: by a barrier that takes both, or by
writing one element of its operands back to what it was, chosen by what the launch before it computed.  The value never
changes; the compiler cannot know.  What it made of the loop is then read from the text of what it compiled.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from backends.jax.analyses import memory_analysis
from backends.jax.hlo import Audit, audit, copied_bytes, parse

# Operands of one input set (arrays, and scalars such as scales), to its output.
Compute = Callable[..., jax.Array]
Operands = tuple[jax.Array, ...]
# Makes the operands of the next launch depend on the output of the one before, without changing either.
Tie = Callable[[Operands, jax.Array], tuple[Operands, jax.Array]]


class Compiled(NamedTuple):
    """An executable with its HLO text and how long it took to compile, seconds."""

    run: Any
    text: str
    compile_s: float


class Loop(NamedTuple):
    """A program of ``turns`` turns over every input set, how its launches are tied, and what the compiler made of it."""

    program: Compiled
    turns: int
    tie: str
    audit: Audit


class NotALoop(Exception):
    """The compiler did not leave the work in the loop, or added to it; the message says what it did."""


def compile_launch(compute: Compute, operands: Operands, output: jax.Array) -> Compiled:
    """One launch into the buffer of ``output``, which it is given for that and does not read."""

    def launch(operands: Operands, output: jax.Array) -> jax.Array:
        del output
        return compute(*operands)

    return _compiled(jax.jit(launch, donate_argnums=1, keep_unused=True), operands, output)


def compile_loop(
    compute: Compute,
    operands: Sequence[Operands],
    slots: Sequence[Sequence[jax.Array]],
    turns: int,
    products: int,
    launch: Compiled | None = None,
) -> Loop:
    """``turns`` turns, at least two; buffers are taken over from the arguments and handed back.

    A turn goes over every set once for each of ``slots``, which holds an output for every set.  ``products`` is how many
    matrix products a launch consists of; what a single ``launch`` copies is its own work, and no fault of the loop, which may
    have as much of it for each of a turn's.  The cheapest tie that the compiler respects is taken.  ``NotALoop`` where it
    respects none: it hoists work out of the loop, leaves some out, or adds to it in every turn.
    """
    assert turns >= 2, "a loop of one turn is no loop"
    smallest = _smallest(operands, slots)
    launches = len(operands) * len(slots)
    own_bytes = launches * copied_bytes(parse(launch.text), smallest) if launch is not None else 0
    refused = []
    for name, tie in TIES.items():
        jitted = jax.jit(looped(compute, turns, tie), donate_argnums=(0, 1))
        program = _compiled(jitted, tuple(operands), tuple(tuple(each) for each in slots))
        found = audit(parse(program.text), smallest)
        fault = _fault(found, products * launches, own_bytes)
        if not fault:
            return Loop(program, turns, name, found)
        refused.append(f"tied by {name}, {fault}")
    raise NotALoop("; ".join(refused))


def temporary_bytes(program: Compiled) -> int:
    """What a run of it takes beside its arguments and results, such as operands converted to a type that is multiplied."""
    return memory_analysis(program.run).get("temporary_bytes", 0)


def looped(compute: Compute, turns: int, tie: Tie) -> Callable[..., Any]:
    """A function of all operands and slots of outputs that takes ``turns`` turns and returns both.

    A GPU's turns are launched by the host, with a kernel that counts them: short launches come several to a turn.  Each of
    a turn has an output of its own: one that the next writes over is one that a compiler may leave out.
    """

    def turn(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        operands, slots = list(carry[0]), [list(slot) for slot in carry[1]]
        for slot in slots:
            for index in range(len(operands)):
                slot[index] = compute(*operands[index])
                after = (index + 1) % len(operands)
                operands[after], slot[index] = tie(operands[after], slot[index])
        return tuple(operands), tuple(tuple(slot) for slot in slots)

    return lambda operands, slots: lax.fori_loop(0, turns, turn, (operands, slots))


def by_barrier(operands: Operands, output: jax.Array) -> tuple[Operands, jax.Array]:
    """Costs nothing; some of XLA's compilers take barriers out before they look for invariant work."""
    tied: tuple[Operands, jax.Array] = lax.optimization_barrier((operands, output))
    return tied


def by_first(operands: Operands, output: jax.Array) -> tuple[Operands, jax.Array]:
    """Costs a kernel that writes one element."""
    return (touched(operands[0], output), *operands[1:]), output


def by_all(operands: Operands, output: jax.Array) -> tuple[Operands, jax.Array]:
    """Costs such a kernel for each operand."""
    return tuple(touched(array, output) for array in operands), output


TIES: dict[str, Tie] = {"barrier": by_barrier, "first": by_first, "all": by_all}


def touched(array: jax.Array, output: jax.Array) -> jax.Array:
    """``array`` with its first element written back; a scalar as it is.

    A correct output holds neither NaN nor the smallest integer, which alone would change the element.
    """
    if array.ndim == 0:
        return array
    corner = (0,) * array.ndim
    old = lax.dynamic_slice(array, corner, (1,) * array.ndim)
    seen = output[(0,) * output.ndim]
    never = seen == jnp.iinfo(seen.dtype).min if jnp.issubdtype(seen.dtype, jnp.integer) else jnp.isnan(seen)
    return lax.dynamic_update_slice(array, jnp.where(never, jnp.zeros_like(old), old), corner)


def _smallest(operands: Sequence[Operands], slots: Sequence[Sequence[jax.Array]]) -> int:
    """Elements of the smallest array that work is done on: what is looked up by, such as a page table, is no such operand."""
    worked_on = [array for each in operands for array in each if array.ndim and array.dtype != jnp.int32]
    return min(int(array.size) for array in (*worked_on, *(array for slot in slots for array in slot)))


def _fault(found: Audit, products: int, own_bytes: int) -> str:
    if found.loops != 1:
        return f"the compiled program has {found.loops} loops, not one"
    if found.hoisted:
        return f"XLA runs {', '.join(found.hoisted[:3])} once, outside the loop"
    if found.products < products:
        return f"a turn is left with {found.products} matrix products of {products}"
    if found.doubled:
        return f"XLA writes a further array in {found.doubled}"
    if found.copied_bytes > own_bytes:
        beside = " beside what its launches copy by themselves" if own_bytes else ""
        return f"XLA copies {found.copied_bytes - own_bytes} bytes in every turn of the loop{beside}"
    return ""


def _compiled(jitted: Any, *arguments: Any) -> Compiled:
    began_s = time.perf_counter()
    executable = jitted.lower(*arguments).compile()
    return Compiled(executable, executable.as_text(), time.perf_counter() - began_s)
