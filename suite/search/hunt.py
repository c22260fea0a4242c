"""Successive halving over candidates: everyone is looked at briefly, the better half for longer, and so on.

ready    the first candidate starts the process and warms the device up, which is off the time; others are then prepared in
         their order until a share of the time is used
rounds   one heats the device up again, then all that are left take turns in an order drawn by lot, forwards and backwards, so
         that what drifts falls on all alike; the better half goes on
burst    the best of those take turns from idle

A stage that is ended within goes on with the looks that it lacks; looks of different parts of a run are compared by how much
faster each was than the one that its part began with, which is always at the same candidate.  Where the device offers none of
the first candidates it offers none at all, and nothing more is looked at.

A round's looks are compared with one another only: a candidate's standing is how much faster than the round's middle it was.
Later rounds last longer, because what a power limit leaves of a rate shows only after a while: a brief look reads a candidate
at the clock that those before it left.
"""

import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from suite.jobs.shapes import Shape
from suite.measure.look import BRIEF_S, Glimpse
from suite.measure.statistics import median
from suite.search.standings import BURST, LAST_ROUND, READY, Contender, Standings, UnderWay, round_sizes

NS = 1e-9
MOST_CANDIDATES = 64
LEAST_CANDIDATES = 2  # that can be looked at are prepared however long it takes
READY_SHARE = 0.3  # of the time
BURST_SHARE = 0.16
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
MISSING = 3  # candidates that a device does not offer, before any that it does, tell that it offers none


class Missing(NamedTuple):
    """Why a candidate is nothing that the device offers."""

    reason: str


class Viewer(Protocol):
    """Looks at candidates; ``look`` prepares what is not prepared, for ``BRIEF_S`` or more also what a brief look lacks."""

    def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> Glimpse | Missing | str:
        """What a look took, or why there can be none."""
        ...

    def keep(self, shapes: Sequence[Shape]) -> None:
        """Free what every other candidate holds."""
        ...


class Allowance(NamedTuple):
    """What a hunt may take: ``seconds`` in all, ``warm_up_s`` before; burst looks of ``window_s`` after at most ``idle_s``.

    ``window_s`` 0 asks for no burst looks.  A look that is faster than ``most_flop_s`` is no product.
    """

    seconds: float
    warm_up_s: float = 0.0
    window_s: float = 0.0
    idle_s: float = 1.0
    most_flop_s: float | None = None

    @property
    def sitting_s(self) -> float:
        """What a hunt needs at a stretch to come any further, beside making candidates ready: it warms up, heats the device up
        and looks once.
        """
        look_s = max(self.seconds / (2 * LAST_ROUND), self.idle_s + self.window_s if self.window_s else 0.0)
        return self.warm_up_s + min(HEAT_SHARE * self.seconds, LONGEST_LOOK_S) + min(look_s, LONGEST_LOOK_S + self.idle_s)


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
        known = self.standings.known
        if not self.standings.done:
            self._stage(READY, 0, 0, self._ready)
        rounds = self.standings.round_sizes
        for index, count in enumerate(rounds):
            self._stage(str(index), index + 1, count, partial(self._round, index, count, self._ends_s(rounds, index)))
        if self._allowance.window_s:
            self._stage(BURST, len(rounds) + 1, min(BURST_FIELD, len(self.standings.able)), self._burst)
        self._viewer.keep(())
        self.standings.stalled = self._over() and self.standings.known == known
        return self.standings

    def _stage(self, name: str, number: int, count: int, act: Callable[[UnderWay], None]) -> None:
        """Carry out a stage, or the rest of one; what it has come to where it is ended is kept, with the time it took."""
        standings = self.standings
        if name in standings.done or self._over() or (number and not standings.able):
            return
        rounds = standings.round_sizes if number else round_sizes(MOST_CANDIDATES)
        stages = len(rounds) + bool(self._allowance.window_s)
        self._tell(Stage(number, stages, min(count, len(standings.able)), name), standings)
        act(standings.begin(name))
        standings.spent_s = self._spent_s
        if not self._over():
            standings.done.append(name)
            standings.under_way = None

    def _ready(self, begun: UnderWay) -> None:
        """Prepare candidates in order: each takes a first look, that tells nothing but how long a launch is.

        Whether brief looks may go before what longer ones need is told by the second: where that takes long to make, it would
        be missing in the rounds, and all get it here.  What an earlier part of the run found is prepared when its turn comes.
        """
        making_s, looked, missing, found = math.inf, 0, 0, self.standings.contenders
        known = {each.shape for each in found}
        for shape in (each for each in self._candidates if each not in known):
            late = self._spent_s > READY_SHARE * self._allowance.seconds or self._too_many(begun.launches_s)
            enough = late and len(self.standings.able) >= LEAST_CANDIDATES
            hopeless = missing >= MISSING and not self.standings.able
            if len(found) >= MOST_CANDIDATES or enough or hopeless or self._over():
                break
            contender = Contender(shape)
            first_s = FIRST_S if making_s * MADE_IN_ROUNDS < READY_SHARE * self._allowance.seconds else BRIEF_S
            launch_s = self._look(contender, first_s) if looked else self._start(contender)
            found.append(contender)
            if launch_s is not None:
                begun.launches_s += launch_s
                looked += 1
                making_s = self._overheads_s[-1] if looked == 2 else making_s
            missing += contender.is_missing

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
            if not isinstance(self._viewer.look(shape, min(left_s, LONGEST_LOOK_S)), Glimpse):
                break
        self._began_s += self._clock() - began_s

    def _too_many(self, launches_s: float) -> bool:
        """Whether a round in which everyone has its least samples twice would take more than its share."""
        return 4 * launches_s > self._sustained_s * READY_SHARE

    def _round(self, index: int, most: int, ends_s: float, begun: UnderWay) -> None:
        field_ = [each for each in self.standings.ranking if not each.fallen][:most] if index else self.standings.able
        self._viewer.keep([each.shape for each in (*field_, *self.standings.ranking[:BURST_FIELD])])
        base = self._heat(field_, begun)
        order = [each for each in field_ if not each.fallen]
        order.sort(key=lambda each: random.Random(f"{index} {each.shape}").random())  # else who leads would always be first
        left = 2 * len(order) - sum(map(len, begun.turns))
        for number, turn in enumerate((order, order[::-1])):
            taken = begun.turns[number]  # a second one goes on while there is any time: half of it would be of no use
            for contender in (each for each in turn if each.shape not in taken):
                if self._over() or (number and self._spent_s > self._sustained_s):
                    break
                seconds = self._share_s(ends_s, max(1, left))
                left -= 1
                launch_s = self._look(contender, seconds) if not contender.fallen else None
                if launch_s:
                    taken[contender.shape] = _ln_rate(contender.shape, launch_s) - base
                    begun.looked_s += seconds
                    begun.looks += 1
        if not self._over():
            whole = [turn for turn in begun.turns if all(each.shape in turn for each in order if not each.fallen)]
            self._stand(str(index), order, whole or begun.turns[:1], begun.looked_s / max(1, begun.looks))

    def _heat(self, contenders: Sequence[Contender], begun: UnderWay) -> float:
        """Let the first work, before looks that count, and give the ln(rate) that these are taken over.

        What begins with a round starts and warms up as a whole hunt does.
        """
        seconds = min(HEAT_SHARE * self._allowance.seconds, LONGEST_LOOK_S)
        for contender in contenders:
            if self._over():
                break
            if self._fresh:
                self._start(contender)
            launch_s = self._look(contender, seconds) if not contender.fallen else None
            if launch_s:
                begun.begin_with(contender.shape)
                return _ln_rate(contender.shape, launch_s)
        return 0.0

    def _burst(self, begun: UnderWay) -> None:
        field_ = [each for each in self.standings.ranking if not each.fallen and each.rounds][:BURST_FIELD]
        self._viewer.keep([each.shape for each in field_])
        if self._fresh and field_:
            self._start(field_[0])
        base = None  # of a part of the run: the first of them is looked at in each
        for index, contender in enumerate(field_):
            if base is not None and contender.shape in begun.turns[0]:
                continue
            if self._over():
                return
            launch_s = self._look_from_idle(contender, sum(each.shape not in begun.turns[0] for each in field_[index:]))
            if launch_s and base is None:
                base = _ln_rate(contender.shape, launch_s)
                begun.begin_with(contender.shape)
            if launch_s and base is not None:
                begun.turns[0][contender.shape] = _ln_rate(contender.shape, launch_s) - base
        if not self._over():
            self._stand(BURST, field_, begun.turns[:1], self._allowance.window_s)

    def _look_from_idle(self, contender: Contender, left: int) -> float | None:
        window_s = self._allowance.window_s
        idle_s = self._share_s(self._allowance.seconds, max(1, left)) - window_s
        return self._look(contender, window_s, min(max(idle_s, 0.0), self._allowance.idle_s))

    def _stand(self, name: str, contenders: Sequence[Contender], turns: Sequence[dict[Shape, float]], weight_s: float) -> None:
        """Give everyone of a round its standing: the mean over its turns, over the middle of all."""
        rates = {
            each.shape: math.fsum(turn[each.shape] for turn in turns) / len(turns)
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
        if not isinstance(glimpse, Glimpse):  # of a worker that was killed as the run ended nothing is kept
            contender.is_missing = isinstance(glimpse, Missing)
            contender.fallen = glimpse.reason if isinstance(glimpse, Missing) else glimpse
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


MADE_IN_ROUNDS = round_sizes(MOST_CANDIDATES)[2]  # so many are left where looks are first too long to be brief


def _lasting_ns(durations_ns: Sequence[int]) -> float:
    """What a sample takes once the candidate has come into its own state.

    It is the mean: a power limit is kept by steps of the clock of about one per cent, and the middle sample is of one of them.
    """
    lasting = sorted(durations_ns[len(durations_ns) // LEAD_IN :])
    out = len(lasting) // TRIM
    kept = lasting[out : len(lasting) - out]
    return math.fsum(kept) / len(kept)


def _ln_rate(shape: Shape, launch_s: float) -> float:
    return math.log(shape.flops / launch_s)
