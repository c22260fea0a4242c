"""The devices that ``amd-smi list --json`` names: newer ones print two documents, the second of which is of network cards."""

from typing import Any

from suite.importers.json_stream import documents


def listed_gpus(text: str) -> tuple[dict[str, Any], ...]:
    """The entries that are GPUs, of all documents; lines of text before them are passed over."""
    lists = [document.value for document in documents(text) if isinstance(document.value, list)]
    return tuple(entry for entries in lists for entry in entries if isinstance(entry, dict) and "gpu" in entry)
