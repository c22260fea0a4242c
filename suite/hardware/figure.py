"""One number of a spec sheet, with where it comes from and how far to trust it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

CONFIDENCES = ("high", "medium", "low")
KINDS = ("vendor", "vendor-copy", "vendor-quoted", "secondary", "code", "third-party", "computed", "device", "none")


@dataclass(frozen=True, slots=True)
class Source:
    """A document that can be looked up; ``url`` is ``None`` where its address was not recorded.

    ``kind`` says who speaks: the vendor itself (``vendor``), a copy or a quotation of a vendor's document, constants in
    ``code``, arithmetic (``computed``), the ``device``'s own report, or ``none`` where the origin was not recorded.
    """

    title: str
    url: str | None = None
    kind: str = "secondary"


DEVICE = Source("the device's own report", kind="device")


@dataclass(frozen=True, slots=True)
class Figure:
    """A value in base units (FLOP/s, bytes, bytes/s, Hz, W); ``None`` where it is not known, with the reason in ``note``.

    ``derived`` says how the value follows from others; it is empty for what a source prints.
    """

    value: float | None = None
    sources: tuple[Source, ...] = ()
    confidence: str = "low"
    derived: str = ""
    note: str = ""

    def scaled(self, fraction: float | None, why: str) -> Self:
        """The same figure for a part of the device; unknown when ``fraction`` is ``None``."""
        if self.value is None:
            return self
        if fraction is None:
            return replace(self, value=None, derived="", note=why)
        return self if fraction == 1 else replace(self, value=self.value * fraction, derived=why)


NOT_FOUND = Figure()
Figures = Mapping[str, Figure]


def reported(value: float, declared: Figure) -> Figure:
    """What the device says of itself; what the sheet says is kept in the note where the two differ."""
    note = f"the sheet says {declared.value:,.0f}" if declared.value not in (None, value) else ""
    return Figure(value, (DEVICE,), "high", note=note)
