"""Which framework drove a device, and whether it has a unit for the format: said wherever results of one figure differ in it.

Two backends compute one product by different units, and what is emulated is held against the roof of another unit than what is
native: such numbers are no rivals, and none may be read as another's.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from suite.rows import ResultRow


class Sources(NamedTuple):
    """The ``names`` of the sources among some results: native ones first, of these what most results are of.

    One at most where nothing differs.
    """

    names: tuple[str, ...]
    by_backend: bool
    by_execution: bool

    @property
    def several(self) -> bool:
        return len(self.names) > 1

    def of(self, row: ResultRow) -> str:
        """``xla, emulated``, of that what differs; empty of a case that was not timed."""
        backend = [row.backend] if self.by_backend else []
        execution = [row.execution] if self.by_execution else []
        return "" if row.p50_s is None else ", ".join([*backend, *execution])


NO_SOURCES = Sources((), False, False)


def sources_of(rows: Iterable[ResultRow]) -> Sources:
    """Backends are told where one chip has results of several: of two chips the device tells them apart."""
    timed = [row for row in rows if row.p50_s is not None]
    backends: dict[str, set[str]] = {}
    for row in timed:
        backends.setdefault(row.device_uid, set()).add(row.backend)
    by_backend = any(len(found) > 1 for found in backends.values())
    plain = Sources((), by_backend, len({row.execution for row in timed}) > 1)
    counts = Counter(plain.of(row) for row in timed)
    native = {plain.of(row) for row in timed if row.execution == "native"}
    return plain._replace(names=tuple(sorted(counts, key=lambda name: (name not in native, -counts[name], name))))
