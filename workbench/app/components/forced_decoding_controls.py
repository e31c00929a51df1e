"""Controls of the pages with forced decoding: translation, position, attention, and number of sentences."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from analyses.sentences import Difference
from workbench.app.components import empty_states, page_sections, word_diff
from workbench.app.frame import Frame
from workbench.evaluation.live_trace import TARGETS, SentenceTrace, trace_sentence
from workbench.figures.options import CorpusOptions, FigureOptions, ForcedOptions, default
from workbench.plotting.axes import token_texts
from workbench.store.runs import Run

FORCED = {"reference": "References", "own": "Model outputs"}


def with_models(frame: Frame) -> tuple[Frame, list[Run]]:
    """The frame and its runs with a model; others are shown instead if there are none; without any the page stops."""
    if all(run.outside for run in frame.tested):
        empty_states.empty_state_of_runs("", frame.tested, "")
        frame = page_sections.any_compatible(frame, "has a model", lambda run: not run.outside)
    model_runs = [run for run in frame.tested if not run.outside]
    if not model_runs:
        st.stop()
    return frame, model_runs


def target() -> dict[str, object]:
    """A control for the translation that is forced, as options of a figure."""
    columns = st.columns([2, 3], vertical_alignment="bottom")
    chosen = columns[0].segmented_control(
        "Translation", list(TARGETS), format_func=TARGETS.__getitem__, default="own", required=True,
        key="translation", bind="query-params", help="The translation that each run is forced to decode, word by word",
    )  # fmt: skip
    if chosen != "typed":
        return {"target": chosen}
    text = columns[1].text_input(
        "Custom translation", key="typed", bind="query-params", placeholder="tokenized like the corpus"
    )
    return {"target": "typed", "text": text.strip()}


def looked_into(frame: Frame, runs: Sequence[Run], translation: dict[str, object]) -> list[SentenceTrace]:
    """A forced pass of each run over the translation chosen by `target`."""
    forced = ForcedOptions.model_validate(translation).forced_target
    return [trace_sentence(run, frame.view.test, frame.view.sentence, *forced) for run in runs]


def sentence_count(column, key: str, model: type[FigureOptions] = CorpusOptions) -> dict[str, object]:
    """A control for the number of sentences of the test set, as an option of figures with the model."""
    count = column.select_slider(
        "Sentences", [20, 50, 100, 200, 500, "all"], default(model, "sentences"), key=key, bind="query-params",
        help="The first so many of the test set; what is computed is kept beside the run",
    )  # fmt: skip
    return {"sentences": count}


def whose(column, key: str, frame: Frame, run: Run) -> dict[str, object]:
    """A control for forcing references or own outputs, as an option of figures; empty without references."""
    if run.translations(frame.view.test).test_set.references is None:
        return {}
    page_sections.read_old_label(key, {"Own outputs": "own"})
    chosen = column.segmented_control(
        "Teacher forcing", list(FORCED), format_func=FORCED.__getitem__, default="reference", required=True, key=key,
        bind="query-params",
    )  # fmt: skip
    return {} if chosen == "reference" else {"target": chosen}


def slider(column, label: str, key: str, options: list[str], default_option: str | None = None) -> str:
    """A slider over names that are in the URL.

    A value of an earlier sentence that is no option becomes the default, by default the first option.
    """
    default_option = options[0] if default_option is None else default_option
    by_number(key, options)
    if st.session_state.get(key) not in (None, *options):
        st.session_state[key] = default_option
    return column.select_slider(label, options, default_option, key=key, bind="query-params")


def by_number(key: str, options: Collection[str]) -> None:
    """Choose the position that a URL names by its number, or by number and word as in older links: `12  the`."""
    requested = st.query_params.get(key, "").split()
    if key not in st.session_state and requested and requested[0] in options:
        st.session_state[key] = requested[0]


def marked(tokens: Sequence[str], position: int, decoder: bool) -> None:
    """Show the sentence with a position marked; in the decoder only the prefix, since the rest is not generated yet."""
    tokens = token_texts(tokens)
    before, after = " ".join(tokens[:position]), "" if decoder else " ".join(tokens[position + 1 :])
    pieces = [Difference(True, f"{before} ", f"{before} ")] if before else []
    pieces.append(Difference(False, "", tokens[position]))
    pieces += [Difference(True, f" {after}", f" {after}")] if after else []
    label, note = ("target prefix", "marked: predicted next") if decoder else ("source", "marked: position t")
    word_diff.show([word_diff.html_line(label, pieces, note)])
