"""Options of a backend, as the configuration gives them."""

from collections.abc import Mapping
from typing import Any

from suite.errors import UsageError, nearest


def read_options(backend: str, given: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults; raises ``UsageError`` for an option that is not known, or of another type than its default."""
    options = dict(defaults)
    for name, value in (given or {}).items():
        if name not in defaults:
            raise UsageError(f"backend {backend} has no option {name!r}{nearest(name, defaults)}")
        options[name] = _checked(backend, name, value, defaults[name])
    return options


def _checked(backend: str, name: str, value: Any, default: Any) -> Any:
    """A number stands for a float; a default of ``None`` takes a whole number above 0."""
    if default is None:
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value
        raise UsageError(f"backends.{backend}.options.{name}={value!r} is not a whole number above 0")
    if isinstance(default, float) and isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    if isinstance(default, str) and isinstance(value, str):
        return value
    raise UsageError(f"backends.{backend}.options.{name}={value!r} is not of the kind of its default, {default!r}")
