"""The dashboard's script: ``streamlit run dashboard/app.py -- STORE...``."""

from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.data import DEFAULT_STORE, Run, load_stores, store_arguments
from dashboard.selection import select
from dashboard.text import plain
from dashboard.views import View, views
from suite.errors import StoreUnusable

FIRST_STEP = "roofbench run experiment=quick"


def main() -> None:
    """Open the stores, then show the page that the address names."""
    st.set_page_config(page_title="roofbench", layout="wide")
    stores = load_stores(store_arguments())
    for message in stores.failures.values():
        st.error("A store could not be opened.")
        st.code(message, language=None, wrap_lines=True)
    if not stores.runs:
        _nothing_yet(any(stores.failures))
        return
    pages = [_page(view, stores.runs) for view in views()]
    st.navigation(pages, position="sidebar" if len(pages) > 1 else "hidden").run()


def _page(view: View, runs: Sequence[Run]) -> "st.Page":
    return st.Page(_script(view, runs), title=view.title, url_path=view.name, default=view.order == 0)


def _script(view: View, runs: Sequence[Run]) -> Callable[[], None]:
    def draw() -> None:
        st.header(view.title)
        try:
            view.render(select(runs))
        except StoreUnusable as error:  # damage shows only when the rows are read
            st.error(plain(str(error)))

    return draw


def _nothing_yet(failed: bool) -> None:
    st.title("roofbench")
    if failed:
        st.write("Start the dashboard with another store: `roofbench dashboard PATH`")
        return
    st.info("No results yet.")
    st.write(f"Measure this machine, then reload this page; results go to {DEFAULT_STORE} unless you say otherwise:")
    st.code(FIRST_STEP, language="sh")


main()
