"""What a person chose, kept in the page's address and for the session: a copied link shows the same view, on every page.

A value that is no option where it is asked for is not applied there and not forgotten: another page may have it.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

MOST_VALUES, MOST_CHARACTERS = 50, 400  # of one name in an address, which anybody may have made
MOST_DIGITS = 9
Number = TypeVar("Number", int, float)


def arrive(page: str) -> None:
    """Say which page is being drawn, before anything is chosen on it: turning to a page empties the address."""
    st.session_state["turned"] = st.session_state.get("page") not in (None, page)
    st.session_state["page"] = page


def is_turned() -> bool:
    """Whether this is the first time that the page is drawn after another one."""
    return bool(st.session_state.get("turned", False))


def choose(
    label: str,
    name: str,
    options: Sequence[str],
    show: Callable[[str], str] = str,
    default: Sequence[str] = (),
    empty: str = "All",
    most: int | None = None,
    help: str | None = None,
) -> list[str]:
    """A multiple choice whose state is the address's parameter ``name``; ``empty`` says what choosing nothing means."""
    before = given(name, default)
    if name in st.session_state and not is_elsewhere(name):
        before = [*st.session_state[name], *_of("idle").get(name, [])]
    st.session_state[name] = [value for value in before if value in options][:most]
    chosen: list[str] = st.multiselect(
        label, options, key=name, format_func=show, placeholder=empty, max_selections=most, help=help
    )
    _of("idle")[name] = [value for value in before if value not in options]
    put(name, [*chosen, *_of("idle")[name]], default)
    return chosen


def choose_one(
    label: str,
    name: str,
    options: Sequence[str],
    show: Callable[[str], str] = str,
    default: str | None = None,
    help: str | None = None,
    follows: bool = False,
    is_always_told: bool = False,
) -> str:
    """One of ``options``, which are not empty, kept in the address like ``choose``; at first ``default``, or the first.

    One that ``follows`` is at its default, whatever that comes to be, until a person or a link asks for something.
    One that ``is_always_told`` stands in the address at its default too: tomorrow's newest run is another one.
    """
    first = default if default is not None and default in options else options[0]
    asked = asked_for(name)
    before = asked if asked is not None else first if follows else given(name, [first])[0]
    _of("asked")[name] = asked
    st.session_state[name] = before if before in options else first
    chosen: str = st.selectbox(label, options, key=name, format_func=show, help=help)
    _of("shown")[name] = chosen
    kept = before if before not in options and chosen == first else chosen
    put(name, [kept], [] if is_always_told else [first])
    return chosen


def choose_number(
    label: str, name: str, key: str, first: Number, least: Number, most: Number, step: Number, help: str
) -> Number:
    """A number from ``least`` to ``most``, kept in the address like ``choose``; at first, and for what is none, ``first``."""
    if key not in st.session_state or is_elsewhere(name):
        text = next(iter(given(name)), "")
        is_one = text.replace(".", "", 1).isdecimal() and len(text) < MOST_DIGITS
        st.session_state[key] = type(first)(float(text)) if is_one else first
    st.session_state[key] = min(max(least, st.session_state[key]), most)
    chosen: Number = st.number_input(label, least, most, step=step, key=key, help=help)
    put(name, [f"{chosen:g}" if isinstance(chosen, float) else str(chosen)], [f"{first:g}"])
    return chosen


def asked_for(name: str) -> str | None:
    """What a person chose of a single choice, here or on another page, or a link asks for; ``None`` where it is at its default.

    An option may be empty, such as the mask of a case that has none.
    """
    shown = _of("shown").get(name)
    if is_elsewhere(name) or name not in _of("asked"):
        return next(iter(given(name)), None)
    touched: str | None = st.session_state.get(name, shown)
    asked: str | None = _of("asked")[name]
    return touched if touched != shown else asked


def given(name: str, default: Sequence[str] = ()) -> list[str]:
    """The values of a parameter: by an address that was made elsewhere, else as they were last in this session."""
    kept = _of("kept")
    if name not in kept or is_elsewhere(name):
        kept[name] = _address(name) or list(default)
    return list(kept[name]) or list(default)


def put(name: str, values: Sequence[str], default: Sequence[str] = ()) -> None:
    """Keep the values of a parameter, and write them into the address where they are not its ``default``."""
    _of("kept")[name] = list(values)
    shown = [] if list(values) == list(default) else list(values)
    _of("written")[name] = shown
    if shown == st.query_params.get_all(name):
        return
    if shown:
        st.query_params[name] = shown
    else:
        st.query_params.pop(name, None)


def is_elsewhere(name: str) -> bool:
    """Whether the address now says what this session did not write: a link, or a step back."""
    address = _address(name)
    is_emptied = not address and is_turned()
    return address != _of("written").get(name, []) and not is_emptied


def _address(name: str) -> list[str]:
    values = list(dict.fromkeys(st.query_params.get_all(name)))[:MOST_VALUES]
    return [value[:MOST_CHARACTERS] for value in values]


def _of(what: str) -> dict[str, Any]:
    found: dict[str, Any] = st.session_state.setdefault(what, {})
    return found
