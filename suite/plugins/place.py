"""Where a module lies, found without importing it or a package around it."""

from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from pkgutil import get_importer

FOLDER = "conf"


def is_there(module: str) -> bool:
    """Whether a module is installed; one of a package may still not be importable."""
    return bool(_specs(module))


def config_folder(module: str) -> Path | None:
    """The folder ``conf`` of the innermost package around a module that has one."""
    for spec in reversed(_specs(module)):
        for location in spec.submodule_search_locations or ():
            if (folder := Path(location) / FOLDER).is_dir():
                return folder.resolve()
    return None


def sources(module: str) -> Iterator[Path]:
    """The Python files that a module and what lies beside it consist of: its package's, or its own where it has none."""
    specs = _specs(module)
    if not specs:
        return
    package = next((spec for spec in reversed(specs) if spec.submodule_search_locations), None)
    if package is None:
        yield from [Path(specs[-1].origin)] if specs[-1].origin else []
        return
    for location in package.submodule_search_locations or ():
        yield from sorted(path for path in Path(location).rglob("*.py") if path.is_file())


def _specs(module: str) -> list[ModuleSpec]:
    """One for each part of the dotted name, outermost first; empty where a part is missing.

    ``find_spec`` would import the packages around the last part, so that only the first is looked up by it, and the rest in the
    folders that the part before has.
    """
    first, *others = module.split(".")
    try:
        spec = find_spec(first)
    except (ImportError, ValueError):  # a module that was put in place by hand has no spec
        return []
    specs = [spec]
    name = first
    for part in others:
        name = f"{name}.{part}"
        spec = _inside(spec, name)
        specs.append(spec)
    found = [each for each in specs if each is not None]
    return found if len(found) == len(specs) else []


def _inside(package: ModuleSpec | None, name: str) -> ModuleSpec | None:
    """The first module of a name in the folders of a package; folders without ``__init__.py`` are a package together."""
    namespace = ModuleSpec(name, None, is_package=True)
    for location in (package.submodule_search_locations or ()) if package is not None else ():
        finder = get_importer(location)
        spec = finder.find_spec(name) if finder is not None else None
        if spec is not None and spec.loader is not None:
            return spec
        if spec is not None and namespace.submodule_search_locations is not None:
            namespace.submodule_search_locations += spec.submodule_search_locations or []
    return namespace if namespace.submodule_search_locations else None
