"""Successive halving over candidates: everyone is looked at briefly, the better half for longer, and so on.

ready    the first candidate starts the process and warms the device up, which is off the time; others are then prepared in
         their order until a share of the time is used
rounds   one heats the device up again, then all that are left take turns in an order drawn by lot, forwards and backwards, so
         that what drifts falls on all alike; the better half goes on
burst    the best of those take turns from idle

A round's looks are compared with one another only: a candidate's standing is how much faster than the round's middle it was.
Later rounds last longer, because what a power limit leaves of a rate shows only after a while: a brief look reads a candidate
at the clock that those before it left.
"""

import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

from suite.jobs.shapes import Shape
from suite.measure.look import BRIEF_S, Glimpse
from suite.measure.statistics import median

NS = 1e-9
MOST_CANDIDATES = 64
LEAST_CANDIDATES = 2  # that can be looked at are prepared however long it takes
READY_SHARE = 0.3  # of the time
BURST_SHARE = 0.16
KEPT = 2  # one in so many goes on to the next round
LAST_ROUND = 4  # candidates of the last one
GROWTH = 1.5  # a round's time over that of the one before
BURST_FIELD = 8
HEAT_SHARE = 0.015  # of the time: preparing and freeing leave a device cool, and the first looks of a round would read too fast
FIRST_S = 1e-3  # the look that tells how long a launch takes
LEAST_LOOK_S = 1e-4
LONGEST_LOOK_S = 5.0  # a look is one request: while it is under way nobody can stop the search, and its deadline runs
LEAD_IN = 3  # the first of so many parts of a look brings caches and clock into the candidate's own state
TRIM = 10  # of the samples of a look, one in so many is left out at either end: those were held up
RECENT = 9  # looks, of which the middle tells what a look takes beside its launches: some make a sampler first
PHYSICAL_MARGIN = 1.02


class Viewer(Protocol):
    """Looks at candidates; ``look`` prepares what is not prepared, for ``BRIEF_S`` or more also what a brief look lacks."""

    def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> Glimpse | str:
        """What a look took, or why there can be none."""
        ...

    def keep(self, shapes: Sequence[Shape]) -> None:
        """Free what every other candidate holds."""
        ...


@dataclass
class Contender:
    """A candidate that was looked at: its standing in each round, and why it fell out, if it did.

    A standing is ln(rate) over the middle of a round's.  ``about_flop_s``, of the latest look, is for people who wait and is
    kept nowhere: a hunt that goes on knows none before it looks again.
    """

    shape: Shape
    standings: dict[str, tuple[float, float]] = field(default_factory=dict)  # by round: seconds of a look, standing
    fallen: str = ""
    about_flop_s: float | None = None

    @property
    def rounds(self) -> int:
        """How many sustained rounds it took part in."""
        return sum(name != BURST for name in self.standings)

    @property
    def standing(self) -> float:
        """The mean over the sustained rounds, by the squares of their looks' lengths.

        A longer look scatters less, and less of it is of the clock that others left.
        """
        known = [(seconds**2, each) for name, (seconds, each) in self.standings.items() if name != BURST]
        return sum(weight * each for weight, each in known) / sum(weight for weight, _ in known)

    def to_json(self) -> dict[str, Any]:
        return {"shape": list(self.shape), "standings": self.standings, "fallen": self.fallen}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        standings = {str(name): (float(weight), float(each)) for name, (weight, each) in data["standings"].items()}
        return cls(Shape(*map(int, data["shape"])), standings, str(data["fallen"]))


READY, BURST = "ready", "burst"


@dataclass
class Standings:
    """How far a hunt is: what resuming it needs.  ``done`` are the names of the rounds that are over."""

    contenders: list[Contender] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    spent_s: float = 0.0

    @property
    def ranking(self) -> list[Contender]:
        """Those who came furthest first, the better first among equals; who fell out comes last."""
        stood = [each for each in self.contenders if not each.fallen and each.rounds]
        others = [each for each in self.contenders if each.fallen or not each.rounds]
        return sorted(stood, key=lambda each: (-each.rounds, -each.standing)) + others

    @property
    def burst_ranking(self) -> list[Contender]:
        """The better from idle first, then the others as they stand."""
        ranked = self.ranking
        stood = [each for each in ranked if BURST in each.standings and not each.fallen]
        return sorted(stood, key=lambda each: -each.standings[BURST][1]) + [each for each in ranked if each not in stood]

    def are_final(self, burst: bool) -> bool:
        """Whether every round is over; ``burst`` says that looks from idle are among them, which come last."""
        if burst:
            return BURST in self.done
        rounds = map(str, range(len(round_sizes(len(self.contenders)))))
        return {READY, *rounds} <= set(self.done)

    def to_json(self) -> dict[str, Any]:
        return {"done": self.done, "spent_s": self.spent_s, "contenders": [each.to_json() for each in self.contenders]}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        contenders = [Contender.from_json(each) for each in data["contenders"]]
        return cls(contenders, [str(name) for name in data["done"]], float(data["spent_s"]))


class Allowance(NamedTuple):
    """What a hunt may take: ``seconds`` in all, ``warm_up_s`` before; burst looks of ``window_s`` after at most ``idle_s``.

    ``window_s`` 0 asks for no burst looks.  A look that is faster than ``most_flop_s`` is no product.
    """

    seconds: float
    warm_up_s: float = 0.0
    window_s: float = 0.0
    idle_s: float = 1.0
    most_flop_s: float | None = None


class Stage(NamedTuple):
    """A round that begins: its place among all, and how many candidates take part."""

    number: int
    of: int
    contenders: int
    name: str


class Hunt:
    """``tell`` hears of each round as it begins; ``over`` says that there is no time left at all.

    ``standings`` go on where an earlier hunt of the same candidates ended.
    """

    def __init__(
        self,
        candidates: Iterable[Shape],
        viewer: Viewer,
        allowance: Allowance,
        tell: Callable[[Stage, Standings], None] = lambda stage, standings: None,
        over: Callable[[], bool] = lambda: False,
        standings: Standings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._candidates, self._viewer, self._allowance = candidates, viewer, allowance
        self._tell, self._over, self._clock = tell, over, clock
        self.standings = standings or Standings()
        self._began_s = 0.0
        self._fresh = True  # nothing was looked at yet
        self._overheads_s: deque[float] = deque(maxlen=RECENT)

    def run(self) -> Standings:
        """Carry out every stage that is not done; ends early, between two looks, once it is ``over``."""
        self._began_s = self._clock() - self.standings.spent_s
        if not self.standings.done:
            self._stage(READY, 0, 0, self._ready)
        rounds = round_sizes(len(self.standings.contenders))
        for index, count in enumerate(rounds):
            self._stage(str(index), index + 1, count, partial(self._round, index, count, self._ends_s(rounds, index)))
        if self._allowance.window_s:
            self._stage(BURST, len(rounds) + 1, min(BURST_FIELD, len(self.standings.contenders)), self._burst)
        self._viewer.keep(())
        return self.standings

    def _stage(self, name: str, number: int, count: int, act: Callable[[], None]) -> None:
        if name in self.standings.done or self._over():
            return
        stages = len(round_sizes(len(self.standings.contenders) or MOST_CANDIDATES)) + bool(self._allowance.window_s)
        self._tell(Stage(number, stages, count, name), self.standings)
        act()
        if not self._over():  # what is half done is done again
            self.standings.done.append(name)
            self.standings.spent_s = self._spent_s

    def _ready(self) -> None:
        """Prepare candidates in order: each takes a first look, that tells nothing but how long a launch is.

        Whether brief looks may go before what longer ones need is told by the second: where that takes long to make, it would
        be missing in the rounds, and all get it here.
        """
        launches_s, making_s, found = 0.0, math.inf, self.standings.contenders
        found.clear()  # of an earlier part that did not come to its end
        for shape in self._candidates:
            late = self._spent_s > READY_SHARE * self._allowance.seconds or self._too_many(launches_s)
            able = sum(not each.fallen for each in found)
            if len(found) >= MOST_CANDIDATES or (late and able >= LEAST_CANDIDATES) or self._over():
                break
            contender = Contender(shape)
            found.append(contender)
            first_s = FIRST_S if making_s * MADE_IN_ROUNDS < READY_SHARE * self._allowance.seconds else BRIEF_S
            launch_s = self._look(contender, first_s) if able else self._start(contender)
            launches_s += launch_s or 0.0
            if launch_s is not None and able == 1:
                making_s = self._overheads_s[-1]

    def _start(self, contender: Contender) -> float | None:
        """The first look, and the warm-up behind it, off the time that may be used.

        What a process pays once, its context, its libraries and the list of candidates, is no looking, with a warm-up or
        without.  It is off the time once: a candidate that brings the worker down takes its successor's start from the time.
        """
        launch_s = self._look(contender, BRIEF_S)
        if self._fresh:
            self._fresh = False
            self._began_s = self._clock() - self.standings.spent_s
        if launch_s:
            self._warm_up(contender.shape)
        return launch_s

    def _warm_up(self, shape: Shape) -> None:
        """Keep the device busy, off the time that may be used."""
        began_s = self._clock()
        while (left_s := began_s + self._allowance.warm_up_s - self._clock()) > 0 and not self._over():
            if isinstance(self._viewer.look(shape, min(left_s, LONGEST_LOOK_S)), str):
                break
        self._began_s += self._clock() - began_s

    def _too_many(self, launches_s: float) -> bool:
        """Whether a round in which everyone has its least samples twice would take more than its share."""
        return 4 * launches_s > self._sustained_s * READY_SHARE

    def _round(self, index: int, most: int, ends_s: float) -> None:
        field_ = [each for each in self.standings.ranking if not each.fallen][:most]
        if index == 0:
            field_ = [each for each in self.standings.contenders if not each.fallen]
        self._viewer.keep([each.shape for each in (*field_, *self.standings.ranking[:BURST_FIELD])])
        self._heat(field_)
        order = [each for each in field_ if not each.fallen]
        random.Random(index).shuffle(order)  # in that of the ranking, who leads would always be first
        turns = [order, order[::-1]]
        left = sum(map(len, turns))
        taken: list[dict[Shape, float]] = []
        looked_s = 0.0
        for turn in turns:  # a second one goes on while there is any time: half of it would be of no use
            taken.append({})
            for contender in turn:
                if self._over() or (len(taken) > 1 and self._spent_s > self._sustained_s):
                    break
                seconds = self._share_s(ends_s, left)
                looked_s += seconds
                left -= 1
                launch_s = self._look(contender, seconds) if not contender.fallen else None
                if launch_s:
                    taken[-1][contender.shape] = launch_s
        whole = [each for each in taken if len(each) >= sum(not one.fallen for one in field_)]
        self._stand(str(index), field_, whole or taken[:1], looked_s / max(1, 2 * len(order) - left))

    def _heat(self, contenders: Sequence[Contender]) -> None:
        """Let the first work, before looks that count; what begins with a round starts and warms up as a whole hunt does."""
        if not contenders or self._over():
            return
        if self._fresh:
            self._start(contenders[0])
        if not contenders[0].fallen:
            self._look(contenders[0], min(HEAT_SHARE * self._allowance.seconds, LONGEST_LOOK_S))

    def _burst(self) -> None:
        field_ = [each for each in self.standings.ranking if not each.fallen and each.rounds][:BURST_FIELD]
        self._viewer.keep([each.shape for each in field_])
        if self._fresh and field_:
            self._start(field_[0])
        window_s, found = self._allowance.window_s, {}
        for index, contender in enumerate(field_):
            if self._over():
                return
            idle_s = self._share_s(self._allowance.seconds, len(field_) - index) - window_s
            launch_s = self._look(contender, window_s, min(max(idle_s, 0.0), self._allowance.idle_s))
            if launch_s:
                found[contender.shape] = launch_s
        self._stand(BURST, field_, [found], window_s)

    def _stand(self, name: str, contenders: Sequence[Contender], turns: Sequence[dict[Shape, float]], weight_s: float) -> None:
        """Give everyone of a round its standing: the mean over its turns, over the middle of all."""
        rates = {
            each.shape: math.fsum(math.log(each.shape.flops / turn[each.shape]) for turn in turns) / len(turns)
            for each in contenders
            if not each.fallen and all(each.shape in turn for turn in turns)
        }
        middle = median(rates.values()) if rates else 0.0
        for each in contenders:
            if each.shape in rates:
                each.standings[name] = (weight_s, rates[each.shape] - middle)

    def _look(self, contender: Contender, seconds: float, idle_s: float = 0.0) -> float | None:
        """Seconds of one launch; ``None`` where the candidate falls out."""
        began_s = self._clock()
        glimpse = self._viewer.look(contender.shape, seconds, idle_s)
        if self._over():
            return None
        if isinstance(glimpse, str):
            contender.fallen = glimpse
            return None
        worked_s = math.fsum(glimpse.durations_ns) * NS
        self._overheads_s.append(max(0.0, self._clock() - began_s - worked_s - idle_s))
        launch_s = _lasting_ns(glimpse.durations_ns) * NS / glimpse.launches
        contender.about_flop_s = contender.shape.flops / max(launch_s, NS)
        most_flop_s = self._allowance.most_flop_s
        if most_flop_s and contender.about_flop_s > PHYSICAL_MARGIN * most_flop_s:
            contender.fallen = f"faster than the device can be, which is {most_flop_s:.4g} operations/s by its sheet"
            return None
        return launch_s

    def _share_s(self, ends_s: float, left: int) -> float:
        overhead_s = median(self._overheads_s) if self._overheads_s else 0.0
        return min(max(LEAST_LOOK_S, (ends_s - self._spent_s) / left - overhead_s), LONGEST_LOOK_S)

    def _ends_s(self, rounds: Sequence[int], index: int) -> float:
        """When a round should be over: what is left for the rounds, by their growing shares."""
        shares = [GROWTH**number for number in range(len(rounds))]
        return self._spent_s + (self._sustained_s - self._spent_s) * shares[index] / sum(shares[index:])

    @property
    def _sustained_s(self) -> float:
        return self._allowance.seconds * (1 - BURST_SHARE * bool(self._allowance.window_s))

    @property
    def _spent_s(self) -> float:
        return self._clock() - self._began_s


def round_sizes(count: int) -> list[int]:
    """How many candidates each round has: half of them go on, down to those of the last round."""
    rounds = [count]
    while rounds[-1] > LAST_ROUND:
        rounds.append(max(LAST_ROUND, math.ceil(rounds[-1] / KEPT)))
    return rounds


MADE_IN_ROUNDS = round_sizes(MOST_CANDIDATES)[2]  # so many are left where looks are first too long to be brief


def _lasting_ns(durations_ns: Sequence[int]) -> float:
    """What a sample takes once the candidate has come into its own state.

    It is the mean: a power limit is kept by steps of the clock of about one per cent, and the middle sample is of one of them.
    """
    lasting = sorted(durations_ns[len(durations_ns) // LEAD_IN :])
    out = len(lasting) // TRIM
    kept = lasting[out : len(lasting) - out]
    return math.fsum(kept) / len(kept)
