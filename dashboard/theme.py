"""Light or dark, as the page is."""

import streamlit as st

from suite.report.palette import Theme


def theme() -> Theme:
    """The theme that the person has chosen, or their system."""
    return "dark" if st.context.theme.type == "dark" else "light"
