"""What a plugin adds to a composed run: the class of its backend, its spec sheets, and whose each part is."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from suite.hardware.catalogue import builtin, yaml_files
from suite.jobs.registry import JOBS
from suite.settings import OWN_BACKENDS, BackendSettings


def with_target(settings: BackendSettings) -> BackendSettings:
    """A plugin's backend with the class that its entry point names, unless a file or the command line names another.

    So are those that an ``auto`` of the user's own chooses from.
    """
    if listed := settings.options.get("candidates"):
        chosen = {name: with_target(one) if isinstance(one, BackendSettings) else one for name, one in listed.items()}
        return replace(settings, options={**settings.options, "candidates": chosen})
    if settings.target is not None or settings.name in OWN_BACKENDS:
        return settings
    from suite.plugins.offers import find

    offer = find("backend", settings.name)
    return settings if offer is None else replace(settings, target=offer.target)


def plugins_of(jobs: Mapping[str, Any], backends: Mapping[str, BackendSettings]) -> dict[str, str]:
    """The owner of each job and backend that a plugin offers, by key; nothing is looked up where all are ours."""
    if all(name in JOBS for name in jobs) and all(each.name in OWN_BACKENDS for each in backends.values()):
        return {}
    from suite.plugins.used import used

    return {key: offer.owner for key, offer in used(jobs, backends).items()}


def plugin_sheets(named: str | None, plugins: Mapping[str, str]) -> Iterator[str]:
    """The folders of plugins' spec sheets, where one is named that is not ours or where a plugin measures."""
    if plugins or (named is not None and named not in yaml_files(builtin("hardware"))):
        from suite.plugins.used import sheet_folders

        yield from map(str, sheet_folders())


def plugin_sheet_ids() -> set[str]:
    """The spec sheets that plugins bring."""
    from suite.plugins.used import sheet_folders

    return {name for folder in sheet_folders() for name in yaml_files(folder)}
