"""What every part shares: its command line, its record on disk, its table."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from suite.errors import RoofbenchError
from suite.planned import PlannedCase
from suite.reason import named, one_line
from suite.settings import MeasureSettings
from suite.worker.serve import caught, describe
from tests.peers.bench import NO_TIME, Bench, Measured, is_absent
from tests.peers.child import Deadline
from tests.peers.record import Record, Row, Verdict
from tests.peers.table import NOTHING, render


class Session(NamedTuple):
    """What a part works with; ``target`` is the backend as it was named, for peers that run in a process of their own."""

    bench: Bench
    record: Record
    deadline: Deadline
    target: str
    ncu: str

    @property
    def tiny(self) -> bool:
        return self.bench.tiny

    def measure(self, planned: PlannedCase, settings: MeasureSettings | None = None, label: str = "ours") -> Measured:
        """Measure one case while there is time, and keep its figures at once."""
        if not self.deadline.left_s():
            return Measured(planned, None, None, NO_TIME)
        measured = self.bench.measure(planned, settings)
        self.record.keep(f"{label} {planned.case.title}", measured.figures())
        return measured


class Part(NamedTuple):
    """One claim and how it is shown.  ``headings`` name the cells of a row; ``foot`` is printed beneath the table."""

    name: str
    shows: str
    headings: tuple[str, ...]
    run: Callable[[Session], None]
    foot: tuple[str, ...] = ()

    def table(self, record: Record) -> str:
        return render(record, self.shows, self.headings, self.foot)

    def blank(self) -> tuple[str, ...]:
        """Cells of a row without a figure."""
        return (NOTHING,) * len(self.headings)

    def without(self, name: str, reason: str, verdict: Verdict = Verdict.FAILED) -> Row:
        """A row that has no figure, and why."""
        return Row(name, self.blank(), verdict, {}, one_line(reason))

    def lost(self, name: str, measured: Measured) -> Row:
        """The row of a case that roofbench could not measure: absent where the device does not offer it."""
        verdict = Verdict.ABSENT if is_absent(measured) else Verdict.FAILED
        return self.without(name, measured.reason, verdict)._replace(figures=measured.figures())


def options() -> argparse.ArgumentParser:
    """The options that every part and the run of all of them take."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results; made when missing")
    parser.add_argument("--backend", default="cuda", help="cuda, cpu, or module:Class")
    parser.add_argument("--tiny", action="store_true", help="small sizes and short times: tries the chain, measures nothing")
    parser.add_argument("--seconds", type=float, default=540.0, help="begin nothing new after this time")
    parser.add_argument("--ncu", default="ncu", help="the Nsight Compute command")
    return parser


def main(part: Part, argv: Sequence[str] | None = None) -> int:
    """Run one part and print its table; status 1 when a row failed or is over its limit, 2 when nothing could start.

    Limits are not held against what ``--tiny`` measures.
    """
    given = options().parse_args(argv)
    deadline = Deadline(given.seconds)
    given.out.mkdir(parents=True, exist_ok=True)
    record = Record(part.name, given.out / f"{part.name}.json", {"backend": given.backend, "tiny": given.tiny})
    try:
        bench = Bench(given.backend, given.tiny)
    except RoofbenchError as error:
        record.add(part.without(part.name, named(error)))
        print(part.table(record))
        return error.exit_status
    record.about.update(device=bench.info.name, driver=bench.info.driver)
    failure = caught(lambda: part.run(Session(bench, record, deadline, given.backend, given.ncu)), describe)
    if failure:
        record.add(part.without(part.name, failure.reason))
    else:
        record.finish()
    print(part.table(record))
    return status([record])


def status(records: Sequence[Record]) -> int:
    """1 when a row failed, or is over its limit in a run whose figures mean something."""
    bad = {Verdict.FAILED}, {Verdict.FAILED, Verdict.FAIL}
    return int(any(row.verdict in bad[not record.about.get("tiny")] for record in records for row in record.rows))


def run_as_script(part: Part) -> None:
    """For ``python -m``."""
    sys.exit(main(part))
