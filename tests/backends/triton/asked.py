"""What a child is asked to interpret or compile: what the tests that were selected look at, since each takes it seconds."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def names_asked(request: pytest.FixtureRequest, always: Iterable[str] = ()) -> list[str]:
    """Names of the specs (parameter ``spec``, or a string) of the selected tests of the module that asks, and of ``always``."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.module is request.module]
    given = [item.callspec.params["spec"] for item in items if hasattr(item, "callspec") and "spec" in item.callspec.params]
    return list(dict.fromkeys([*always, *(getattr(spec, "name", spec) for spec in given)]))


def parameters(specs: Iterable[Any], is_thorough: Callable[[str], bool]) -> list[Any]:
    """The specs as parameters of a test; those whose name ``is_thorough`` run by ``make thorough`` only."""
    named = [(getattr(spec, "name", spec), spec) for spec in specs]
    return [pytest.param(spec, id=name, marks=pytest.mark.thorough if is_thorough(name) else ()) for name, spec in named]
