"""What empties a cache between launches."""

from typing import Protocol


class CacheFlush(Protocol):
    """Empties caches when called; asynchronous where the device is."""

    size_bytes: int

    def __call__(self) -> None: ...
