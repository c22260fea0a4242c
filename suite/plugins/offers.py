"""What packages installed beside roofbench offer: entry points of the groups ``roofbench.jobs`` and ``roofbench.backends``.

An entry point is a line in a file beside a package, read without importing it.  Looking through all that is installed takes
time that grows with it, so that nobody looks who asks for nothing but what comes with roofbench.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata
from typing import NamedTuple

from suite import __version__
from suite.errors import UsageError
from suite.jobs.registry import JOBS
from suite.reason import one_line
from suite.settings import OWN_BACKENDS

GROUPS = {"job": "roofbench.jobs", "backend": "roofbench.backends"}
NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)  # what may stand in a key: jobs.NAME.formats
TARGET = re.compile(r"\w+(?:\.\w+)*:\w+(?:\.\w+)*")


class Offer(NamedTuple):
    """One entry point: a ``kind`` of thing (``job``, ``backend``) by name, and the ``module:Class`` that makes it."""

    kind: str
    name: str
    target: str
    distribution: str
    version: str

    @property
    def owner(self) -> str:
        """``roofbench-example 1.0``."""
        return f"{self.distribution} {self.version}"

    @property
    def title(self) -> str:
        """``job 'matvec' of roofbench-example 1.0``."""
        return f"{self.kind} '{self.name}' of {self.owner}"

    @property
    def entry(self) -> str:
        """``entry point 'matvec = package.module:Job' of roofbench.jobs``, as it stands in the package's metadata."""
        return f"entry point '{self.name} = {self.target}' of {GROUPS[self.kind]}"


class Offers(NamedTuple):
    """What can be asked for, by name; and why what else is offered cannot, by name."""

    usable: Mapping[str, Offer]
    refused: Mapping[str, str]


def find(kind: str, name: str) -> Offer | None:
    """What a package offers by this name, ``None`` where none does; ``UsageError`` where it is refused."""
    if name in _own(kind):
        return None
    found = offers()[kind]
    if name in found.refused:
        raise UsageError(found.refused[name])
    return found.usable.get(name)


def names(kind: str) -> tuple[str, ...]:
    """Every name that packages offer and that can be asked for."""
    return tuple(offers()[kind].usable)


def every_offer() -> Iterator[Offer]:
    """All that can be asked for, jobs first."""
    for kind in GROUPS:
        yield from offers()[kind].usable.values()


def refusals() -> tuple[str, ...]:
    """A line for each offer that cannot be asked for."""
    return tuple(line for kind in GROUPS for line in offers()[kind].refused.values())


@cache
def offers() -> Mapping[str, Offers]:
    """By kind.  Read once: what is installed while this runs is not seen."""
    found = metadata.entry_points()
    return {kind: _sorted(kind, list(found.select(group=group))) for kind, group in GROUPS.items()}


def _sorted(kind: str, entries: Sequence[metadata.EntryPoint]) -> Offers:
    by_name: dict[str, list[Offer]] = defaultdict(list)
    for entry in entries:
        offer = Offer(kind, entry.name, entry.value.partition("[")[0].replace(" ", ""), *_distribution(entry))
        by_name[offer.name].append(offer)
    refused = {name: why for name, found in sorted(by_name.items()) if (why := _why_refused(found))}
    return Offers({name: found[0] for name, found in sorted(by_name.items()) if name not in refused}, refused)


def _distribution(entry: metadata.EntryPoint) -> tuple[str, str]:
    """Name and version; what a damaged installation does not say is said to be unknown."""
    told = entry.dist.metadata if entry.dist is not None else None
    name, version = (told[key] if told is not None and key in told else "unknown" for key in ("Name", "Version"))
    return re.sub(r"[-_.]+", "-", name), version


def _why_refused(found: Sequence[Offer]) -> str:
    offer = found[0]
    owners = " and by ".join(sorted({each.owner for each in found}))
    if offer.name in _own(offer.kind):
        return f"{offer.kind} '{offer.name}', offered by {owners}, is refused: roofbench {__version__} has one of that name"
    if len(found) > 1:
        return f"{offer.kind} '{offer.name}' is offered by {owners}; uninstall all but one of them"
    if not NAME.fullmatch(offer.name):
        return one_line(f"{offer.title} cannot be asked for: a name is made of letters, digits, _ and -")
    if not TARGET.fullmatch(offer.target):
        return one_line(f"{offer.title} cannot be loaded: '{offer.target}' is not module:Class")
    return ""


def _own(kind: str) -> Sequence[str]:
    return tuple(JOBS) if kind == "job" else OWN_BACKENDS
