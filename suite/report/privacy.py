"""What a published report leaves out: host and user names, addresses, folders, where the store was.

The store keeps them for its owner; a report is for strangers.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from suite.backend import Fact

# Names of system facts that identify a person or a machine, compared in lower case without spaces and underscores.
PRIVATE_FACTS = frozenset(
    {
        *("hostname", "host", "nodename", "node", "fqdn", "domain", "address", "ipaddress", "macaddress"),
        *("user", "username", "login", "uid", "home", "cwd", "workdir"),
    }
)
LEFT_OUT = "left out of published reports"
# Settings that say where something lies on the machine, not what is measured.
_PLACES = frozenset({"store", "resume", "hardware_folders"})
_HOME = re.compile(r"(?:/(?:home|Users)/[^/\s'\":,;]+|/root|[A-Za-z]:\\Users\\[^\\\s'\":,;]+)(?![\w.-])")
# Folders of one machine, whoever's they are; those that every system has say nothing of it and explain an error.
_EVERYWHERE = "usr|opt|lib|lib32|lib64|bin|sbin|etc|proc|sys|dev|run"
_PART = r"[^/\s'\":,;=<>()\[\]{}]+"
_FOLDERS = re.compile(rf"(?:(?<=file://)|(?<=sqlite:///)|(?<![\w/.~<>-]))/(?!(?:{_EVERYWHERE})/)(?:{_PART}/)+")
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")
_UUID = re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_COLONS = re.compile(r"(?<![\w:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")  # an IPv6 address, or a time of day
_MAC = re.compile(r"\b(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\b")
# Private networks only: a four-part version of a driver reads like a public address.
_IPV4 = re.compile(r"\b(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01])|169\.254)(?:\.\d{1,3}){2,3}\b(?!\.\d)")
_ADDRESSES = ((_MAC, "<address>"), (_UUID, "<device>"), (_IPV4, "<address>"))
MASKS = ((_HOME, "~"), (_FOLDERS, "<folder>/"), (_CREDENTIALS, ""), *_ADDRESSES)
_SHORTEST_NAME = 3  # shorter host or user names would match inside ordinary words


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Replaces the private names of one machine, and paths and credentials of any, in text that will be published."""

    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, Mapping[str, Fact]]) -> "Scrubber":
        """Learn the private names from the system description of a run."""
        facts = (item for group in environment.values() for item in group.items())
        values = {str(fact.value) for name, fact in facts if is_private(name) and isinstance(fact.value, str)}
        plain = (value for value in values if len(value) >= _SHORTEST_NAME and "/" not in value)
        return cls(tuple(sorted(plain, key=len, reverse=True)))

    def text(self, text: str) -> str:
        """``text`` without private names, folders, hardware addresses and credentials in URLs; valid Unicode."""
        text = text.encode("utf-8", "replace").decode()
        for name in self.names:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "<name>", text)
        for pattern, mask in MASKS:
            text = pattern.sub(mask, text)
        return _COLONS.sub(_without_address, text)

    def json(self, value: Any) -> Any:
        """The same for every string inside a JSON value, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        return value

    def facts(self, environment: Mapping[str, Mapping[str, Fact]]) -> dict[str, dict[str, Fact]]:
        """The system description with private facts withheld and the others cleaned."""
        return {group: {name: self._fact(name, fact) for name, fact in facts.items()} for group, facts in environment.items()}

    def _fact(self, name: str, fact: Fact) -> Fact:
        if is_private(name):
            return Fact.unavailable(LEFT_OUT)
        return Fact(self.json(fact.value), fact.status, self.text(fact.reason))


def _without_address(found: re.Match[str]) -> str:
    try:
        ipaddress.IPv6Address(found.group())
    except ValueError:
        return found.group()
    return "<address>"


def is_private(name: str) -> bool:
    """Whether a system fact of this name identifies a person or a machine."""
    return name.lower().replace("_", "").replace(" ", "") in PRIVATE_FACTS


def is_place(override: str) -> bool:
    """Whether an override says where something lies on the machine, or how Hydra launched it: a report's command is without."""
    key = override.lstrip("+~").split("=", 1)[0]
    return key.split(".", 1)[0].split("@", 1)[0] in _PLACES or key.startswith(("hydra.", "hydra/"))


def without_places(config: Mapping[str, Any]) -> dict[str, Any]:
    """The resolved configuration without the settings that say where something lies on the machine."""
    return {name: value for name, value in config.items() if name not in _PLACES}


def without_place_overrides(overrides: Iterable[str]) -> tuple[str, ...]:
    """The overrides that decide what is measured."""
    return tuple(override for override in overrides if not is_place(override))
