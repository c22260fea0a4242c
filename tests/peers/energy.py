"""Energy: the integral of the power readings against the energy counter, over a sustained window of ten seconds."""

from suite.measurement import Measurement
from suite.telemetry import power_integral_j
from tests.peers.bench import COLD
from tests.peers.gemms import square
from tests.peers.judge import relative
from tests.peers.part import Part, Session, run_as_script
from tests.peers.record import Row, Verdict
from tests.peers.table import number, percent

LIMIT = 0.05
WINDOW_S, MOST_S = 10.0, 12.0


def run(session: Session) -> None:
    """One case whose sampling lasts the window."""
    gemm = square("bf16", 8192).scaled(session.tiny)
    settings = session.bench.settings(min_time_s=WINDOW_S, max_time_s=MOST_S)
    measured = session.measure(session.bench.gemm(gemm, COLD), settings)
    name = f"{gemm.title}, {WINDOW_S:g} s" if not session.tiny else gemm.title
    if measured.measurement is None or measured.summary is None:
        session.record.add(PART.lost(name, measured))
    else:
        session.record.add(row(name, measured.measurement))


def row(name: str, measurement: Measurement) -> Row:
    """Both energies of the window; absent where either is not offered."""
    power, counter = measurement.telemetry.get("power"), measurement.telemetry.get("energy")
    for what, channel in (("power", power), ("energy counter", counter)):
        if channel is None or channel.unavailable or len(channel.values) < 2:
            reason = channel.unavailable if channel is not None else "not read"
            return PART.without(name, f"{what}: {reason or 'fewer than two readings'}", Verdict.ABSENT)
    assert power is not None
    assert counter is not None
    window_s, counted_j = counter.times_s[-1] - counter.times_s[0], counter.values[-1] - counter.values[0]
    integral_j = power_integral_j(power, (counter.times_s[0], counter.times_s[-1]))
    assert integral_j is not None
    judged = relative(integral_j, counted_j, LIMIT)
    cells = (
        number(window_s),
        str(len(power.values)),
        number(integral_j / window_s),
        f"{number(integral_j)} J",
        f"{number(counted_j)} J",
        *(percent(judged.difference), "5 %"),
    )
    figures = {"window_s": window_s, "integral_j": integral_j, "counter_j": counted_j, "power": power._asdict()}
    return Row(name, cells, judged.verdict, figures)


PART = Part(
    name="energy",
    shows="power readings and the energy counter of one window",
    headings=("s", "readings", "W", "integral", "counter", "difference", "limit"),
    run=run,
)

if __name__ == "__main__":
    run_as_script(PART)
