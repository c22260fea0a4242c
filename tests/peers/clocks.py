"""Clock invariance: one kernel from idle and sustained, on data that draws much power and little.

The rate follows the clock; the fraction of the peak at that clock does not.
"""

from suite.case import Regime
from tests.peers.bench import BURST, COLD, Measured
from tests.peers.gemms import square
from tests.peers.judge import at_most, spread
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import NOTHING, number, percent

FRACTION_LIMIT = 0.015
DISTRIBUTIONS = ("normal", "zeros", "integer")
LOADS = {"from idle": BURST, "sustained": COLD}


def run(session: Session) -> None:
    """Six cases, then the spread of what they read."""
    found = []
    for distribution in DISTRIBUTIONS:
        for load, regime in LOADS.items():
            measured = _measure(session, distribution, regime)
            found.append(measured)
            session.record.add(row(f"{distribution}, {load}", measured))
    rates, fractions = spreads(found)
    session.record.add(Row("spread of the rate", (percent(rates), *[NOTHING] * 5), Verdict.INFO, {"spread": rates}))
    judged = at_most(fractions, FRACTION_LIMIT)
    note = (
        "" if fractions is not None else "nothing here counts the device's own cycles, or no sheet gives operations per clock"
    )
    cells = (NOTHING, NOTHING, NOTHING, percent(fractions), "1.5 %", NOTHING)
    session.record.add(Row("spread of the fraction at clock", cells, judged, {"spread": fractions}, note))


def _measure(session: Session, distribution: str, regime: Regime) -> Measured:
    planned = session.bench.gemm(square("bf16", 8192).scaled(session.tiny), regime, distribution)
    return session.measure(planned)


def row(name: str, measured: Measured) -> Row:
    """Rate, clock, power, fraction at the clock."""
    summary = measured.summary
    if summary is None:
        return PART.lost(name, measured)
    cells = (
        f"{number(summary.flop_s, 1e-12)} TFLOP/s",
        number(summary.clock_hz, 1e-6),
        number(summary.power_w, digits=3),
        number(summary.fraction_at_clock),
        NOTHING,
        summary.throttle or NOTHING,
    )
    return Row(name, cells, Verdict.INFO, measured.figures())


def spreads(found: list[Measured]) -> tuple[float | None, float | None]:
    """Of the rate and of the fraction at the clock, over the cases that have them; none when a case lacks it."""
    summaries = [each.summary for each in found if each.summary is not None]
    fractions = [summary.fraction_at_clock for summary in summaries if summary.fraction_at_clock is not None]
    rates = [summary.flop_s for summary in summaries]
    return spread(rates), spread(fractions) if len(fractions) == len(found) else None


PART = Part(
    name="clocks",
    shows="bf16 8192^3 at whatever clock the device has",
    headings=("rate", "MHz", "W", "at clock", "limit", "throttled"),
    run=run,
    foot=("Power is of the sustained window: a burst is over before the sensor follows it.",),
)

if __name__ == "__main__":
    run_as_script(PART)
