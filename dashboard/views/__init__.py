"""Pages of the dashboard, one module each.

A view defines ``TITLE``, ``ORDER`` (its place among the pages) and ``render(selection)``; a module that does is a page.  One
that shows a single job names it as ``JOB``, and then gets the results of that job alone.  One that is not about results
defines ``render_stores(stores)`` instead, and gets no filters.
"""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from dashboard.selection import Selection
from dashboard.stores import Stores


class View(NamedTuple):
    """One page: ``name`` stands in its address; ``job`` is empty for one about every job."""

    name: str
    title: str
    order: int
    job: str
    render: Callable[[Selection], None]
    render_stores: Callable[[Stores], None]
    has_filters: bool


def views() -> tuple[View, ...]:
    """Every page, in order; the first is where the dashboard opens."""
    found = (_view(module.name) for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(found, key=lambda view: view.order))


def _view(name: str) -> View:
    module: Any = import_module(f"{__name__}.{name}")
    has_filters = hasattr(module, "render")
    job = getattr(module, "JOB", "")
    render = getattr(module, "render", _no_page)
    return View(name, module.TITLE, module.ORDER, job, render, getattr(module, "render_stores", _no_page), has_filters)


def _no_page(_: Any) -> None:
    raise AssertionError("a view is drawn the way that it defines")
