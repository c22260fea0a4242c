"""What a grid leaves to ``make thorough``, and what it never does."""

from typing import NamedTuple

import pytest

from tests.backends.grid import diagonal, grid


class Named(NamedTuple):
    name: str


def marked(decorator: pytest.MarkDecorator) -> dict[str, bool]:
    _, params = decorator.args
    return {str(each.id): bool(each.marks) for each in params}


def test_combinations_that_are_not_among_the_few_are_thorough() -> None:
    found = grid("name, size", (Named("a"), ("fp8", None)), (1, 2), few=lambda _, size: size == 2)
    assert marked(found) == {"a-1": True, "a-2": False, "fp8-None-1": True, "fp8-None-2": False}


@pytest.mark.parametrize(("step", "sizes"), [(3, (3, 3)), (3, (6, 3)), (4, (4, 3, 2)), (5, (7, 5))])
def test_every_value_of_every_axis_is_on_the_diagonal(step: int, sizes: tuple[int, ...]) -> None:
    axes = [tuple(range(size)) for size in sizes]
    _, params = grid("", *axes, few=diagonal(step, *axes)).args
    few = [each.values for each in params if not each.marks]
    assert [set(axis) for axis in zip(*few, strict=True)] == [set(axis) for axis in axes]
    assert len(few) <= len(params) // step + 1


def test_a_diagonal_that_would_leave_values_out_is_refused() -> None:
    with pytest.raises(AssertionError, match="too few places"):
        diagonal(6, range(6), range(3))
