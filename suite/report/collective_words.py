"""What is made of a run's collectives, in words and cells: fits with their gates, crossings, and worlds that nobody has.

The same cells stand in the terminal, in Markdown and in HTML.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from suite.collectives.model.alpha_beta import Fit, Refusal
from suite.collectives.model.crossover import Crossing
from suite.collectives.model.formulas import formula
from suite.collectives.model.holdout import HeldOut
from suite.collectives.model.simulate import LEAST_ERROR
from suite.collectives.series import Doubt, Point, Setting, Way, left_out_words
from suite.collectives.study import Crossover, Modelled, Study
from suite.outcome import Evidence
from suite.report.words import counted, duration, half_width_percent, message_size, percent, si

MODELLED = Evidence.MODELLED.value
ABOUT = (
    f"Fits of alpha (seconds a step) and B (bytes per second of a rank's link) to the times of this run, {MODELLED}: they "
    "stand beside what was measured and are never part of it. A fit that explains less than 90 % of the variance, or in which "
    "transfer is under a quarter of the time of the largest message, is refused; where small messages do not follow it, it is "
    "one of the large ones and says from where. Points that were contended or are not resolved stay in sight, in no fit and no "
    "crossing; those that did not converge or settle are used, and counted, and so are those of ranks that share cores: what "
    "is made of these is of that host with so many ranks, and no figure of a link. Behind ± is how far alpha and 1/B may be "
    "off, with 95 %, by the intervals of the times or their scatter about the line, whichever is wider. The largest world is "
    "also predicted from the smaller ones alone, and how far that was off is its held-out error."
)
NO_LINK = (
    "Ranks that share one device have no link between them: their times, in the table of results, are those of taking turns on "
    "the device and of sockets. They have no bandwidth and are in no figure and no fit. One that is ok ran as it was asked to, "
    "and was right."
)
FIT_TITLES = ("Algorithm", "Ranks", "Formula", "alpha", "B", "R^2", "Transfer", "Held out", "Points")
CROSSOVER_TITLES = ("Ranks", "Between", "Measured", "Predicted")
COUNTED = {Doubt.SHARED_CORES: "of ranks that share cores"}  # where the doubt's own words do not stand behind a number
USUAL_REGIME = "warm/sustained/call"


class FitRow(NamedTuple):
    """The cells of a fit under ``FIT_TITLES``; where it was refused ``reason`` says why and figures are empty."""

    cells: tuple[str, ...]
    reason: str


def setting_title(setting: Setting) -> str:
    """``all_reduce fp32 over host``; what is not measured says so, and so does what is not as usual."""
    is_measured = setting.evidence == Evidence.MEASURED
    told = (
        f"{setting.op} {setting.format} over {setting.transport}",
        setting.semantics,
        "" if setting.in_place else "out of place",
        "ranks of a launcher" if setting.joined else "",
        setting.regime if is_measured and setting.regime != USUAL_REGIME else "",
        "" if is_measured else setting.evidence,
    )
    return ", ".join(filter(None, told))


def title_of(study: Study, ranks: int) -> str:
    """What the curves of one world are of."""
    return f"{setting_title(study.setting)}, {ranks} ranks"


def fit_row(model: Modelled) -> FitRow:
    """One algorithm's fit."""
    way, worlds = model.curve.way, ", ".join(map(str, model.curve.worlds))
    if isinstance(model.fit, Refusal):
        return FitRow((way.label, worlds, formula_text(model), *[""] * 6), f"no fit: {model.fit.reason}")
    found, worlds = model.fit, ", ".join(map(str, sorted({point.ranks for point in model.fitted})))
    figures = (
        f"{duration(found.alpha_s)} ± {half_width_percent(found.alpha_error)}" if found.alpha_error <= 1 else "not resolved",
        f"{si(found.bandwidth_bytes_s, 'B/s')} ± {half_width_percent(found.bandwidth_error)}",
        f"{found.r_squared:.3f}",
        percent(found.transfer_share),
    )
    told = held_out_words(model.held_out)
    return FitRow((way.label, worlds, formula_text(model), *figures, told, points_words(model)), "")


def points_words(model: Modelled) -> str:
    """``36``, or ``5 of 8: 3 contended left out; 2 not converged``: what a fit is made of, of how many."""
    fitted, left_out = model.fitted, left_out_words(model.curve.points)
    small = sum(point.counts for point in model.curve.points) - len(fitted)
    passed_over = [f"{left_out} left out"] if left_out else []
    passed_over += [f"{small} below {message_size(model.fit.from_bytes)}"] if isinstance(model.fit, Fit) and small else []
    total = f" of {len(model.curve.points)}: {', '.join(passed_over)}" if passed_over else ""
    return "; ".join([f"{len(fitted)}{total}", *_doubt_words(fitted)])


def _doubt_words(points: Sequence[Point]) -> list[str]:
    """How many of the points that were used are in doubt, and why: ``["7 not converged"]``."""
    counts = {COUNTED.get(doubt, doubt.value): sum(doubt in point.doubts for point in points) for doubt in Doubt}
    counts["without an interval"] = sum(not math.isfinite(point.high_s) for point in points)
    return [f"{count} {doubt}" for doubt, count in counts.items() if count]


def fit_lines(study: Study, shown: int) -> Iterator[str]:
    """Of which ranks the fits are, while the curves of ``shown`` ranks are drawn, and why an algorithm has none."""
    worlds = ", ".join(map(str, study.worlds))
    if len(study.worlds) > 1:
        yield f"Fits are of all ranks that were measured, {worlds}; the figure shows {shown}. A fit of fewer ranks is another."
    else:
        yield f"Fits are of {worlds} ranks alone: nothing says how far they hold for others."
    for model in study.models:
        if isinstance(model.fit, Refusal):
            ranks = ", ".join(map(str, model.curve.worlds))
            yield f"{model.curve.way.label}, {ranks} ranks: no fit: {model.fit.reason}"


def formula_text(model: Modelled) -> str:
    """The formula that was fitted, and whether its algorithm is only taken for the one that ran."""
    text = formula(model.curve.setting.op, model.curve.way.of_model) or ""
    least = model.fit.from_bytes if isinstance(model.fit, Fit) else 0
    taken = ", taken for a ring" if text and model.curve.way.is_assumed else ""
    return f"{text}{taken}{f', from {message_size(least)} on' if least else ''}"


def held_out_words(found: HeldOut | Refusal) -> str:
    """``8 ranks: off by 7.1 % in the median, +18.0 % at worst (8 B), -3.0 % at 64 MiB``."""
    if isinstance(found, Refusal):
        return f"none: {found.reason}"
    worst = max(found.errors, key=lambda error: abs(error.relative))
    largest = max(found.errors, key=lambda error: error.message_bytes)
    return (
        f"{found.ranks} ranks: off by {percent(found.median)} in the median, {signed(worst.relative)} at worst "
        f"({message_size(worst.message_bytes)}), {signed(largest.relative)} at {message_size(largest.message_bytes)}"
    )


def crossover_row(found: Crossover) -> tuple[str, ...]:
    """The cells under ``CROSSOVER_TITLES``."""
    between = f"{found.first.way.label} and {found.second.way.label}"
    measured = "; ".join(_crossing(each, found) for each in found.measured)
    measured = measured or "none: no two sizes show one faster and then the other"
    left_out = left_out_words(found.left_out)
    return (str(found.ranks), between, f"{measured}; left out: {left_out}" if left_out else measured, _predicted(found))


def beyond_words(study: Study) -> Iterator[str]:
    """A line for each fit: what it says of worlds beyond the measured ones, at the largest message."""
    at = study.largest_bytes
    for model in study.models:
        worlds = model.beyond(at)
        if worlds:
            told = (
                f"{each.ranks:,} ranks {duration(each.time_s)} ({duration(each.low_s)} to {duration(each.high_s)})"
                for each in worlds
            )
            doubts = ", ".join(_doubt_words(model.fitted))
            made_of = f" (of {counted(len(model.fitted), 'point')}, {doubts})" if doubts else ""
            yield f"{MODELLED}: {model.curve.way.label} of {message_size(at)}{made_of}: {', '.join(told)}"


def band_note() -> str:
    """How wide a band is."""
    return (
        f"The band of a world that was not measured is the held-out error or that of the fit, whichever is wider, "
        f"{100 * LEAST_ERROR:.0f} % at least, and as much again for every doubling beyond the largest measured world."
    )


def interval(point: Point) -> str:
    """The 95 % interval of a point's median, in words."""
    if not math.isfinite(point.high_s):
        return "no interval"
    return f"{duration(point.low_s)} to {duration(point.high_s)}"


def signed(relative: float) -> str:
    """``+12.0 %``; what rounds to nothing has no minus."""
    return f"{round(100 * relative, 1) + 0.0:+.1f} %"


def counted_points(study: Study) -> str:
    """``48 measured points of 3 algorithms``."""
    points = sum(len(each.curve.points) for each in study.models)
    return f"{counted(points, f'{study.setting.evidence} point')} of {counted(len(study.models), 'algorithm')}"


def modelled_label(way: Way) -> str:
    """The name of a curve that nobody measured."""
    return f"{way.label}, {MODELLED}"


def point_doubts(point: Point) -> str:
    """Why a point is in doubt: ``not converged, contended``; empty where it is not."""
    return ", ".join(point.doubts)


def _crossing(crossing: Crossing, found: Crossover) -> str:
    low, high = map(message_size, crossing.between)
    told = (Doubt.NOT_CONVERGED, Doubt.SHARED_CORES)
    doubt = "".join(f", {each}" for each in told if found.rests_on(crossing, each))
    where = f"above about {message_size(crossing.at_bytes)} ({low} to {high}{doubt})"
    return f"{crossing.faster_below} below, {crossing.faster_above} {where}"


def _predicted(found: Crossover) -> str:
    if not found.are_fitted:
        return "none: not both have a fit"
    if found.predicted is None:
        return f"none: by their fits one is faster at every size that both are of, {MODELLED}"
    told = found.predicted
    if not told.is_resolved:
        return f"none: their fits are not known well enough to tell which is faster where, {MODELLED}"
    low, high = map(message_size, told.between)
    at = message_size(told.at_bytes)
    doubts = [f"{Doubt.SHARED_CORES}"] if any(Doubt.SHARED_CORES in point.doubts for point in found.fitted) else []
    return ", ".join([f"{told.faster_below} below, {told.faster_above} above {at} ({low} to {high})", *doubts, MODELLED])
