"""The job ``matvec``: products of a matrix and a vector.  Plans import this file; it imports no framework."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from suite.case import Case, Items, Regime, Workload, items
from suite.errors import UsageError
from suite.jobs.axes import check_names
from suite.settings import JobSettings
from suite.work import Footprint, Work

ELEMENT_BYTES = {"fp64": 8, "fp32": 4}
UNIT_ROUNDOFF = {"fp64": 2.0**-53, "fp32": 2.0**-24}
IMPLEMENTATIONS = ("library", "einsum")
LEAST_SIZE, LARGEST_SIZE = 64, 2**17
SCRATCH_BYTES = 64 * 2**20  # the reference goes by blocks of rows


@dataclass
class MatvecSettings(JobSettings):
    """Axes; ``shapes`` are ``MxK``, ``implementations`` as in ``IMPLEMENTATIONS``."""

    name: str = "matvec"
    formats: list[str] = field(default_factory=lambda: ["fp64", "fp32"])
    shapes: list[str] = field(default_factory=lambda: ["4096x4096"])
    implementations: list[str] = field(default_factory=lambda: ["library"])


class MatvecJob:
    """See ``suite.jobs.job.Job``."""

    name = "matvec"
    method_version = 1
    settings_type = MatvecSettings
    formats = tuple(ELEMENT_BYTES)
    implementations = IMPLEMENTATIONS
    usual_regimes: tuple[Regime, ...] = ()

    def check(self, settings: MatvecSettings) -> None:
        """Refuse names that are not known, axes that are empty, and sizes out of range."""
        check_names(self.name, "formats", settings.formats, self.formats)
        check_names(self.name, "implementations", settings.implementations, self.implementations)
        if not settings.shapes:
            raise UsageError("jobs.matvec.shapes is empty; name for instance [4096x4096]")
        for text in settings.shapes:
            _sizes(text)

    def workloads(self, settings: MatvecSettings) -> Iterator[Workload]:
        """Formats outermost, so that one format's sizes stand together."""
        for format_name, text in product(dict.fromkeys(settings.formats), dict.fromkeys(settings.shapes)):
            m, k = _sizes(text)
            yield Workload(self.name, format_name, items({"m": m, "k": k}))

    def switches(self, settings: MatvecSettings, workload: Workload) -> tuple[Items, ...]:
        """None apply."""
        return ((),)

    def misfit(self, case: Case) -> str | None:
        """Nothing: what a backend lacks is recorded."""
        return None

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """2mk operations; matrix, vector and result once each."""
        m, k = workload.param("m"), workload.param("k")
        return Work(2 * m * k, (m * k + k + m) * ELEMENT_BYTES[workload.format], pipe=workload.format)

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint:
        m, k, size = workload.param("m"), workload.param("k"), ELEMENT_BYTES[workload.format]
        return Footprint(input_bytes=(m * k + k) * size, output_bytes=m * size, scratch_bytes=SCRATCH_BYTES)

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """Sums of k terms one after the other round to sqrt(k) / 2 units, of terms of random sign; four times that is wrong."""
        return 2 * float(workload.param("k")) ** 0.5 * UNIT_ROUNDOFF[workload.format]


def _sizes(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", str(text))
    if found is None:
        raise UsageError(f"shape '{text}' in jobs.matvec.shapes is not MxK; write for instance 4096x4096")
    m, k = int(found[1]), int(found[2])
    for name, size in (("m", m), ("k", k)):
        if not LEAST_SIZE <= size <= LARGEST_SIZE:
            raise UsageError(f"shape '{text}' has {name}={size}; sizes go from {LEAST_SIZE} to {LARGEST_SIZE}")
    return m, k
