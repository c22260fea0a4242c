"""Two runs side by side: which cases became slower or faster, by how much, with which certainty, and what else differed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import log, log1p
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.address import asked_for, choose_number, choose_one
from dashboard.figure import show
from dashboard.frames import SHARE, frame_with_downloads, text_table
from dashboard.opposite import NONE_ANYWHERE, NONE_SHARED, Pair, newest_sharing, opening_pair, opposite_of
from dashboard.sidebar import run_labels
from dashboard.stores import Run, Stores
from dashboard.text import plain, sentence
from dashboard.theme import theme
from suite.compare import words
from suite.compare.comparison import Compared, Comparison
from suite.compare.pairing import By
from suite.compare.runs import Place, compare_runs
from suite.compare.verdict import MIN_EFFECT, Verdict
from suite.errors import StoreUnusable, UsageError
from suite.measure.statistics import median
from suite.report.comparison_figure import comparison_figure
from suite.report.printable import clipped, printable
from suite.report.words import counted, timing
from suite.store.comparing import ComparisonReader

TITLE = "Compare"
ORDER = 60
MOST_RESULTS = 4_000  # of both runs: the samples of each are looked at
SEPARATOR = " in "
# A telephone shows the first forty characters of a chosen name: there the names are said in full.
_NARROW_ONLY = """<style>
@media (min-width: 641px) { .st-key-chosen-runs { display: none; } }
</style>"""
HOW = {"": "As fits the runs", By.CASE.value: "Exact case", By.WORKLOAD.value: "Workload and regime"}


def render_stores(stores: Stores) -> None:
    """Draw the page."""
    if len({run.entry.run for run in stores.runs}) < 2:  # a copy of it in another store is no second one
        st.info("There is one run only. Run something again, or start the dashboard with another store beside this one.")
        st.code("roofbench dashboard mine.db theirs.db", language=None)
        return
    a, b, by, min_effect = _choices(stores)
    if a.entry.run == b.entry.run:
        st.info("A and B are the same run: nothing would differ. Choose two.")
        return
    too_many = _too_many(stores, a, b)
    if too_many:
        st.info(f"These runs have {too_many:,} results, more than a page compares. On the command line:")
        st.code(f"roofbench compare {a.entry.run} {b.entry.run}", language=None)
        return
    try:
        found = _compared(stores, a, b, by, min_effect)
    except StoreUnusable:
        raise
    except UsageError as error:
        st.error(sentence(str(error)))
        return
    _draw(found)


def _choices(stores: Stores) -> tuple[Run, Run, By | None, float]:
    by_name = {_name(run): run for run in stores.runs}
    labels, names = run_labels(stores), list(by_name)
    asked = by_name.get(asked_for("b") or "")
    opening = Pair(asked, opposite_of(stores, asked)) if asked is not None else opening_pair(stores)
    before = opening.opposite

    def named(name: str) -> str:
        return labels[by_name[name]]

    # A line each: what tells two runs apart, their note, store or device, stands at the end of their names.
    first = _name(before.run)
    a = choose_one(
        "A, what was",
        "a",
        names,
        named,
        first,
        "The run that B is held against: at first the finished one before it that has the most cases in common with it",
        follows=True,
        is_always_told=True,
    )
    b = choose_one("B, what is", "b", names, named, default=_name(opening.b), is_always_told=True)
    with st.container(key="chosen-runs"):
        st.html(_NARROW_ONLY)
        for name, chosen in (("A", a), ("B", b)):
            st.caption(plain(f"{name}: {named(chosen)}"))
    if a == first and before.why_not:
        st.info(
            plain(f"{before.why_not} {_way_out(stores, labels)}" if before.why_not == NONE_SHARED else before.why_not, 1000)
        )
    with st.container(horizontal=True):
        how = choose_one("Paired by", "by", list(HOW), HOW.__getitem__, help="What two results must have in common")
        said = "Differences below it are none: verdicts are about more than this, or than two runs of the device differ anyway"
        effect = choose_number("Least difference (%)", "effect", "least-effect", 100 * MIN_EFFECT, 0.0, 50.0, 0.5, said)
    return by_name[a], by_name[b], By(how) if how else None, effect / 100


def _way_out(stores: Stores, labels: Mapping[Run, str]) -> str:
    """Which two runs do share a case, or what to do where none do."""
    pair = newest_sharing(stores)
    return f"The newest that share any: A {labels[pair.opposite.run]}; B {labels[pair.b]}." if pair else NONE_ANYWHERE


def _name(run: Run) -> str:
    return f"{run.store}{SEPARATOR}{run.entry.run}"


def _too_many(stores: Stores, *runs: Run) -> int:
    """How many results the runs have, where they are more than a page looks at; else 0."""
    total = sum(sum(stores.shelves[run.store].counts(run.entry.run).values()) for run in runs)
    return total if total > MOST_RESULTS else 0


def _compared(stores: Stores, a: Run, b: Run, by: By | None, min_effect: float) -> Comparison:
    """Kept in this session until either run or a choice changes: samples of hundreds of results take a second."""
    question = (a, b, by, min_effect)
    kept: dict[str, Any] = st.session_state.setdefault("compared", {})
    if kept.get("question") != question:
        of_a, of_b = (Place(ComparisonReader.open(stores.shelves[run.store].url), run.entry.run) for run in (a, b))
        kept.update(question=question, answer=compare_runs(of_a, of_b, by, min_effect))
    answer: Comparison = kept["answer"]
    return answer


def _draw(found: Comparison) -> None:
    st.caption(plain(words.joined_by(found)))
    if not found.cases:
        st.warning(plain(f"Nothing was compared: {nothing_compared(found)}. Choose another run as A or B."))
    with st.container(horizontal=True):
        for verdict, count in found.counts().items():
            st.metric(verdict.value, f"{count:,}")
        st.metric("not compared", f"{len(found.uncompared):,}")
    for each in clock_sentences(found):
        st.info(plain(each, 600))
    for each in words.meaning(found):
        st.caption(sentence(each, 600))
    figure = comparison_figure(found, theme())
    if figure is not None:
        alt = f"How much longer each case takes in B than in A: {words.summary(found)}"
        show(figure, "comparison", alt, "roofbench-compare")
        st.subheader("Cases")
        with_backend = found.has_several_backends
        frame = pd.DataFrame([_line(case, with_backend) for case in found.cases])
        frame_with_downloads(frame, "compared", "Every compared case with its verdict", _columns(), shares=("Delta",))
    _differing(found)
    _uncompared(found)


def nothing_compared(found: Comparison) -> str:
    """The reason that most of the results have which do have a counterpart; else that none has one."""
    reasons = Counter(each.why for each in found.uncompared if each.a and each.b)
    return reasons.most_common(1)[0][0] if reasons else "no result of A has a counterpart in B"


def clock_sentences(found: Comparison) -> Iterator[str]:
    """What the clock did to time where it did something: verdicts in cycles do not tell, and it is what a person waits.

    Of cases in cycles whose time says something else, those that became longer and those that became shorter.
    """
    moved = [case for case in found.cases if case.in_cycles and _by_clock(case)]
    for title, cases in (
        ("longer", [case for case in moved if case.time_ratio > 1]),
        ("shorter", [case for case in moved if case.time_ratio < 1]),
    ):
        if cases:
            times, clocks = median([case.time_ratio for case in cases]), median([case.clock_ratio or 1.0 for case in cases])
            share = f"{len(cases)} of {counted(sum(case.in_cycles for case in found.cases), 'case')} compared in cycles"
            yield (
                f"{share} took {title} in B by the clock: the median of their times is {words.change(times)}, with the clock "
                f"at {words.change(clocks)}. Their verdicts are about cycles, which no clock changes."
            )


def _by_clock(case: Compared) -> bool:
    return case.clock_ratio is not None and abs(log(case.clock_ratio)) > log1p(case.gap.delta)


def _line(case: Compared, with_backend: bool) -> dict[str, Any]:
    a, b = case.pair.a.row, case.pair.b.row
    known = case.is_known
    return {
        "Verdict": case.verdict.value,
        "Case": clipped(printable(words.title(case, with_backend)), 160),
        "B/A": case.ratio,
        "From": case.judgement.interval.low if known else None,
        "To": case.judgement.interval.high if known else None,
        "In": "cycles" if case.in_cycles else "time",
        "Time B/A": case.time_ratio,
        "Clock B/A": case.clock_ratio,
        "Time of A": timing(a),
        "Time of B": timing(b),
        "p differs": case.judgement.p_differs,
        "Delta": case.gap.delta,
        "Remarks": clipped(printable("; ".join(words.remarks(case))), 300),
    }


def _columns() -> Mapping[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "Verdict": text(pinned=True, help=f"{', '.join(each.value for each in Verdict)}: of B against A"),
        "B/A": number(format="%.4f", help="Above 1 takes longer in B"),
        "From": number(format="%.4f", help="Lower end of the 95 % interval, the spread from run to run included"),
        "To": number(format="%.4f", help="Upper end of it"),
        "In": text(help="Cycles where arithmetic bounds it and the device counts them, else time"),
        "Time B/A": number(format="%.4f", help="Of the medians, whatever the clock was"),
        "Clock B/A": number(format="%.4f", help="Of the clocks that the devices counted; none where one was not counted"),
        "p differs": number(format="%.2g", help="Corrected over all cases"),
        "Delta": number(format=SHARE, help="The least difference that a verdict is about"),
    }


def _differing(found: Comparison) -> None:
    st.subheader("What else differed")
    if not found.differing:
        st.caption("Nothing that was recorded.")
        return
    lines = [
        {"What": words.name(each)[:80], "A": each.a[:200], "B": each.b[:200], "In": each.where[:80]} for each in found.differing
    ]
    text_table(lines, "differing", "What else differed between the runs")


def _uncompared(found: Comparison) -> None:
    groups = list(words.uncompared(found))
    if not groups:
        return
    st.subheader("Not compared")
    lines = [
        {"Why": clipped(why, 200), "Results": len(titles), "Such as": clipped(printable(titles[0]), 120)}
        for why, titles in groups
    ]
    text_table(lines, "uncompared", "Results that were not compared")
