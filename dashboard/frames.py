"""A small table with its downloads: everything of it is on the page."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st


def frame_with_downloads(frame: pd.DataFrame, key: str, alt: str, columns: Mapping[str, Any] | None = None) -> None:
    """Draw a table that sorts and searches by itself, and offer it as CSV and Parquet."""
    shown: dict[str, Any] = {"hide_index": True, "width": "stretch", "placeholder": "–", "alt": alt}
    st.dataframe(frame, column_config=dict(columns or {}), key=key, **shown)
    with st.container(horizontal=True):
        kinds = {"CSV": ("csv", "text/csv"), "Parquet": ("parquet", "application/vnd.apache.parquet")}
        for name, (ending, mime) in kinds.items():
            file = f"roofbench-{key}.{ending}"
            make = (lambda: frame.to_csv(index=False).encode()) if name == "CSV" else (lambda: frame.to_parquet(index=False))
            st.download_button(f"Download as {name}", make, file, mime, key=f"{key}-{name}", on_click="ignore")
