"""The live display of a sweep on a terminal, drawn with rich; it leaves no trace once the table is printed below it."""

from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from suite.events import Event, PhaseStarted, SearchRound, WorkerRestarted
from suite.progress.tally import PHASE_WORDS, Tally, result_words, search_words
from suite.report.words import case_title
from suite.show.results import span

REFRESHES_PER_S = 4  # a redraw is host work beside the measurement: enough to see a clock run


class Live:
    """Progress bar, what each device is doing, the last result, and how cases have ended so far."""

    def __init__(self, stream: TextIO) -> None:
        self._tally = Tally()
        self._console = Console(file=stream, highlight=False)
        self._live = RichLive(
            console=self._console, get_renderable=self.render, refresh_per_second=REFRESHES_PER_S, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        self._tally.take(event)
        if isinstance(event, WorkerRestarted):
            self._console.print(Text(f"worker of {self._tally.device(event.slot)} restarted: {event.reason}", style="yellow"))

    def render(self) -> RenderableType:
        """What stands on the screen now; called by rich's own thread."""
        tally = self._tally
        head = Table.grid(padding=(0, 1))
        for _ in range(3):
            head.add_column(no_wrap=True)
        left = f"about {span(tally.left_s)} left" if tally.left_s is not None else ""
        head.add_row(f"{tally.done}/{tally.total}", ProgressBar(tally.total or 1, tally.done, width=32), left)
        lines = [_cropped(self._current(phase)) for _, phase in sorted(tally.current.items())]
        if tally.last is not None:
            # The figure first: a narrow terminal crops the end of the line.
            title = case_title(tally.last) + tally.on(tally.last.device_slot)
            lines.append(_cropped(f"last: {result_words(tally.last)}: {title}"))
        if tally.outcomes:
            lines.append(_cropped(tally.outcome_words))
        return Group(head, *lines)

    def _current(self, phase: PhaseStarted | SearchRound) -> str:
        device = self._tally.device(phase.slot)
        if isinstance(phase, SearchRound):
            return f"{device}: {search_words(phase)}"
        return f"{device}: {PHASE_WORDS.get(phase.phase, phase.phase)} {phase.case.title}"


def _cropped(text: str) -> Text:
    """One line each, so that the display does not jump as texts change."""
    return Text(text, no_wrap=True, overflow="ellipsis")
