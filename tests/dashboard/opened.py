"""The dashboard over real stores, driven without a browser."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard import stores
from tests.patience import PATIENCE_S

APP = Path(stores.__file__).with_name("app.py")
_HASHES: dict[str, str] = {}


def opened(monkeypatch: Any, *urls: str | Path, page: str = "", **address: str | Sequence[str]) -> AppTest:
    """Start over ``urls`` and turn to a page; ``address`` are parameters of a link."""
    st.cache_resource.clear()
    monkeypatch.setattr(stores, "store_arguments", lambda: [str(url) for url in urls])
    app = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
    for name, values in address.items():
        app.query_params[name] = values if isinstance(values, str) else list(values)
    app._page_hash = hash_of(page) if page else ""
    return app.run()


def turn_to(app: AppTest, page: str) -> AppTest:
    """Go to another page of the same session, as its link does: the address is emptied."""
    app._page_hash = hash_of(page)
    app.query_params.clear()
    return app.run()


def hash_of(page: str) -> str:
    """What Streamlit knows a page by, once its script has run: its own tests turn to pages that are files only."""
    if page not in _HASHES:  # a store without runs, or without what was compiled, has fewer pages
        first = AppTest.from_file(str(APP), default_timeout=PATIENCE_S).run()
        pages = {str(info.get("url_pathname", "")): name for name, info in first._registered_pages.items()}
        if len(pages) == 1:
            return ""  # it is where the dashboard opens, and has no name of its own
        _HASHES.update(pages)
    return _HASHES[page]


def addressed(app: AppTest, name: str) -> list[str]:
    """The values of one parameter of the page's address."""
    value = app.query_params.get(name, [])
    return [value] if isinstance(value, str) else list(value)


def table(app: AppTest) -> Any:
    """The results, which stand last on most pages."""
    return app.dataframe[-1].value


def charts(app: AppTest) -> list[Any]:
    return list(app.get("plotly_chart"))


def words(app: AppTest) -> str:
    """Everything said on the page, without the backslashes that keep it text."""
    kinds = ("markdown", "caption", "info", "warning", "error", "code", "header", "subheader", "title")
    shown = [element.value for kind in kinds for element in getattr(app, kind)]
    return "\n".join(shown).replace("\u200b", "").replace("\\", "")


def labels(app: AppTest) -> Mapping[str, list[str]]:
    """The options of every choice, by its label."""
    return {each.label: list(each.options) for each in (*app.multiselect, *app.selectbox)}
