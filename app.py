"""The workbench in the browser: which pages there are, and the frame around them. Start it with `workbench app`."""

import streamlit as st

from workbench import plugins
from workbench.app import admission, frame
from workbench.app.components import page_history

# A picture of our own: Streamlit fetches its icons for the browser's tab from the network.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#0072B2" stroke-width="2.5">'
    '<path d="M3 12H9M9 12V5H20M9 12H20M9 12V19H20"/></svg>'
)

st.set_page_config("NMT workbench", ICON, layout="wide", initial_sidebar_state=360)
admission.admit()


def page(name: str, title: str, icon: str) -> st.Page:  # type: ignore[valid-type]
    """A page is a file; its name is its place in the URL, the first page's is /."""
    return st.Page(frame.page_file(name), title=title, icon=f":material/{icon}:", default=name == "start")


def plugged() -> dict[str, list[st.Page]]:  # type: ignore[valid-type]
    """The pages of other packages, in a section of their own."""
    pages = [
        st.Page(other.show, title=other.title, url_path=other.name, icon=":material/extension:")
        for other in plugins.pages()
    ]
    return {"Plug-ins": pages} if pages else {}


chosen = st.navigation({
    "": [page("start", "Start", "home")],
    "Data": [page("runs", "Runs", "folder_open"), page("testsets", "Test sets", "rule")],
    "Compare": [
        page("scores", "Scores", "leaderboard"),
        page("lengths", "Buckets", "bar_chart"),
        page("words", "Words", "match_word"),
        page("sentences", "Sentences", "table_rows"),
        page("documents", "Documents", "article"),
        page("adequacy", "Adequacy", "fact_check"),
        page("contrast", "Contrast", "compare_arrows"),
        page("rating", "Human rating", "how_to_vote"),
    ],
    "Inside one sentence": [
        page("translate", "Translate", "translate"),
        page("attention", "Attention", "grid_on"),
        page("tokens", "Tokens", "segment"),
        page("attribution", "Attribution", "bar_chart_4_bars"),
        page("beam_trees", "Beam trees", "account_tree"),
        page("beam_sizes", "Beam sizes", "stacked_line_chart"),
        page("rescoring", "Rescoring", "tune"),
        page("what_if", "What-if", "call_split"),
        page("future_cost", "Future cost", "query_stats"),
        page("routing", "Routing", "hub"),
        page("past_future", "Past and future", "swap_horiz"),
        page("content_states", "Content states", "stacks"),
        page("context", "Context", "history"),
    ],
    "Training": [page("curves", "Curves", "show_chart")],
    "Figures": [page("gallery", "Paper gallery", "auto_stories"), page("basket", "Basket", "shopping_basket")],
    **plugged(),
    "Work": [page("jobs", "Jobs", "play_circle"), page("help", "Help", "help")],
}, position="top")  # fmt: skip
with st.sidebar:
    frame.choose(blind=chosen.url_path == "rating" and frame.rates_blind())
page_history.restore(chosen.url_path)
with frame.sentences_for_errors():
    chosen.run()
