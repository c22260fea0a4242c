"""A sweep as plain lines, for logs and pipes."""

from types import TracebackType
from typing import Self, TextIO

from suite.events import CaseFinished, Event, SearchRound, SweepFinished, SweepStarted, WorkerRestarted
from suite.progress.tally import Tally, result_words, search_words
from suite.report.words import case_title
from suite.rows import ResultRow
from suite.show.results import span


class Lines:
    """One line for each finished case and each restarted worker; flushed, so that a log can be followed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._tally = Tally()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def __call__(self, event: Event) -> None:
        self._tally.take(event)
        line = self._line(event)
        if line is not None:
            self._stream.write(line + "\n")
            self._stream.flush()

    def _line(self, event: Event) -> str | None:
        match event:
            case SweepStarted(run, total, already_done):
                kept = f", {already_done} of them already done" if already_done else ""
                return f"run {run}: {total} case{'s' * (total != 1)}{kept}"
            case CaseFinished(row, done, total, remaining_s):
                left = f", {span(remaining_s)} left" if remaining_s is not None and done < total else ""
                return f"[{done:>{len(str(total))}}/{total}] {self._title(row)}: {result_words(row)}{left}"
            case SearchRound():
                return search_words(event, self._tally.on(event.slot))
            case WorkerRestarted(slot, reason):
                return f"worker of {self._tally.device(slot)} restarted: {reason}"
            case SweepFinished(_, status, reason) if reason:
                return f"{status}: {reason}"
        return None

    def _title(self, row: ResultRow) -> str:
        return case_title(row) + self._tally.on(row.device_slot)
