"""Programs of many turns: that each turn does the work, and that a compiler which finds a way round is found out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backends.jax import program
from backends.jax.hlo import audit, parse
from backends.jax.program import NotALoop, by_first, compile_launch, compile_loop, looped

N = 64


def matrix(seed: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), (N, N), jnp.float32)


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    return a @ b


def operands(sets: int) -> list[tuple[jax.Array, ...]]:
    return [(matrix(2 * index), matrix(2 * index + 1)) for index in range(sets)]


def zeros(sets: int) -> list[jax.Array]:
    return [jnp.zeros((N, N), jnp.float32) for _ in range(sets)]


@pytest.mark.parametrize("sets", [1, 3])
def test_a_loop_gives_every_sets_product_and_its_operands_back_unchanged(sets: int) -> None:
    given = operands(sets)
    expected = [np.asarray(a) @ np.asarray(b) for a, b in given]
    before = [[np.asarray(each).copy() for each in pair] for pair in given]
    loop = compile_loop(product, given, [zeros(sets)], 4, products=1)
    after, (outputs,) = loop.program.run(tuple(given), (tuple(zeros(sets)),))
    for index in range(sets):
        np.testing.assert_allclose(outputs[index], expected[index], rtol=1e-5, atol=1e-4)
        for kept, handed_back in zip(before[index], after[index], strict=True):
            np.testing.assert_array_equal(kept, handed_back)


def test_the_loop_holds_a_product_for_each_set_and_no_other() -> None:
    loop = compile_loop(product, operands(2), [zeros(2)], 4, products=1)
    assert loop.audit.products == 2
    assert loop.audit.hoisted == ()
    assert loop.audit.copied_bytes == 0


def test_work_that_does_not_change_from_turn_to_turn_is_seen_to_leave_the_loop() -> None:
    """The fault that ties are for: without one, the product is computed once."""
    untied = jax.jit(looped(product, 4, lambda operands, output: (operands, output)))
    text = untied.lower(tuple(operands(1)), (tuple(zeros(1)),)).compile().as_text()
    assert audit(parse(text), N * N).hoisted


def test_a_product_that_the_compiler_folded_away_is_missed() -> None:
    """What becomes of a product of constants: something else is left in its place."""
    with pytest.raises(NotALoop, match="a turn is left with 0 matrix products of 2"):
        compile_loop(lambda a, b: a + b, operands(2), [zeros(2)], 4, products=1)


def test_a_loop_that_no_tie_holds_is_refused_with_what_the_compiler_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "TIES", {"nothing": lambda operands, output: (operands, output)})
    with pytest.raises(NotALoop, match=r"tied by nothing, XLA runs .* once, outside the loop"):
        compile_loop(product, operands(1), [zeros(1)], 4, products=1)


def test_a_tie_that_a_compiler_sees_through_gives_way_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "TIES", {"nothing": lambda operands, output: (operands, output), "first": by_first})
    assert compile_loop(product, operands(1), [zeros(1)], 4, products=1).tie == "first"


def test_turns_are_taken_as_often_as_asked() -> None:
    """Counted by adding one a turn to what the turn before gave."""
    start = jnp.zeros((N, N), jnp.float32), jnp.ones((N, N), jnp.float32)
    run = jax.jit(looped(jnp.add, 7, lambda operands, output: ((output, operands[1]), output)))
    _, ((output,),) = run((start,), (tuple(zeros(1)),))
    np.testing.assert_array_equal(output, np.full((N, N), 7, np.float32))


def test_a_launch_writes_into_the_buffer_that_it_is_given() -> None:
    a, b = operands(1)[0]
    output = zeros(1)[0]
    where = output.unsafe_buffer_pointer()
    launch = compile_launch(product, (a, b), output)
    result = launch.run((a, b), output)
    assert result.unsafe_buffer_pointer() == where
    assert output.is_deleted()
    assert launch.compile_s > 0


def test_integers_are_tied_too() -> None:
    a = jax.random.randint(jax.random.key(1), (N, N), -8, 8).astype(jnp.int8)

    def widened(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.lax.dot(x, y, preferred_element_type=jnp.int32)

    loop = compile_loop(widened, [(a, a + 0)], [[jnp.zeros((N, N), jnp.int32)]], 3, products=1)
    _, ((output,),) = loop.program.run(((a, a + 0),), ((jnp.zeros((N, N), jnp.int32),),))
    wide = np.asarray(a).astype(np.int32) if not a.is_deleted() else None
    assert output.dtype == jnp.int32
    assert wide is None or np.array_equal(output, wide @ wide)


@pytest.mark.parametrize("slots", [1, 3])
def test_every_launch_of_a_turn_has_an_output_of_its_own(slots: int) -> None:
    """One that the next writes over is one that the compiler leaves out: seen with barriers on a GPU."""
    given, empty = operands(2), [zeros(2) for _ in range(slots)]
    expected = [np.asarray(a) @ np.asarray(b) for a, b in given]
    loop = compile_loop(product, given, empty, 3, products=1)
    assert loop.audit.products == 2 * slots
    _, found = loop.program.run(tuple(given), tuple(tuple(slot) for slot in empty))
    for slot in found:
        for index in range(2):
            np.testing.assert_allclose(slot[index], expected[index], rtol=1e-5, atol=1e-4)
