"""The dashboard's script: ``streamlit run dashboard/app.py -- STORE...``."""

from collections.abc import Callable, Sequence

import streamlit as st

from dashboard import gate
from dashboard.address import arrive
from dashboard.empty import nothing_yet
from dashboard.live import watch
from dashboard.sidebar import image_format, select
from dashboard.stores import DEFAULT_STORE, Stores, open_stores, store_arguments
from dashboard.text import sentence
from dashboard.theme import theme
from dashboard.views import View, views
from suite.errors import StoreUnusable
from suite.report.palette import INKS
from suite.report.words import counted

COMPILED = "targets"  # the page of what was compiled, which needs no run
# Streamlit's own captions are too pale for the contrast that WCAG asks of text, and of a chosen name it shows the beginning,
# in which runs and devices are alike.  Its margins of 80 pixels on both sides are, beside the sidebar of a laptop, the figures
# of a table.  The colour that it gives to what is pointed at is that of chips under white words, too dark for words on a dark
# page.  On a telephone a choice has a line to itself: half of one cuts its words off.
_READABLE = """<style>
[data-testid=stCaptionContainer] {{ color: {muted}; opacity: 1; }}
button:is([data-testid=stBaseButton-secondary], [data-testid=stBaseButton-tertiary]):is(:hover, :focus, :active) {{
    color: {text}; text-decoration: underline;
}}
[data-testid=stMultiSelectTagsContainer] [data-tag] {{ height: auto; max-width: 100%; padding-block: 2px; }}
[data-testid=stMultiSelectTagsContainer] [data-tag] > span {{ white-space: normal; overflow-wrap: anywhere; max-width: none; }}
@media (min-width: 768px) {{ [data-testid=stMainBlockContainer] {{ padding-inline: 2rem; }} }}
@media (max-width: 640px) {{ [data-testid=stElementContainer]:has(> [data-testid=stSelectbox]) {{ flex: 1 0 100%; }} }}
</style>"""


def main() -> None:
    """Open the stores, then show the page that the address names."""
    st.set_page_config(page_title="roofbench", layout="wide")
    if not gate.is_open():
        return
    urls = store_arguments()
    stores = open_stores(urls)
    for message in stores.failures.values():
        st.error("A store could not be opened.")
        st.code(message, language=None, wrap_lines=True)
    if not stores.runs and not _has_compiled(stores):
        _nothing(stores, urls)
        return
    # Without runs there is nothing that filters could choose from.
    by_name = {view.name: view for view in views() if stores.runs or view.name == COMPILED}
    pages = [_page(view, stores, urls) for view in by_name.values()]
    st.navigation(pages, position="sidebar", expanded=True).run()


def _has_compiled(stores: Stores) -> bool:
    try:
        return any(shelf.compiled() for shelf in stores.shelves)
    except StoreUnusable:  # its page says so, where there are runs to show
        return False


def _nothing(stores: Stores, urls: Sequence[str]) -> None:
    nothing_yet(bool(stores.failures), DEFAULT_STORE)
    if stores.shelves:
        watch(urls, stores, 0)


def _page(view: View, stores: Stores, urls: Sequence[str]) -> "st.Page":
    return st.Page(
        _script(view, stores, urls), title=view.title, url_path=view.name, default=view.order == 0 or not stores.runs
    )


def _script(view: View, stores: Stores, urls: Sequence[str]) -> Callable[[], None]:
    def draw() -> None:
        arrive(view.name)
        st.html(_READABLE.format(muted=INKS[theme()].muted, text=INKS[theme()].text))
        st.header(view.title)
        missing = 0
        try:
            if view.has_filters:
                selection = select(stores, view.job, theme())
                missing = selection.missing
                image_format()
                _say_what_is_missing(missing, selection.problems)
                if selection.groups or not selection.problems:  # of what could not be read nobody says that it is not there
                    view.render(selection)
            else:
                image_format()
                view.render_stores(stores)
        except StoreUnusable as error:  # damage shows only when the rows are read
            st.error(sentence(str(error)))
        watch(urls, stores, missing)

    return draw


def _say_what_is_missing(missing: int, problems: Sequence[str]) -> None:
    if missing:
        st.caption(f"Still reading {counted(missing, 'older run')}: what is shown is of the newest ones.")
    for problem in problems:
        st.error(sentence(problem))


main()
