"""The best of each format of one device, a card each."""

from collections.abc import Sequence

import streamlit as st

from dashboard.text import plain
from suite.report.headlines import NO_RESULT, Headline, about, rate
from suite.report.words import UNKNOWN, case_detail, marks, percent

_CARD_PX = 168  # two beside each other on a screen of 390 px
# A rate is longer than a share, and a label of a scaling than one of a format: Streamlit would cut both off.
_WHOLE_CARDS = """<style>
[data-testid="stMetricValue"], [data-testid="stMetricValue"] * {
  font-size: 1.7rem; line-height: 1.2; white-space: normal; overflow: visible; text-overflow: clip; }
[data-testid="stMetricLabel"] * { white-space: normal !important; overflow: visible; text-overflow: clip; }
</style>"""


def cards(best: Sequence[Headline], several_runs: bool = False) -> None:
    """Draw them; nothing where there are none."""
    if not best:
        return
    st.html(_WHOLE_CARDS)
    st.caption(plain(about(best, several_runs), 1000))
    with st.container(horizontal=True):
        for headline in best:
            with st.container(border=True, width=_CARD_PX):
                _card(headline)


def _card(headline: Headline) -> None:
    row = headline.best
    if row is None:
        st.metric(plain(headline.format), UNKNOWN, NO_RESULT, delta_color="off", delta_arrow="off")
    else:
        known = row.fractions.spec is not None
        share, second = (percent(row.fractions.spec), rate(row)) if known else (rate(row), "of spec n/a")
        st.metric(plain(headline.format), share, second, delta_color="off", delta_arrow="off")
        st.caption(plain(", ".join(filter(None, (case_detail(row), f"{row.bound or 'unknown'} bound", headline.source)))))
        st.caption(_breakable(plain(", ".join((row.regime, *marks(row))))))
        st.caption(plain(headline.chosen_as))
    if headline.second:
        st.caption(plain(headline.second))


def _breakable(text: str) -> str:
    """May wrap after each slash."""
    return text.replace("/", "/\u200b")
