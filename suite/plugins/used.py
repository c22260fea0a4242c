"""Which plugins a run uses: what its configuration and its environment keep of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from suite.backend import Fact
from suite.hardware.catalogue import builtin, yaml_files
from suite.jobs.registry import JOBS
from suite.plugins.offers import Offer, every_offer, find
from suite.plugins.place import config_folder
from suite.settings import OWN_BACKENDS, BackendSettings, RunConfig


def backend_offer(settings: BackendSettings) -> Offer | None:
    """The offer that a backend is; ``None`` for one of ours, and for a class that the user named in its place."""
    if settings.name in OWN_BACKENDS:
        return None
    offer = find("backend", settings.name)
    return offer if offer is not None and settings.target in (None, offer.target) else None


def used(jobs: Mapping[str, object], backends: Mapping[str, BackendSettings]) -> dict[str, Offer]:
    """By key of the configuration, such as ``jobs.matvec``; nothing is looked up for a run that has ours alone."""
    found = {f"jobs.{name}": find("job", name) for name in jobs if name not in JOBS}
    found |= {f"backends.{name}": backend_offer(settings) for name, settings in backends.items()}
    return {key: offer for key, offer in found.items() if offer is not None}


def facts(config: RunConfig) -> dict[str, Fact]:
    """The version of each distribution that a run uses, as it is installed now."""
    return {offer.distribution: Fact.measured(offer.version) for offer in used(config.jobs, config.backends).values()}


def config_folders() -> dict[Path, str]:
    """The folders with the YAML of every plugin, each with the distribution that brings it."""
    found = ((config_folder(offer.target.partition(":")[0]), offer.owner) for offer in every_offer())
    return {folder: owner for folder, owner in found if folder is not None}


def sheet_folders() -> Iterator[Path]:
    """Plugins' folders of spec sheets; one with the name of a sheet of ours would replace that, and is not read."""
    own = yaml_files(builtin("hardware"))
    for folder in config_folders():
        sheets = folder / "hardware"
        if sheets.is_dir() and own.keys().isdisjoint(yaml_files(sheets)):
            yield sheets


def sheet_refusals() -> Iterator[str]:
    """A line for each folder of sheets that is not read."""
    own = yaml_files(builtin("hardware"))
    for folder, owner in config_folders().items():
        for name in sorted(own.keys() & yaml_files(folder / "hardware").keys()):
            yield f"the spec sheets of {owner} are refused: roofbench has a hardware '{name}' too"
