"""How close each device came to its roofline: the roofline, the best of each format, what formats cost, every result."""

from collections.abc import Sequence

import streamlit as st

from dashboard.ladder import precision_ladder
from dashboard.results import results_table
from dashboard.selection import Selection
from dashboard.text import plain
from suite.report.figures import CHART_CONFIG, roofline_figure
from suite.report.headlines import NO_RESULT, Headline, about, headlines, rate
from suite.report.palette import Theme
from suite.report.panels import Panel
from suite.report.words import UNKNOWN, case_detail, marks, percent, si

TITLE = "Overview"
ORDER = 0
_CARD_PX = 168  # two beside each other on a screen of 390 px
# A rate is longer than a share, and a label of a scaling than one of a format: Streamlit would cut both off.
_WHOLE_CARDS = """<style>
[data-testid="stMetricValue"], [data-testid="stMetricValue"] * {
  font-size: 1.7rem; line-height: 1.2; white-space: normal; overflow: visible; text-overflow: clip; }
[data-testid="stMetricLabel"] * { white-space: normal !important; overflow: visible; text-overflow: clip; }
</style>"""


def render(selection: Selection) -> None:
    """Draw the page."""
    if not selection.rows:
        st.info("No results match these choices. Clear a filter in the sidebar to see more.")
        return
    for index, panel in enumerate(selection.panels):
        if panel.rows:
            _device(panel, key=f"roofline-{index}-{panel.device.info.uid}")
    st.subheader("Results")
    results_table(selection.rows)


def _device(panel: Panel, key: str) -> None:
    st.subheader(plain(panel.device.info.name))
    st.caption(_sheet_line(panel))
    figure = roofline_figure(panel.rows, panel.roofs, _theme())
    figure.update_layout(paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)")
    st.plotly_chart(figure, theme=None, key=key, config=CHART_CONFIG)
    _best(headlines(panel.rows))
    precision_ladder(panel.rows, _theme(), key=f"ladder-{panel.device.info.uid}")


def _sheet_line(panel: Panel) -> str:
    if panel.spec is None:
        return plain(f"No spec sheet: {panel.device.match_reason or 'none was matched'}. Fractions of spec are not available.")
    kind = "Derived spec" if panel.spec.derived else "Spec sheet"
    bandwidth = panel.spec.bandwidth_bytes_s
    memory = f"{si(bandwidth, 'B/s')} memory bandwidth" if bandwidth else "memory bandwidth not declared"
    return plain(f"{kind}: {panel.spec.title}, {memory}")


def _best(best: Sequence[Headline]) -> None:
    if not best:
        return
    st.html(_WHOLE_CARDS)
    st.caption(plain(about(best)))
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
        st.caption(plain(", ".join((case_detail(row), f"{row.bound or 'unknown'} bound"))))
        st.caption(_breakable(plain(", ".join((row.regime, *marks(row))))))
        st.caption(plain(headline.chosen_as))
    if headline.second:
        st.caption(plain(headline.second))


def _breakable(text: str) -> str:
    """May wrap after each slash."""
    return text.replace("/", "/\u200b")


def _theme() -> Theme:
    return "dark" if st.context.theme.type == "dark" else "light"
