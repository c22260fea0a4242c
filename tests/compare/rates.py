"""How often comparisons of recordings with themselves call a case faster or slower, and how often a planted 3 % is found.

    python -m tests.compare.rates [RUNS]

Tables on stdout, of 200 comparisons each; ``RATES.md`` has them with what they mean.  RUNS are taken from each recording (200).
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Sequence

from suite.compare.noise import NONE
from suite.compare.spread import Spread
from suite.compare.verdict import Gap, Judgement, Verdict, judge, p_differs
from tests.compare.constructions import CONSTRUCTIONS
from tests.compare.draws import (
    apart,
    comparisons,
    dealt,
    differs,
    gap,
    recorded,
    recorded_runs,
    repeatability,
    run_at,
    sample_set,
    slowed,
    spread,
    two_runs,
)
from tests.measure.processes import HELD_MORE, HIDDEN, PROMISED
from tests.measure.replays import Settings, replays, wander
from tests.recordings.recording import Recording, every_recording

PLANTED = 0.03
LEVELS = (0.05, 0.001)
BRIEF = Settings(max_time_s=5.0)
MADE_UP = PROMISED | HELD_MORE | HIDDEN
# Where a clock was counted over each sample, cycles are compared; these are about times.
NAMES = [path.stem for path in every_recording() if not Recording.read(path).clocks_khz]
Way = Callable[[str], Sequence[Gap]]  # how a case is drawn from a recording, 200 times


def ways(count: int) -> dict[str, Way]:
    """Rounds of one measurement; two runs without and with the repeatability of the recorded device."""
    return {
        "rounds": dealt,
        "runs": lambda name: two_runs(name, count, known=False),
        "runs, selftest": lambda name: two_runs(name, count),
    }


def alone(gaps: Sequence[Gap]) -> list[Judgement]:
    """Comparisons of that one case."""
    return [one for (one,) in comparisons(gaps)]


def among_others(way: Way, planted_in: str = "") -> list[list[Judgement]]:
    """Comparisons of which each recording is a case, one of them with a slower kernel."""
    return comparisons(*(slowed_by(way(name), PLANTED * (name == planted_in)) for name in NAMES))


def slowed_by(gaps: Sequence[Gap], by: float) -> list[Gap]:
    return [slowed(each, by) for each in gaps]


def only_that(judgements: list[Judgement], index: int) -> bool:
    """Whether that case is slower, and no other one is said to differ."""
    others = [*judgements[:index], *judgements[index + 1 :]]
    return judgements[index].verdict is Verdict.SLOWER and not differs(others)


def verdicts(judgements: list[Judgement]) -> str:
    """``3 differ, 120 UNDECIDED, 77 SAME``."""
    found = Counter(each.verdict for each in judgements)
    differing = found[Verdict.FASTER] + found[Verdict.SLOWER]
    return f"{differing}, {found[Verdict.UNDECIDED]}, {found[Verdict.SAME]}"


def of_twenty(name: str, count: int, margin_only: bool) -> int:
    """How many of 200 comparisons of two runs of twenty such cases call any different.

    With ``margin_only`` the repeatability is the margin of the verdicts and not also a spread from run to run.
    """
    found, rel, draw = recorded_runs(name, count), repeatability(name, count), random.Random(name)
    known = Spread(rel, NONE) if margin_only else spread(rel)
    drawn = [[gap(*apart(found, draw))._replace(spread=known) for _ in range(20)] for _ in range(200)]
    return sum(differs(judge(each)) for each in drawn)


def by_chance(process: str, count: int, pairs: int = 4000) -> list[str]:
    """In how many of 100 pairs of runs of a made-up process each construction finds a difference, at 5 % and at 0.1 %."""
    tape = MADE_UP[process]()
    replayed = [(run_at(tape, each.start, BRIEF), each.rule.samples) for each in replays(tape, BRIEF, count)]
    sets = [sample_set(samples) for _, samples in replayed]
    cells = []
    for construction in CONSTRUCTIONS.values():
        found = [run._replace(noise=construction(each)) for (run, _), each in zip(replayed, sets, strict=True)]
        draw = random.Random(5)
        p_values = [p_differs(gap(*apart(found, draw))._replace(min_effect=0.0)) for _ in range(pairs)]
        cells.append(" and ".join(f"{100 * sum(p <= level for p in p_values) / pairs:.1f}" for level in LEVELS))
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.compare.rates", description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=200)
    count = parser.parse_args().runs
    known = ways(count)
    _row(["recording, wander, repeatability", *(f"{name}: A/A" for name in known), *(f"{name}: 3 %" for name in known)])
    _row(["---"] * (2 * len(known) + 1))
    for name in NAMES:
        title = f"{name}, {wander(recorded(name)):.2%}, {repeatability(name, count):.2%}"
        slower = [alone(slowed_by(way(name), PLANTED)) for way in known.values()]
        found = [str(sum(each.verdict is Verdict.SLOWER for each in judged)) for judged in slower]
        _row([title, *(verdicts(alone(way(name))) for way in known.values()), *found])
    _row(["all of them, any", *(str(sum(map(differs, among_others(way)))) for way in known.values()), *[""] * len(known)])
    print()
    _row(["3 % planted in, of 11 cases", *known])
    _row(["---"] * (len(known) + 1))
    for index, name in enumerate(NAMES):
        _row([name, *(str(sum(only_that(each, index) for each in among_others(way, name))) for way in known.values())])
    print()
    _row(["twenty such cases, any", "repeatability as margin", "as spread from run to run too"])
    _row(["---"] * 3)
    for name in NAMES:
        _row([name, *(str(of_twenty(name, count, margin_only)) for margin_only in (True, False))])
    print()
    _row(["made-up process", *CONSTRUCTIONS])
    _row(["---"] * (len(CONSTRUCTIONS) + 1))
    for process in MADE_UP:
        _row([process, *by_chance(process, count)])


def _row(cells: list[str]) -> None:
    print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
