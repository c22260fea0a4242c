"""A share of a peak that is derived, as a CPU's is, told from one of a sheet's."""

from suite.rows import ResultRow

ABOVE_DERIVED = "above the derived peak"  # the mark of a result within the margin that such a peak has


def is_of_derived(row: ResultRow) -> bool:
    """Whether the share of spec is of a derived peak: no sheet was matched, and there is a share all the same."""
    return row.hardware is None and row.fractions.spec is not None


def passes_derived(row: ResultRow) -> bool:
    """Whether it is a share above 1; one beyond the margin of ``suite.roofline.above_derived`` is no share at all."""
    return is_of_derived(row) and (row.fractions.spec or 0.0) > 1


def roof_name(row: ResultRow) -> str:
    """What the share of spec is a share of: ``the spec roof``, ``the derived roof``."""
    return f"the {'derived' if is_of_derived(row) else 'spec'} roof"
