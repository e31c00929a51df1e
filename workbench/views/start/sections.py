"""Sections of the page Start."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

import streamlit as st

from workbench.app import health, plugins, url_state
from workbench.app.components import job_view, prepared_link
from workbench.app.frame import Frame, errors_as_messages, escape_markdown, page_file
from workbench.app.url_state import ViewState
from workbench.experiments import demo
from workbench.store.runs import Run
from workbench.views.start import cards, findings

_COLUMNS = 3
ARROW = ":material/arrow_forward:"
# A question may take two lines, and pictures differ in height: all cards keep the same room for both. Pictures are
# drawn for white paper: on a dark page lightness is turned around and hues stay.
_CARDS_STYLE = """
.st-key-cards button {min-height: 3.5rem}
.st-key-cards button p {text-align: left}
.st-key-cards img {aspect-ratio: 4 / 3; object-fit: contain}
"""
_DARK_CARDS_STYLE = ".st-key-cards img {filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen}"


def gallery(frame: Frame) -> None:
    """Cards and findings of the runs in the folder of the chosen ones, as far as they have translated the test set."""
    runs = _shown_runs(frame)
    if not runs:
        return
    test = frame.view.test
    with errors_as_messages():
        shown = cards.cards(runs, test)
        for others in _named_after(frame):
            shown += [card for card in cards.cards(others, test) if card.page not in {known.page for known in shown}]
        by_name, pictures = {run.name: run for run in frame.runs}, []
        dark = st.context.theme.type == "dark"
        st.html(f"<style>{_CARDS_STYLE}{_DARK_CARDS_STYLE if dark else ''}</style>")
        with st.container(key="cards"):
            for first in range(0, len(shown), _COLUMNS):
                for column, card in zip(st.columns(_COLUMNS), shown[first : first + _COLUMNS], strict=False):
                    with column.container(border=True, height="stretch"):
                        view = ViewState(tuple(card.runs), test, card.sentence, card.runs[0])
                        label, key = f"**{card.question}**", f"card-{card.page}"
                        prepared_link.show(label, card.page, view, card.choices, key)
                        pictures.append(st.empty())
        results = st.empty()
        for card, place in zip(shown, pictures, strict=True):
            with place, errors_as_messages():
                st.image(cards.picture(card, by_name), alt=card.question, width="stretch")
        with results.container():
            _findings(runs, test)


def _translated(frame: Frame) -> list[Run]:
    """The finished runs that have translated the test set."""
    finished = {known.name for known in frame.known if known.finished and frame.view.test in known.tests}
    return [run for run in frame.runs if run.name in finished]


def _named_after(frame: Frame) -> list[list[Run]]:
    """Such runs of each other folder that is named after that of the baseline, as exhibits-documents is."""
    start = f"{url_state.folder_of(frame.view.baseline)}-"
    by_folder: dict[str, list[Run]] = {}
    for run in _translated(frame):
        if run.name.startswith(start) and len(start) > 1:
            by_folder.setdefault(url_state.folder_of(run.name), []).append(run)
    return [findings.shown(runs) for runs in by_folder.values()]


def _shown_runs(frame: Frame) -> list[Run]:
    """Such runs in the folder of the baseline, as many as a page shows, the chosen ones first."""
    folder = url_state.folder_of(frame.view.baseline)
    runs = [run for run in _translated(frame) if url_state.folder_of(run.name) == folder]
    chosen_first = sorted(runs, key=lambda run: run.name not in frame.view.runs)
    return cards.in_order(chosen_first[: url_state.MOST_RUNS], frame.view.baseline)


def _findings(runs: Sequence[Run], test: str) -> None:
    """A line for each finding, with a link to its evidence."""
    st.subheader("Findings in these runs")
    with errors_as_messages():
        for finding in findings.findings(runs, test):
            text, link = st.columns([5, 1], vertical_alignment="center")
            text.text(finding.text)
            view = ViewState(tuple(finding.runs), test, finding.sentence, finding.runs[0])
            with link:
                prepared_link.show("Evidence", finding.page, view, {}, f"finding-{finding.page}", ARROW)


def own_text() -> None:
    """The way to translate a sentence of one's own."""
    st.subheader("Your own text")
    label = "Translate a sentence, see its search, force the beginning of its translation"
    st.page_link(page_file("translate"), label=label, icon=ARROW)


def own_model() -> None:
    """The way to open a model of another library."""
    st.subheader("Your own model")
    label = "Open a model of Hugging Face or fairseq, or import translations of another system"
    st.page_link(page_file("runs"), label=label, icon=ARROW)


def own_runs(frame: Frame) -> None:
    """Training the demo's systems below the runs folder, and the command for one's own data."""
    st.subheader("Your own runs")
    st.text(
        f"Runs below {frame.root} appear here. The demo trains {', '.join(demo.systems())} on the controlled corpus "
        "(sentences whose true translation is known), translates with recorded beams and traces; some minutes on a "
        "laptop, and what is done already is not done again."
    )
    broken = [run for run in frame.runs if run.problem]
    if broken:
        label = "Run that cannot be used" if len(broken) == 1 else "Runs that cannot be used"
        st.page_link(page_file("runs"), label=f"{label}: {len(broken)}", icon=":material/warning:")
    if demo.complete(frame.root):
        st.text("The demo is built.")
        more = st.expander("Add system to demo", key="more", on_change="rerun")
        if more.open:
            with more, errors_as_messages():
                _further_system(frame)
    else:
        build = ("demo", "--runs", str(frame.root))
        with errors_as_messages():
            job_view.offer(frame.root, build, "Build the demo", "Demo", main=not frame.known)
        st.code(shlex.join(["workbench", *build]), language="bash")


def _further_system(frame: Frame) -> None:
    """The choice of one more demo system, and a button that trains it."""
    from core_models.system_catalogue import catalogue  # takes PyTorch

    existing = {run.name for run in frame.runs if "test" in run.tests()}
    absent = [name for name in catalogue() if f"demo/{name}" not in existing]
    left, right = st.columns(2)
    listed = left.selectbox(
        "System",
        absent,
        key="another",
        help="One that reads the sentences before fills its batches with them too, and so sees fewer sentences in as "
        "many updates.",
    )
    described = right.text_input(
        "Or any other, with options or of several systems",
        key="described",
        placeholder="NAME:option=value or NAME+NAME",
        help="Options change a system: `coverage:form=subtractive`. A plus joins the mechanisms of several, on the "
        "backbone of the first: `pfrnn-loss+future-cost-2`. `workbench experiment systems` lists them.",
    ).strip()
    if chosen := described or listed:
        _add_to_demo(frame, chosen, existing)


def _add_to_demo(frame: Frame, system: str, existing: Collection[str]) -> None:
    """Button that trains one more demo system, unless it exists."""
    first = demo.first_pass(system)
    demo.by_recipe(system)  # raises for an unknown system
    if (name := f"demo/{demo.run_name(system)}") in existing:
        st.text(f"{name} is there already.")
        return
    if first is not None:
        st.text(
            f"PAST and FUTURE layers hardly train from scratch: {system} begins from the demo's {first}, which "
            "is trained before if need be, and so sees twice its updates."
        )
    add = ("demo", system, "--runs", str(frame.root))
    job_view.offer(frame.root, add, "Train, translate and trace it", f"Demo: {system}")
    st.code(shlex.join(["workbench", *add]), language="bash")


def machine() -> None:
    """Device, fonts and versions, in an expander."""
    expander = st.expander("This machine: device, fonts, versions", key="machine", on_change="rerun")
    if not expander.open:
        return
    parts = health.health()
    with expander:
        st.dataframe(
            {"part": [part.name for part in parts], "value": [part.value for part in parts]},
            hide_index=True,
            placeholder="–",
            column_config={"part": "Part", "value": "Value"},
            width=700,
            height="content",
            alt="Device, fonts and versions",
        )
        for part in parts:
            if part.advice:
                st.warning(escape_markdown(part.advice))


def plugged_in() -> None:
    """The parts that other packages bring, and why one is left out."""
    parts = plugins.plugged_in()
    if not parts:
        return
    st.subheader("Plug-ins")
    st.dataframe(
        {"kind": [part.kind for part in parts], "name": [part.name for part in parts],
         "package": [part.package for part in parts], "joined": [not part.problem for part in parts]},
        hide_index=True, placeholder="–",
        width=700,
        height="content",
        alt="Parts that other packages bring",
    )  # fmt: skip
    for part in parts:
        if part.problem:
            st.warning(escape_markdown(f"{part.package}, {part.kind}, {part.name}: {part.problem}."))
