"""Router of the app: its pages, and the frame around them. `workbench.app.server` serves it."""

import streamlit as st

from workbench.app import admission, availability, frame, plugins, sidebar
from workbench.app.components import page_history
from workbench.app.pages import FORMER, LAST, MENU, PAGES, Page
from workbench.store.listing import listing
from workbench.store.runs import runs_folder

# An inline icon: Streamlit would fetch its own icons for the browser's tab from the network.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#0072B2" stroke-width="2.5">'
    '<path d="M3 12H9M9 12V5H20M9 12H20M9 12V19H20"/></svg>'
)

st.set_page_config("NMT workbench", ICON, layout="wide", initial_sidebar_state=360)
admission.admit()


def listed(menu: dict[str, tuple[Page, ...]]) -> dict[str, list[st.Page]]:  # type: ignore[valid-type]
    """Sections of the app's own pages; the first page has the path /."""
    return {
        section: [
            st.Page(
                page.file,
                title=menu_titles[page.name],
                url_path="" if page.name == "start" else page.name,
                icon=f":material/{page.icon}:",
                default=page.name == "start",
            )
            for page in pages
        ]
        for section, pages in menu.items()
    }


def plugged() -> dict[str, list[st.Page]]:  # type: ignore[valid-type]
    """The pages of other packages, in a section of their own."""
    pages = [
        st.Page(other.show, title=other.title, url_path=other.name, icon=":material/extension:")
        for other in plugins.pages()
    ]
    return {"Plug-ins": pages} if pages else {}


def former() -> list[st.Page]:  # type: ignore[valid-type]
    """The paths of former pages, in no menu."""
    return [
        st.Page(forward_to_successor, title=PAGES[now].title, url_path=name, visibility="hidden")
        for name, now in FORMER.items()
    ]


def forward_to_successor() -> None:
    """Open the page that a former one was joined with, at the query of the link."""
    query = {key: st.query_params.get_all(key) for key in st.query_params}
    st.switch_page(PAGES[FORMER[chosen.url_path]].file, query_params=query)


blind = (st.context.url or "").endswith("/rating") and sidebar.rates_blind()  # raters see no name of a run
menu_titles = (
    {page.name: page.title for page in PAGES.values()}
    if blind
    else availability.titles(sidebar.requested_runs(), listing(runs_folder()).runs)
)
menu = listed(MENU)
menu[""] += former()
chosen = st.navigation({**menu, **plugged(), **listed(LAST)}, position="top")
if chosen.url_path in FORMER:  # before the sidebar is bound to the query
    chosen.run()
st.html(availability.style(menu_titles))
sets_order = chosen.url_path == "sentences"
with st.sidebar:
    selection = sidebar.choose(blind=chosen.url_path == "rating" and sidebar.rates_blind())
    if not sets_order:
        sidebar.draw_steps(selection)
page_history.restore(chosen.url_path)
with frame.errors_as_messages():
    try:
        chosen.run()
    finally:
        # The page sets the order that the steps follow, so they are drawn after it. A rerun would lose a click on a
        # link that comes while Streamlit prepares it, since it sets the session's page back.
        if sets_order:
            with st.sidebar:
                sidebar.draw_steps(selection)
