"""What of a result a figure shows: its shares of a roof, its rates, its time."""

from suite.report.curves import Quantity
from suite.rows import ResultRow

SHARES = {
    "of spec": Quantity("Share of the spec roof", lambda row: row.fractions.spec, is_share=True),
    "at clock": Quantity("Share of the roof at the measured clock", lambda row: row.fractions.at_clock, is_share=True),
    "of boost": Quantity("Share of the roof at the maximum clock", lambda row: row.fractions.boost, is_share=True),
    "empirical": Quantity("Share of the empirical roof", lambda row: row.fractions.empirical, is_share=True),
}
RATE = Quantity("Rate (FLOP/s; integers: OP/s)", lambda row: row.flop_s or None)
BANDWIDTH = Quantity("Bandwidth (B/s)", lambda row: row.bytes_s or None)
TIME = Quantity("Time of one launch (s)", lambda row: row.p50_s, is_less_better=True)
EFFICIENCY = Quantity(
    "Operations per joule (FLOP/J; integers: OP/J)",
    lambda row: row.flops / row.energy_j if row.energy_j else None,
    has_interval=False,  # the energy varies too, and nothing tells by how much
)
RATES = {"rate": RATE, "bandwidth": BANDWIDTH, "time": TIME, "per joule": EFFICIENCY}
VALUES = {**SHARES, **RATES}


def number_of(row: ResultRow, name: str) -> float | None:
    """A parameter that is a number, ``None`` where the row has none of that name or a file holds something else there."""
    value = row.params.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def sized(name: str, title: str) -> Quantity:
    """A parameter as an axis of powers of two."""
    return Quantity(title, lambda row: number_of(row, name), ticks=",d", is_power_of_two=True)
