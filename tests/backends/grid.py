"""Combinations of a test's parameters: a few that show each kind of fault run by default, the others by ``make thorough``."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest


def grid(names: str, *axes: Sequence[Any], few: Callable[..., bool]) -> pytest.MarkDecorator:
    """Every combination of the axes' values; those for which ``few`` does not hold are thorough."""
    chosen = [
        pytest.param(*values, id="-".join(map(_id_of, values)), marks=() if few(*values) else pytest.mark.thorough)
        for values in product(*axes)
    ]
    return pytest.mark.parametrize(names, chosen)


def diagonal(step: int, *axes: Sequence[Any]) -> Callable[..., bool]:
    """Holds where the places of the values in their axes add up to a multiple of ``step``.

    That is one combination in ``step``, with every value of every axis among them.
    """
    places = sum(len(axis) - 1 for axis in axes)
    assert all(places - (len(axis) - 1) + 1 >= step for axis in axes), "the others have too few places to meet every value"

    def holds(*values: Any) -> bool:
        return sum(axis.index(value) for axis, value in zip(axes, values, strict=True)) % step == 0

    return holds


def _id_of(value: Any) -> str:
    """As pytest has it of one parameter or of several."""
    if isinstance(value, tuple) and all(each is None or isinstance(each, str) for each in value) and not hasattr(value, "name"):
        return "-".join(map(str, value))
    return str(getattr(value, "name", value))
