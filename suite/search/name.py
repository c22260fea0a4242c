"""What a search is called, by its example before anything is looked at and by any result of it afterwards."""

from collections.abc import Mapping
from typing import Any

SIZES = ("m", "n", "k")


def others_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a product that are not sought."""
    return {name: value for name, value in params.items() if name not in SIZES}


def subject_words(
    format_label: str, implementation: str, params: Mapping[str, Any], distribution: str, switches: Mapping[str, Any]
) -> list[str]:
    """What tells a search from the others of its run: ``bf16``, ``library``, ``layout=nt``, ``data=normal``, its switches."""
    plain = {**others_of(params), "data": distribution, **switches}
    return [format_label, implementation, *(f"{name}={value}" for name, value in plain.items())]


def key_of(name: str, slot: int) -> str:
    """Under what the standings of a search are kept with its run."""
    return f"search {name} on device {slot}"
