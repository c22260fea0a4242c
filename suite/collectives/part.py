"""How elements are cut into parts: what ranks and pipelines work on."""

from typing import NamedTuple


class Part(NamedTuple):
    """``elements`` from ``start`` on, of a flat buffer; may be empty."""

    start: int
    elements: int

    @property
    def stop(self) -> int:
        """The first element after it."""
        return self.start + self.elements


def parts(elements: int, count: int, start: int = 0) -> tuple[Part, ...]:
    """Cut ``elements`` from ``start`` on into ``count`` neighbours whose sizes differ by one at most, the larger ones first."""
    size, longer = divmod(elements, count)
    return tuple(Part(start + size * index + min(index, longer), size + (index < longer)) for index in range(count))
