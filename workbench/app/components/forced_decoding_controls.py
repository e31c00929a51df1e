"""Controls of the pages that force translations: which one is looked into, where in it, and which attention; of a test
set, how many sentences."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from analyses.sentences import Difference
from workbench.app import frame
from workbench.app.components import empty_states, page_sections, word_diff
from workbench.evaluation.live_trace import TARGETS, SentenceTrace, trace_sentence
from workbench.figures.options import CorpusOptions, FigureOptions, ForcedOptions, default
from workbench.store.runs import Run

FORCED = {"reference": "References", "own": "Model outputs"}


def with_models(here: frame.Frame) -> list[Run]:
    """The runs that can be looked into; where there is none the page says so and ends."""
    able = [run for run in here.tested if not run.outside]
    if not able:
        empty_states.empty_state_of_runs("", here.tested, "")
        page_sections.offer_others(here, "has a model", lambda run: not run.outside)
        st.stop()
    return able


def target() -> dict[str, object]:
    """Which translation is forced through the runs, as options of a drawing."""
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


def looked_into(here: frame.Frame, runs: Sequence[Run], translation: dict[str, object]) -> list[SentenceTrace]:
    """A forced pass of each run along the translation that was chosen by `target`."""
    forced = ForcedOptions.model_validate(translation).forced
    return [trace_sentence(run, here.view.test, here.view.sentence, *forced) for run in runs]


def sentence_count(place, key: str, model: type[FigureOptions] = CorpusOptions) -> dict[str, object]:
    """Of how many sentences of the test set figures are, as an option of those that have the model."""
    found = place.select_slider(
        "Sentences", [20, 50, 100, 200, 500, "all"], default(model, "sentences"), key=key, bind="query-params",
        help="The first so many of the test set; what is computed is kept beside the run",
    )  # fmt: skip
    return {"sentences": found}


def whose(place, key: str, here: frame.Frame, run: Run) -> dict[str, object]:
    """Whether references or own outputs of the test set are forced, as an option; nothing where there is no choice."""
    if run.translations(here.view.test).test_set.references is None:
        return {}
    page_sections.read_old_label(key, {"Own outputs": "own"})
    chosen = place.segmented_control(
        "Teacher forcing", list(FORCED), format_func=FORCED.__getitem__, default="reference", required=True, key=key,
        bind="query-params",
    )  # fmt: skip
    return {} if chosen == "reference" else {"target": chosen}


def slider(place, label: str, key: str, options: list[str], usual: str | None = None) -> str:
    """A slider over names that stand in the URL as they are; one that the sentence before left outside of them goes
    back to the usual one, the first unless told."""
    usual = options[0] if usual is None else usual
    by_number(key, options)
    if st.session_state.get(key) not in (None, *options):
        st.session_state[key] = usual
    return place.select_slider(label, options, usual, key=key, bind="query-params")


def by_number(key: str, options: Collection[str]) -> None:
    """Choose the place that a URL names by its number alone, or before its word as older links do: `12  the`."""
    asked = st.query_params.get(key, "").split()
    if key not in st.session_state and asked and asked[0] in options:
        st.session_state[key] = asked[0]


def marked(tokens: Sequence[str], place: int, decoder: bool) -> None:
    """The sentence with the position marked; in the decoder only the prefix, for the rest is not written yet."""
    before, after = " ".join(tokens[:place]), "" if decoder else " ".join(tokens[place + 1 :])
    pieces = [Difference(True, f"{before} ", f"{before} ")] if before else []
    pieces.append(Difference(False, "", tokens[place]))
    pieces += [Difference(True, f" {after}", f" {after}")] if after else []
    label, note = ("target prefix", "marked: predicted next") if decoder else ("source", "marked: position t")
    word_diff.show([word_diff.html_line(label, pieces, note)])
