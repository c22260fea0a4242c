"""Every part in one command, each in a process of its own with a share of the time; all tables last.

A part that fails, hangs or is killed costs its own rows: what it had found by then is read back from its file.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from suite.errors import UsageError, nearest
from tests.peers import agreement, clocks, economy, energy, repeatability, telemetry_cost
from tests.peers.child import Deadline, PeerFailed, run_logged
from tests.peers.part import Part, options, status
from tests.peers.record import Record, Verdict
from tests.peers.table import tally

GRACE_S = 8.0  # to end what is under way once a part's time is up; then it is killed


class Share(NamedTuple):
    """A part's time: what it may take while there is plenty, and what is kept for it while others run."""

    part: Part
    most_s: float
    least_s: float


# The parts with the hardest claims first; economy takes what is left, because nvbench's share of it cannot be bounded.
SHARES = (
    Share(agreement.PART, 180.0, 120.0),
    Share(clocks.PART, 90.0, 70.0),
    Share(energy.PART, 40.0, 25.0),
    Share(telemetry_cost.PART, 40.0, 25.0),
    Share(repeatability.PART, 40.0, 25.0),
    Share(economy.PART, 300.0, 120.0),
)


def budget_s(shares: Sequence[Share], done: int, left_s: float) -> float:
    """Seconds for the part at position ``done``, from what is left after the least of those to come."""
    share, to_come_s = shares[done], sum(each.least_s for each in shares[done + 1 :])
    return min(share.most_s, max(share.least_s, left_s - to_come_s), max(0.0, left_s - GRACE_S))


def chosen(names: str) -> list[Share]:
    """The shares of the parts named, comma-separated, in the order they run; all of them for an empty text."""
    wanted = [name for name in names.split(",") if name]
    known = [share.part.name for share in SHARES]
    for name in wanted:
        if name not in known:
            raise UsageError(f"unknown part '{name}'{nearest(name, known)}")
    return [share for share in SHARES if not wanted or share.part.name in wanted]


def run_part(share: Share, seconds: float, out: Path, flags: Sequence[str]) -> Record:
    """Run one part; return its record, with a row that says why where it did not come to its end."""
    name, path = share.part.name, out / f"{share.part.name}.json"
    path.unlink(missing_ok=True)
    argv = [sys.executable, "-m", f"tests.peers.{name}", "--out", str(out), "--seconds", f"{seconds:.0f}", *flags]
    reason = ""
    try:
        run_logged(name, argv, seconds + GRACE_S, out / "all.log")
    except PeerFailed as error:
        reason = str(error)
    record = Record.load(path) if path.exists() else Record(name)
    if not record.finished and not any(row.verdict is Verdict.FAILED for row in record.rows):
        record.rows.append(share.part.without(name, reason or "it left no end"))
    return record


def main(argv: Sequence[str] | None = None) -> int:
    """Status 1 when a row failed or is over its limit."""
    parser = options()
    parser.add_argument("--parts", default="", help="only these, comma-separated")
    given = parser.parse_args(argv)
    try:
        shares = chosen(given.parts)
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "all.log").write_text("")
    deadline = Deadline(given.seconds)
    flags = ["--backend", given.backend, "--ncu", given.ncu, *["--tiny"] * given.tiny]
    records = []
    for done, share in enumerate(shares):
        seconds = budget_s(shares, done, deadline.left_s())
        records.append((share.part, run_part(share, seconds, given.out, flags)))
        print(f"{tally(records[-1][1])} ({deadline.left_s():.0f} s left)", flush=True)
    return report(records, given.out)


def report(records: Sequence[tuple[Part, Record]], out: Path) -> int:
    """Print and keep every table, and a line each at the end."""
    text = "\n\n".join(part.table(record) for part, record in records)
    summary = "\n".join(tally(record) for _, record in records)
    (out / "tables.txt").write_text(f"{text}\n\n{summary}\n")
    print(f"\n{text}\n\n{summary}")
    return status([record for _, record in records])


if __name__ == "__main__":
    sys.exit(main())
