"""What a person chose, kept in the page's address: a copied link shows the same view."""

from collections.abc import Callable, Sequence

import streamlit as st


def choose(
    label: str,
    name: str,
    options: Sequence[str],
    show: Callable[[str], str] = str,
    default: Sequence[str] = (),
    empty: str = "All",
) -> list[str]:
    """A multiple choice whose state is the address's parameter ``name``; ``empty`` says what choosing nothing means.

    Values in the address that are no option are dropped: links outlive the stores they were made for.
    """
    before = st.session_state[name] if name in st.session_state else st.query_params.get_all(name) or default
    st.session_state[name] = [value for value in before if value in options]
    chosen: list[str] = st.multiselect(label, options, key=name, format_func=show, placeholder=empty)
    _remember(name, chosen)
    return chosen


def choose_one(label: str, name: str, options: Sequence[str], show: Callable[[str], str] = str) -> str:
    """One of ``options``, which are not empty, kept in the address like ``choose``; the first until another is chosen."""
    before = st.session_state.get(name) or next(iter(st.query_params.get_all(name)), None)
    st.session_state[name] = before if before in options else options[0]
    chosen: str = st.selectbox(label, options, key=name, format_func=show)
    _remember(name, [] if chosen == options[0] else [chosen])
    return chosen


def _remember(name: str, values: list[str]) -> None:
    if values == st.query_params.get_all(name):
        return
    if values:
        st.query_params[name] = values
    else:
        del st.query_params[name]
