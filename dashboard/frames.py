"""Tables with their downloads: a small one, everything of which is on the page, and the buttons of any."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.downloads import lines_as_csv, lines_as_parquet
from dashboard.text import plain

_CHARACTER_PX, _EDGES_PX = 6.7, 20
MOST_SAID, WRAPPED_PX = 1_000, 80  # characters of a cell that wraps, and a column of such at least in the mean
TEXT_PX = 640  # at most, of a column of text: beyond it the end is cut
PINNED_PX = 250  # at most, of one that does not scroll away: a telephone has 390 across
SHARE = "%.1f %%"  # of what ``in_percent`` has written, as ``suite.report.words.percent`` writes a ratio
TIMES = "%.4f"  # of how many times as fast something is: with three digits 1.002 would be 1, and not tell who is faster


def in_percent(frame: pd.DataFrame, shares: Sequence[str]) -> pd.DataFrame:
    """The table with these columns of ratios in percent, to be shown as ``SHARE``."""
    return frame.assign(**{name: pd.to_numeric(frame[name]) * 100 for name in shares if name in frame})


def text_px(texts: Iterable[str], most: int) -> int:
    """How wide a column is that shows the longest of these texts whole."""
    return min(most, round(_EDGES_PX + _CHARACTER_PX * max(map(len, texts), default=0)))


def text_characters(width_px: int) -> int:
    """How many characters a column of this width shows."""
    return int((width_px - _EDGES_PX) / _CHARACTER_PX)


def wide_enough(frame: pd.DataFrame, columns: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """``columns`` with a width for each column of text, and four digits for each of numbers that has no format.

    Left alone, Streamlit makes some narrower than what they hold, and writes out every zero of a small number.
    """
    found = dict(columns or {})
    for name in frame.columns:
        texts = [each for each in frame[name] if isinstance(each, str)]
        known = found.get(name) or {}
        if texts and known.get("width") is None:
            column = known or st.column_config.TextColumn()
            width = text_px([str(name), *texts], PINNED_PX if column.get("pinned") else TEXT_PX)
            found[name] = {**column, "width": width}
        elif name not in found and _has_fractions(frame[name]):
            found[name] = st.column_config.NumberColumn(format="%.4g")
    return found


def _has_fractions(values: Any) -> bool:
    return any(isinstance(each, float) and not each.is_integer() and each == each for each in values)


def small_frame(lines: Any, alt: str, columns: Mapping[str, Any] | None = None) -> None:
    """A table of few lines, without downloads."""
    frame = pd.DataFrame(lines)
    shown: dict[str, Any] = {"hide_index": True, "width": "stretch", "placeholder": "–", "alt": alt}
    st.dataframe(frame, column_config=wide_enough(frame, columns), **shown)


def text_table(lines: Any, key: str, alt: str) -> None:
    """A table of few lines whose cells are sentences: they wrap, so that all of them are on the page.

    A column without a word is left out.  On a telephone many columns scroll sideways, wide enough to be read.
    """
    frame = pd.DataFrame(lines).map(_in_words)
    said = [name for name in frame.columns if any(frame[name])]
    shown = frame[said].map(lambda text: plain(text, MOST_SAID) if text else "–").rename(columns=plain)
    with st.container(key=key):
        st.html(f"<style>.st-key-{key} table {{ min-width: {WRAPPED_PX * len(said)}px; }}</style>")
        st.table(shown, hide_index=True, alt=alt)


def _in_words(value: Any) -> str:
    return "yes" if value is True else "no" if value is False else "" if pd.isna(value) else str(value)


def frame_with_downloads(
    frame: pd.DataFrame, key: str, alt: str, columns: Mapping[str, Any] | None = None, shares: Sequence[str] = ()
) -> None:
    """Draw a table that sorts and searches by itself, and offer it as CSV and Parquet; ``shares`` are ratios in these."""
    shown: dict[str, Any] = {"hide_index": True, "width": "stretch", "placeholder": "–", "alt": alt}
    st.dataframe(in_percent(frame, shares), column_config=wide_enough(frame, columns), key=key, **shown)
    download_buttons(
        lambda: lines_as_csv(records_of(frame)), lambda: lines_as_parquet(records_of(frame)), f"roofbench-{key}", key
    )


def download_buttons(
    csv: Callable[[], bytes], parquet: Callable[[], bytes], name: str, key: str, help: str | None = None
) -> None:
    """A table as files of this name; they are made when somebody asks for them."""
    kinds = {"CSV": ("csv", "text/csv", csv), "Parquet": ("parquet", "application/vnd.apache.parquet", parquet)}
    with st.container(horizontal=True):
        for title, (ending, mime, make) in kinds.items():
            file = f"{name}.{ending}"
            st.download_button(f"Download as {title}", make, file, mime, key=f"{key}-{title}", on_click="ignore", help=help)


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Its rows by the names of columns, ``None`` where a cell is empty."""
    whole = frame.astype(object)
    return [{str(name): value for name, value in line.items()} for line in whole.where(whole.notna(), None).to_dict("records")]
