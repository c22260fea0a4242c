"""What ``module:Class`` names, as targets of backends and entry points are written."""

from functools import reduce
from importlib import import_module
from typing import Any


def loaded(target: str) -> Any:
    """Import the module and return what it has by that name, dotted or not; raises what importing and looking up raise."""
    module, _, name = target.partition(":")
    return reduce(getattr, name.split("."), import_module(module))
