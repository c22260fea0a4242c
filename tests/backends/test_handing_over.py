"""Results in buffers of a library's own: where they go, and that no set holds two of them."""

import weakref
from typing import Any, NamedTuple

import pytest
import torch

from backends.torch.attention.reference import Attention
from backends.torch.data import Operand
from backends.torch.handing_over import Returned
from backends.torch.returning import ReturningKernel
from backends.torch.way import Made
from tests.backends.cases import run_all


class Counted:
    """Launches that return a tensor each, and fail where an earlier one is still there."""

    def __init__(self) -> None:
        self.alive: list[weakref.ref[torch.Tensor]] = []

    def __call__(self) -> tuple[torch.Tensor]:
        assert not [each for each in self.alive if each() is not None]
        made = torch.full((2, 3), float(len(self.alive)))
        self.alive.append(weakref.ref(made))
        return (made,)


class Buffers(NamedTuple):
    output: torch.Tensor
    operands: tuple[Operand, ...] = ()

    @property
    def results(self) -> tuple[torch.Tensor, ...]:
        return (self.output,)


def test_each_result_goes_where_it_belongs_once_and_only_of_the_sets_asked_for() -> None:
    results = [[torch.zeros(2), torch.zeros(3)] for _ in range(2)]
    returned = Returned(results)
    for index in range(2):
        returned.keep(index, lambda index=index: [torch.full((2,), 1.0 + index), torch.full((3,), 5.0 + index)])
    returned.hand_over([1])
    assert [[float(each[0]) for each in one] for one in results] == [[0.0, 0.0], [2.0, 6.0]]
    results[1][0].zero_()
    returned.hand_over([0, 1])
    assert [[float(each[0]) for each in one] for one in results] == [[1.0, 5.0], [0.0, 6.0]]


def test_a_launch_of_one_result_may_return_the_tensor_and_what_is_cleared_is_forgotten() -> None:
    result = torch.zeros(2, 3)
    returned = Returned([(result,)])
    returned.keep(0, lambda: torch.ones(2, 3))
    returned.hand_over([0])
    assert result.eq(1).all()
    returned.keep(0, lambda: torch.zeros(2, 3))
    returned.clear()
    returned.hand_over([0])
    assert result.eq(1).all()


def test_fewer_results_than_there_are_places_for_are_an_error() -> None:
    returned = Returned([[torch.zeros(2), torch.zeros(2)]])
    returned.keep(0, lambda: [torch.ones(2)])
    with pytest.raises(ValueError, match="shorter"):
        returned.hand_over([0])


def test_what_a_launch_of_a_library_returned_is_gone_before_the_next_of_its_set() -> None:
    buffers, formula = Buffers(torch.empty(2, 3)), Attention.__new__(Attention)
    parts: Any = (formula, "normal", "native", {})
    kernel = ReturningKernel([buffers], Made([Counted()], {}, returns=True), *parts)
    run_all(kernel)
    run_all(kernel)
    kernel.hand_over([0])
    assert buffers.output.eq(1).all()
    assert kernel.describe()["results"] == "in the library's own buffers"
