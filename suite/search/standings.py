"""How far a hunt is: who was looked at, how each stood in every round, and the looks of a round that is not over.

This is what is kept with a run, so that it goes on where it was ended.  No number in it is a rate: looks are no results.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Self

from suite.jobs.shapes import Shape

READY, BURST = "ready", "burst"
KEPT = 2  # one in so many goes on to the next round
LAST_ROUND = 4  # candidates of the last one


@dataclass
class Contender:
    """A candidate that was looked at: its standing in each round, and why it fell out, if it did.

    A standing is ln(rate) over the middle of a round's.  ``about_flop_s``, of the latest look, is for people who wait and is
    kept nowhere: a hunt that goes on knows none before it looks again.  One that ``is_missing`` fell out as the device does not
    offer it, which is kept in the words of its reason alone.
    """

    shape: Shape
    standings: dict[str, tuple[float, float]] = field(default_factory=dict)  # by round: seconds of a look, standing
    fallen: str = ""
    about_flop_s: float | None = None
    is_missing: bool = False

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


@dataclass
class UnderWay:
    """The looks of a stage that was ended before it was over, so that going on takes none of them again.

    Of each turn by shape: ln(rate) over that of the look at ``base`` with which the same part of the run began.  ``looks`` of
    ``looked_s`` seconds together were asked for; ``launches_s`` is what one launch of each candidate takes, together.
    """

    name: str
    turns: list[dict[Shape, float]] = field(default_factory=lambda: [{}, {}])
    base: Shape | None = None
    looks: int = 0
    looked_s: float = 0.0
    launches_s: float = 0.0

    def begin_with(self, base: Shape) -> None:
        """Looks over that of another candidate are no longer to be compared with what follows."""
        if self.base not in (None, base):
            self.turns, self.looks, self.looked_s = [{}, {}], 0, 0.0
        self.base = base

    def to_json(self) -> dict[str, Any]:
        turns = [[[*shape, each] for shape, each in turn.items()] for turn in self.turns]
        base = None if self.base is None else list(self.base)
        return {**vars(self), "turns": turns, "base": base}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        turns = [{Shape(int(m), int(n), int(k)): float(each) for m, n, k, each in turn} for turn in data["turns"]]
        base = None if data["base"] is None else Shape(*map(int, data["base"]))
        known = int(data["looks"]), float(data["looked_s"]), float(data["launches_s"])
        return cls(str(data["name"]), turns, base, *known)


@dataclass
class Standings:
    """How far a hunt is: what resuming it needs.

    ``done`` are the names of the rounds that are over; of one that was ended within, ``under_way`` is what it came to.
    ``stalled`` says that the last part of a run ended before it had added anything.
    """

    contenders: list[Contender] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    spent_s: float = 0.0
    under_way: UnderWay | None = None
    stalled: bool = False

    @property
    def known(self) -> tuple[int, int, int, int]:
        """How much is known, in counts that grow with every look that tells something."""
        kept = sum(map(len, self.under_way.turns)) if self.under_way else 0
        return len(self.done), len(self.contenders), len(self.contenders) - len(self.able), kept

    @property
    def able(self) -> list[Contender]:
        """Those still in, in the order in which they came."""
        return [each for each in self.contenders if not each.fallen]

    @property
    def round_sizes(self) -> list[int]:
        """How many candidates each round has yet; no round where none is left."""
        return round_sizes(len(self.able)) if self.able else []

    def begin(self, name: str) -> UnderWay:
        """What a stage has come to, that begins or goes on."""
        if self.under_way is None or self.under_way.name != name:
            self.under_way = UnderWay(name)
        return self.under_way

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
        """Whether every round is over; ``burst`` says that looks from idle are among them, which come last.

        Where no candidate is left there is nothing more to look at.
        """
        if burst and self.able:
            return BURST in self.done
        rounds = map(str, range(len(self.round_sizes)))
        return {READY, *rounds} <= set(self.done)

    def to_json(self) -> dict[str, Any]:
        contenders = [each.to_json() for each in self.contenders]
        under_way = self.under_way.to_json() if self.under_way else None
        known = {"done": self.done, "spent_s": self.spent_s, "contenders": contenders}
        return {**known, "under_way": under_way, "stalled": self.stalled}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        contenders = [Contender.from_json(each) for each in data["contenders"]]
        under_way = UnderWay.from_json(data["under_way"]) if data.get("under_way") else None
        done = [str(name) for name in data["done"]]
        return cls(contenders, done, float(data["spent_s"]), under_way, bool(data.get("stalled")))


def round_sizes(count: int) -> list[int]:
    """How many candidates each round has: half of them go on, down to those of the last round."""
    rounds = [count]
    while rounds[-1] > LAST_ROUND:
        rounds.append(max(LAST_ROUND, math.ceil(rounds[-1] / KEPT)))
    return rounds
