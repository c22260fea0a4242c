"""The environment variables that programs were compiled under: part of what a cell depends on, and told with it."""

from collections.abc import Iterable, Mapping

from suite.targets.reasons import where
from suite.targets.record import Compiled


def variables_of(versions: Mapping[str, str]) -> dict[str, str]:
    """Of what a cell depends on the variables: they are written in capitals, and the tools beside them are not."""
    return {name: value for name, value in sorted(versions.items()) if name.isupper()}


def under(cell: Compiled) -> str:
    """``under XLA_FLAGS=--xla_cpu_enable_fast_math=true``; empty where none was set."""
    found = [f"{name}={value}" for name, value in variables_of(cell.versions).items()]
    return f"under {', '.join(found)}" if found else ""


def under_lines(cells: Iterable[Compiled]) -> list[str]:
    """Which programs were compiled under which variables, each set of these once."""
    grouped: dict[str, list[Compiled]] = {}
    for cell in cells:
        grouped.setdefault(under(cell), []).append(cell)
    return [f"{where(found)}: compiled {variables}" for variables, found in grouped.items() if variables]
