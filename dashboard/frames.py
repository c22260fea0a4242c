"""Tables with their downloads: a small one, everything of which is on the page, and the buttons of any."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.downloads import lines_as_csv, lines_as_parquet

SHARE = "%.1f %%"  # of what ``in_percent`` has written, as ``suite.report.words.percent`` writes a ratio


def in_percent(frame: pd.DataFrame, shares: Sequence[str]) -> pd.DataFrame:
    """The table with these columns of ratios in percent, to be shown as ``SHARE``."""
    return frame.assign(**{name: pd.to_numeric(frame[name]) * 100 for name in shares if name in frame})


def frame_with_downloads(
    frame: pd.DataFrame, key: str, alt: str, columns: Mapping[str, Any] | None = None, shares: Sequence[str] = ()
) -> None:
    """Draw a table that sorts and searches by itself, and offer it as CSV and Parquet; ``shares`` are ratios in these."""
    shown: dict[str, Any] = {"hide_index": True, "width": "stretch", "placeholder": "–", "alt": alt}
    st.dataframe(in_percent(frame, shares), column_config=dict(columns or {}), key=key, **shown)
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
