"""A search on its device: the hunt, then its best measured like any other case, on data that no look has seen."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from suite.case import Regime
from suite.events import SearchRound
from suite.jobs.shapes import Shape
from suite.launcher.happenings import CaseEnded, SearchEnded, SearchTold
from suite.launcher.quest import Desk
from suite.outcome import Outcome
from suite.planned import PlannedCase
from suite.search.expected import allowance, hunting_s
from suite.search.hunt import Hunt, Stage
from suite.search.looker import Looker
from suite.search.standings import Contender, Standings
from suite.search.subject import Subject, shape_text

SPARE = 6  # more of the ranking are measured where none of the first came out right

Outcomes = Mapping[tuple[int, str], Outcome]


class Search:
    """See ``suite.launcher.quest.Quest``.

    ``state`` and ``outcomes`` are what an earlier part of the run has left: how far the hunt came, and how cases ended.
    ``hunting_s`` is what looking is predicted to take yet, 0 where the hunt was over.
    """

    def __init__(self, subject: Subject, state: Mapping[str, Any] | None = None, outcomes: Outcomes | None = None) -> None:
        self.subject = subject
        self._standings = Standings.from_json(state) if state else Standings()
        self._outcomes = dict(outcomes or {})
        self._allowance = allowance(subject)
        self.hunting_s = 0.0 if self._is_hunted else hunting_s(subject)

    @property
    def slot(self) -> int:
        return self.subject.slot.slot

    def run(self, desk: Desk) -> None:
        """Hunt unless that is done, then measure the finalists of each load."""
        if not self._is_hunted:
            self._hunt(desk)
        measured = 0
        for regime in self.subject.regimes:
            ranking = self._standings.burst_ranking if regime.load == "burst" else self._standings.ranking
            measured += self._measure(desk, self._in_order(ranking), regime)
        if not desk.over():
            desk.tell(SearchEnded(self.subject.key, measured))

    @property
    def _is_hunted(self) -> bool:
        return self._standings.are_final(burst=bool(self._allowance.window_s))

    def _hunt(self, desk: Desk) -> None:
        hunt = Hunt(
            self.subject.candidates(),
            Looker(desk.seat, self.subject, desk.over),
            self._allowance,
            lambda stage, standings: desk.tell(self._told(stage, standings)),
            desk.over,
            self._standings,
        )
        hunt.run()
        passed_s = 0.0 if desk.over() else self.hunting_s
        desk.tell(SearchTold(None, self.slot, self.subject.key, self._standings.to_json(), passed_s))

    def _in_order(self, ranking: Sequence[Contender]) -> Iterator[Shape]:
        """Where fewer could be looked at than are to be measured, candidates that were not; what fell out comes last."""
        fallen = {each.shape for each in ranking if each.fallen}
        yield from (each.shape for each in ranking if not each.fallen)
        yield from (shape for shape in self.subject.candidates() if shape not in fallen)
        yield from fallen

    def _measure(self, desk: Desk, ranking: Iterable[Shape], regime: Regime) -> int:
        """Measure the first of a ranking, and those after them while none is right; return how many have a result."""
        ended: dict[Shape, Outcome] = {}
        for shape in ranking:
            if self._enough(list(ended.values())):
                break
            if shape in ended:
                continue
            outcome = self._outcome(desk, self.subject.planned(shape, regime))
            if outcome is None:
                break
            ended[shape] = outcome
        return len(ended)

    def _enough(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether a finalist came out right, or more are of no use: the format is not there, or too many were wrong."""
        over = len(outcomes) - self.subject.settings.finalists
        known = set(outcomes)
        return over >= 0 and (Outcome.OK in known or known == {Outcome.UNSUPPORTED} or over >= SPARE)

    def _outcome(self, desk: Desk, planned: PlannedCase) -> Outcome | None:
        """How a finalist ended, now or in an earlier part of the run; ``None`` when the run is over."""
        known = self._outcomes.get((planned.slot, planned.case.key))
        if known is not None or desk.over():
            return known
        ended: CaseEnded | None = desk.measure(planned)
        return ended.measurement.outcome if ended else None

    def _told(self, stage: Stage, standings: Standings) -> SearchTold:
        stood = [each for each in standings.ranking if not each.fallen]
        ahead = stood[0] if stood and stood[0].rounds else None
        event = SearchRound(
            slot=self.slot,
            subject=self.subject.name,
            format=self.subject.example.case.workload.format,
            number=stage.number,
            of=stage.of,
            contenders=stage.contenders,
            ahead=shape_text(ahead.shape) if ahead else "",
            about_flop_s=ahead.about_flop_s if ahead else None,
        )
        return SearchTold(event, self.slot, self.subject.key, standings.to_json())
