"""The sidebar: selectors of runs, test set, baseline and sentence.

Streamlit binds them to the query string; `url_state` validates a query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.errors import StreamlitAPIException

from workbench.app import sentence_order
from workbench.app import url_state as views
from workbench.app.components import page_width, stepper
from workbench.app.frame import Frame, escape_markdown, keep, page_file
from workbench.app.url_state import ViewState
from workbench.evaluation.sentence_rankings import RANKINGS, default_sentence, next_in_ranking
from workbench.figures import run_styles
from workbench.figures.request import looks
from workbench.plotting import theme
from workbench.store.listing import Known, listing
from workbench.store.runs import Run, runs_folder

NAMING_RUNS = ("New study", "Results")  # sections of the page Human rating that name runs; all others are for raters
PREVIOUS_KEY, NEXT_KEY = "p", "n"
_NO_SENTENCE = "_no_sentence"
# Streamlit leaves 5rem on either side of any page, lets a row of choices scroll under its edge, and draws captions of
# 13 pixels at an opacity of 0.6, a contrast of 4.3.
_STYLE = """
[data-testid="stMainBlockContainer"] {padding-left: clamp(1rem, 3vw, 5rem); padding-right: clamp(1rem, 3vw, 5rem)}
[data-testid="stButtonGroup"] > div:has(> [data-variant]) {flex-wrap: wrap; mask-image: none}
[data-testid="stButtonGroup"] [data-variant] {max-width: 100%}
[data-testid="stSidebar"] div:has(> [data-testid="stMultiSelectTagsContainer"]) {max-height: none}
[data-testid="stCaptionContainer"] {opacity: 0.8; font-size: 14px}
[data-testid="stCaptionContainer"] p {font-size: 14px}
"""


def choose(blind: bool = False) -> Frame:
    """Draw the sidebar and keep its selection for the page. blind: show no run, neither there nor in the URL."""
    root = runs_folder()
    runs_below = listing(root)
    view = _hidden() if blind else _chosen(root, runs_below.known)
    run_styles.keep(root, [run.name for run in runs_below.known])
    frame = Frame(root, runs_below.runs, runs_below.known, view)
    st.html(f"<style>{_STYLE}{_chip_rules(frame.chosen)}</style>")
    page_width.measure()
    return keep(frame)


def _chip_rules(runs: Sequence[Run]) -> str:
    """A rule of CSS for the chip of each run, in the color that it has in figures."""
    dark = st.context.theme.type == "dark"
    rules = []
    for name, style in looks(runs).items():
        color = theme.on_page(style.colour, dark)
        quoted = re.sub(r"[^\w/.-]", lambda sign: f"\\{ord(sign[0]):x} ", name)
        chip = f'[data-testid="stSidebar"] [data-tag][aria-label="{quoted}"]'
        rules.append(f"{chip} {{background-color: {color}; color: {theme.text_on(color)}}}")
    return "\n".join(rules)


def requested_runs() -> Sequence[str]:
    """The names of the runs that `choose` will select, as far as they exist."""
    if "runs" in st.session_state:
        return st.session_state["runs"]
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    return views.from_query(query, listing(runs_folder()).known)[0].runs


def rates_blind() -> bool:
    """Return True if the page Human rating shows translations to a rater, who must not see names of runs."""
    from workbench.store.rating_studies import studies  # which takes pandas

    part = st.session_state.get("rating") or st.query_params.get("rating")
    return part not in NAMING_RUNS and bool(studies(runs_folder()))


def _hidden() -> ViewState:
    st.caption("What is chosen here is hidden while translations are rated blind.")
    for key in ("runs", "baseline"):
        with suppress(KeyError, StreamlitAPIException):  # of a box drawn before Streamlit removes it by itself
            del st.query_params[key]
    return ViewState()


def _chosen(root: Path, usable: Sequence[Known]) -> ViewState:
    """The selection in the sidebar, below a warning for each invalid choice in the URL."""
    _, warnings = views.from_query({name: st.query_params.get_all(name) for name in st.query_params}, usable)
    names = [run.name for run in usable]
    gone = [name for name in st.session_state.get("runs", ()) if name not in names]
    warnings += [f"{name} is no longer below {root}: it was moved or removed." for name in gone]
    for warning in warnings:
        st.warning(escape_markdown(warning))
    return _selectors(list(usable)) if usable else ViewState()


def whole_number_bind(name: str) -> Literal["query-params"] | None:
    """The binding of a box for whole numbers to the URL; None for an infinite number, with which Streamlit fails."""
    return None if any(map(views.endless, st.query_params.get_all(name))) else "query-params"


def _selectors(usable: list[Known]) -> ViewState:
    names = [run.name for run in usable]
    _keep("runs", lambda chosen: [name for name in chosen if name in names])
    runs = st.multiselect(
        "Runs",
        names,
        default=views.default_runs(usable),
        max_selections=views.MOST_RUNS,
        help=f"At most {views.MOST_RUNS}. Unless told, finished runs of the first experiment.",
        key="runs",
        bind="query-params",
    )
    if unfinished := [run.name for run in usable if run.name in runs and not run.finished]:
        st.caption(escape_markdown(f"Training has not ended: {', '.join(unfinished)}."))
    tests = views.tests(runs, usable)
    if not tests:
        first = next(iter(views.baselines(runs, "", usable)), "")
        return ViewState(views.baseline_first(runs, first), baseline=first)
    _keep("test", lambda test: test if test in tests else tests[0])
    test = st.selectbox("Test set", tests, key="test", bind="query-params")
    options = views.baselines(runs, test, usable)
    _keep("baseline", lambda name: name if name in options else options[0])
    baseline = st.selectbox("Baseline", options, key="baseline", bind="query-params")
    ordered = views.baseline_first(runs, baseline)
    default = _default_sentence(ordered, test)
    number = _sentence_number(views.sentences(runs, test, usable), default)
    return ViewState(ordered, test, number, baseline)


def _default_sentence(names: Sequence[str], test: str) -> int:
    runs = _translated(names, test)
    files = [run.translations_folder(test) / "meta.json" for run in runs]
    with suppress(ValueError, OSError):  # the page says what is wrong with a run
        return _cached_default(tuple((str(file), file.stat().st_mtime_ns) for file in files), test, runs)
    return 0


@st.cache_data(max_entries=64, show_spinner=False)
def _cached_default(files: tuple[tuple[str, int], ...], test: str, _runs: list[Run]) -> int:
    return default_sentence(_runs, test)


def _translated(names: Sequence[str], test: str) -> list[Run]:
    """The runs of these names that have translated the test set."""
    by_name = {run.name: run for run in listing(runs_folder()).runs}
    return [by_name[name] for name in names if test in by_name[name].tests()]


def _sentence_number(count: int, default: int) -> int:
    last = max(0, count - 1)
    _keep("sentence", lambda number: min(number, last))
    bind = whole_number_bind("sentence")
    return int(st.number_input(f"Sentence (0 to {last})", 0, last, min(default, last), key="sentence", bind=bind))


def draw_steps(frame: Frame) -> None:
    """Draw the buttons that go to another sentence, in the order of the page Sentences or by number."""
    view = frame.view
    if not view.test:
        return
    number, order = view.sentence, sentence_order.of_test(view.test)
    count = views.sentences(view.runs, view.test, frame.known)
    last = max(0, count - 1)
    with st.container(horizontal=True):
        labels, keys = ("Previous", "Next"), (PREVIOUS_KEY, NEXT_KEY)
        if order is None:
            stepper.show(number, last, labels, partial(_step, last), "sentence", keys)
        else:
            stepper.show(order.position(number), len(order.rows) - 1, labels, order.step, "sentence", keys)
        st.button("Random sentence", on_click=_go_elsewhere, args=(count,), disabled=last == 0, key="surprise")
    if order is not None:
        place = order.position(number)
        label = f"{place + 1} of {len(order.rows)}" if place >= 0 else f"{len(order.rows)} others"
        st.page_link(page_file("sentences"), label=f"{label} in the order of Sentences", icon=":material/sort:",
                     help="Previous and Next go in the order of the table on the page Sentences")  # fmt: skip
    with st.container(horizontal=True, gap="small"):
        for name, ranking in RANKINGS.items():
            st.button(name, type="tertiary", on_click=_go_along, args=(name, view.runs, view.test), key=f"go-{name}",
                      help=f"{ranking.description}; again: the next one")  # fmt: skip
    if message := st.session_state.pop(_NO_SENTENCE, ""):
        st.caption(escape_markdown(message))


def _step(last: int, number: int, by: int) -> int:
    return min(max(0, number + by), last)


def _go_elsewhere(count: int) -> None:
    stepper.set_number("sentence", views.elsewhere(st.session_state["sentence"], count))


def _go_along(ranking: str, names: Sequence[str], test: str) -> None:
    """Go to the next sentence of a ranking; without one the sidebar says why."""
    try:
        following = next_in_ranking(ranking, _translated(names, test), test, st.session_state["sentence"])
        stepper.set_number("sentence", following)
    except (ValueError, OSError) as error:
        st.session_state[_NO_SENTENCE] = str(error)


def _keep(key: str, valid) -> None:
    """Remove missing runs or test sets from a remembered choice."""
    if key in st.session_state:
        valid_choice = valid(st.session_state[key])
        if valid_choice != st.session_state[key]:
            st.session_state[key] = valid_choice
