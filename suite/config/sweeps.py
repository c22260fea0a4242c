"""How many runs ``-m`` asks for, told from its overrides alone: what would never end, or be nothing, is refused.

Hydra's own sweeper lists every value of a range and every combination before it runs the first.
"""

import math
from collections.abc import Sequence

from hydra.core.override_parser.types import Glob, IntervalSweep, Override, RangeSweep

from suite.errors import UsageError

MOST_RUNS = 1000  # each is composed, at about a quarter of a second, before the first is measured
WRITE_VALUES = "write its values with commas"


def refuse_uncountable(overrides: Sequence[Override]) -> None:
    """``UsageError`` for a sweep that the basic sweeper cannot list, that has no value, or that is too long."""
    counts: dict[str, float] = {}
    for override in overrides:
        counts[override.get_key_element()] = _values(override)  # of two of a key the last counts, and both are listed
    runs = math.prod(counts.values())
    if runs > MOST_RUNS:
        raise UsageError(f"-m would make {_told(runs)} runs, one for each combination, of at most {MOST_RUNS}; sweep in parts")


def _values(override: Override) -> float:
    """How many values an override has, infinity where no list can hold them."""
    if not override.is_sweep_override():
        return 1
    value, text = override._value, override.input_line  # of a glob ``value()`` makes something else
    if isinstance(value, Glob):
        raise UsageError(f"{text} leaves it to Hydra to find names, which it does not do here; {WRITE_VALUES}")
    if isinstance(value, IntervalSweep):
        raise UsageError(f"{text} is an interval, of which only a sweeper that chooses as it goes takes values; {WRITE_VALUES}")
    many = _of_range(value, str(text)) if isinstance(value, RangeSweep) else len(value.list)
    if many > MOST_RUNS:
        raise UsageError(f"{text} gives {_told(many)} values, and -m makes at most {MOST_RUNS} runs; take a larger step")
    return many


def _of_range(swept: RangeSweep, text: str) -> float:
    start, stop, step = map(_number, (swept.start, swept.stop, swept.step))
    if step == 0 or not (math.isfinite(start) and math.isfinite(step)) or math.isnan(stop):
        raise UsageError(f"{text} is no range; write range(START,STOP,STEP) with finite numbers and a STEP other than 0")
    many = (stop - start) / step
    if many <= 0:
        raise UsageError(f"{text} is empty: no value lies from {start:g} to below {stop:g} by {step:g}; {WRITE_VALUES}")
    return math.ceil(many) if math.isfinite(many) else math.inf


def _number(value: float | None) -> float:
    try:
        return float(value or 0)
    except OverflowError:  # a whole number of more digits than a float has room for
        return math.inf


def _told(many: float) -> str:
    return "endlessly many" if math.isinf(many) else f"{many:,}" if many < 1e15 else f"{float(many):.3g}"
