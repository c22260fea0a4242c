"""What programs became on targets as lines of a table: names of columns to values, ``None`` where there is nothing to say."""

from collections.abc import Iterable
from typing import Any

from suite.outcome import Outcome
from suite.targets.derived import estimate_of, occupancy_of
from suite.targets.reasons import reasons
from suite.targets.record import Compiled

WHOLE = (
    ("Registers", "registers"),
    ("Spilled (B)", "spilled_bytes"),
    ("Shared (B)", "shared_bytes"),
    ("Warps of a block", "warps"),
    ("Code (B)", "code_bytes"),
    ("Peak (B)", "peak_bytes"),
    ("FLOP", "flops"),
    ("Bytes", "bytes_accessed"),
)


def cell_lines(cells: Iterable[Compiled]) -> list[dict[str, Any]]:
    """One line each, in the order given."""
    return [_line(cell) for cell in cells]


def reason_lines(cells: Iterable[Compiled]) -> list[dict[str, Any]]:
    """Why cells did not compile, failures first."""
    return [{"Where": each.where, "Why": each.why, "Should compile": each.is_failure} for each in reasons(cells)]


def _line(cell: Compiled) -> dict[str, Any]:
    held, estimate, facts = occupancy_of(cell), estimate_of(cell), cell.facts
    is_ok = cell.outcome is Outcome.OK
    return {
        "Program": cell.program,
        "Target": cell.target,
        "Outcome": cell.outcome.value,
        "Multiplies": (str(facts.get("execution", "")) or "no product") if is_ok else None,
        **{title: facts.get(name) for title, name in WHOLE},
        "Resident warps": held.warps if held else None,
        "Occupancy": held.share if held else None,
        "Limited by": held.limited_by if held else None,
        "Estimate (TFLOP/s)": estimate.flop_s / 1e12 if estimate and estimate.flop_s else None,
        "Of the roof": estimate.of_roof if estimate else None,
        "Configuration": cell.configuration or None,
        "Instructions": ", ".join(facts.get("instructions", ())) or None,
        "Instead": facts.get("instead") or None,
        "Reason": cell.reason or (estimate.why_not if estimate else "") or None,
        "Seconds": cell.seconds,
        "Compiled": f"{cell.compiled_at:%Y-%m-%d %H:%M}",
        "With": ", ".join(f"{name} {version}" for name, version in sorted(cell.versions.items())),
    }
