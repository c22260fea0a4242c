"""Pages of the dashboard, one module each.

A view defines ``TITLE``, ``ORDER`` (its place among the pages) and ``render(selection)``; a module that does is a page.
"""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from dashboard.selection import Selection


class View(NamedTuple):
    """One page: ``name`` stands in its address."""

    name: str
    title: str
    order: int
    render: Callable[[Selection], None]


def views() -> tuple[View, ...]:
    """Every page, in order; the first is where the dashboard opens."""
    found = (_view(module.name) for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(found, key=lambda view: view.order))


def _view(name: str) -> View:
    module = import_module(f"{__name__}.{name}")
    return View(name, module.TITLE, module.ORDER, module.render)
