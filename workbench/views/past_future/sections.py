"""Sections of the page Past and future: one sentence, the test set, the truth, under-translation, lengths.

Sections arrange controls and figures; the figures compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pandas as pd
import streamlit as st

from analyses.attention import joined, word_numbers
from workbench.app.components import (
    empty_states,
    figure_view,
    forced_decoding_controls,
    page_sections,
    sentence_texts,
    shadings,
    word_selection,
)
from workbench.app.components.row_selection import look_at
from workbench.app.components.shadings import Shading
from workbench.app.frame import Frame, errors_as_messages
from workbench.evaluation.gold_alignments import has_truth
from workbench.evaluation.live_trace import trace_sentence
from workbench.figures.options import choices, default
from workbench.figures.request import Request
from workbench.plotting.axes import token_texts
from workbench.store.runs import Run, RunError, short_names
from workbench.views.past_future.corpus_figures import RANKED, UnderTranslationOptions, remainder_table
from workbench.views.past_future.figures import iterations
from workbench.views.past_future.gold_figures import TruthOptions
from workbench.views.past_future.measure import guided, has_bags, options_of, reduced

PRESENT = {"out": "Exclude", "future": "Count as FUTURE"}
_GROUPS = ("PAST", "FUTURE")
MAX_ROWS = 500  # of the table
Number = st.column_config.NumberColumn
_COLUMNS = {
    "sentence": Number("Sentence", width="small"),
    "system": "System",
    "left": Number("Remaining FUTURE mass", format="%.2f", help="Mass of all source words when </s> is predicted"),
    "mean": Number("Mean per word", format="%.3f", help="Remaining FUTURE mass, mean over the source words"),
    "most": Number("Max. per word", format="%.2f"),
    "word": "Word with most",
    "source": st.column_config.TextColumn("Source", width="large"),
    "translation": st.column_config.TextColumn("Translation", width="large"),
}


def sentence(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Maps, strip and life lines of one sentence, with sliders for iteration and step."""
    sentence_texts.show(frame, [*_mass_shadings(frame, compatible_runs), *shadings.attended(frame)])
    translation = forced_decoding_controls.target()
    columns = st.columns(4, vertical_alignment="bottom")
    pieces = columns[0].toggle("Show subwords", False, key="pieces", bind="query-params", help="Not merged into words")
    difference = columns[1].toggle("PAST − FUTURE", False, key="signed", bind="query-params")
    routing_runs = [run for run in compatible_runs if (options_of(run) or {}).get("routing", "guided") == "guided"]
    capsules = columns[2].toggle(
        "Each capsule", False, key="capsules", bind="query-params", disabled=len(routing_runs) < len(compatible_runs),
        help="Single capsules instead of their groups, if all runs have as many",
    )  # fmt: skip
    known = has_truth(compatible_runs[0], frame.view.test)
    misjudged = known and columns[3].toggle(
        "Outline misjudged", True, key="misjudged", bind="query-params",
        help="Words that the system takes for PAST or FUTURE against the gold links, where the text has some",
    )  # fmt: skip
    with errors_as_messages():
        traces = forced_decoding_controls.looked_into(frame, compatible_runs, translation)
        sides = [list(traces[0].source), list(traces[0].target)]
        sources, targets = sides if pieces else map(joined, sides)
        request = frame.request(compatible_runs, **translation, pieces=pieces)
        judged: dict[str, object] = {} if misjudged or not known else {"truth": False}
        maps = {"difference": difference, "capsules": capsules}
        _figures_with_sliders(request, maps, judged, list(sources), list(targets), min(map(iterations, traces)))


def _mass_shadings(frame: Frame, compatible_runs: Sequence[Run]) -> list[Shading]:
    """PAST and FUTURE mass of each run along its own output."""
    names, of_runs = short_names(frame.tested), []
    for run in compatible_runs:
        with suppress(RunError, OSError):  # the figures say why
            forced = trace_sentence(run, frame.view.test, frame.view.sentence)
            by_words = reduced(frame.view.sentence, forced.source, forced.target, forced.trace)
            mass = by_words.mass[: by_words.target_words, : by_words.source_words]
            of_runs += [Shading(group, names[run.name], mass[..., index]) for index, group in enumerate(_GROUPS)]
    return of_runs


@st.fragment
def _figures_with_sliders(
    request: Request,
    maps: dict[str, object],
    judged: dict[str, object],
    sources: Sequence[str],
    targets: Sequence[str],
    count: int,
) -> None:
    left, right = st.columns([2, 5])
    iteration = "last"
    if count > 1:
        steps = [*map(str, range(1, count)), "last"]
        iteration = forced_decoding_controls.slider(left, "Iteration r", "iteration", steps, "last")
    numbers = word_numbers(targets) if request.options["pieces"] else range(len(targets))
    word_selection.follow("step", "target", numbers, "all")
    step = forced_decoding_controls.slider(right, "Step t", "step", ["all", *map(str, range(len(targets)))])
    if step != "all":
        forced_decoding_controls.marked(targets, int(step), True)
    at_step = replace(request, options={**request.options, "iteration": iteration, "step": step})
    figure_view.show("past-future", replace(at_step, options={**at_step.options, **judged, **maps}))
    if step == "all" and st.toggle("Play the steps", False, key="play", bind="query-params"):
        plain = replace(at_step, options={**at_step.options, "truth": False})  # a step has outlines or none
        frames = {
            f"{number}  {token}": replace(plain, options={**plain.options, "step": str(number)})
            for number, token in enumerate(token_texts(targets))
        }
        figure_view.show_playing("past-future-strip", at_step, frames)
    else:
        strip = {}
        if step == "all":
            strip = _token_selection("steps", "Target words", targets, "strip", "ten over the sentence", 10)
        figure_view.show("past-future-strip", replace(at_step, options={**at_step.options, **judged, **strip}))
    life_lines = _token_selection("source", "Source words", sources, "lives", "those that change most", 12)
    figure_view.show("past-future-lines", replace(at_step, options={**at_step.options, **life_lines}))


def _token_selection(
    option: str, label: str, tokens: Sequence[str], key: str, placeholder: str, max_selections: int
) -> dict[str, object]:
    """Figure option with the selected tokens of a sentence; an empty list lets the figure choose."""
    texts = token_texts(tokens)
    selected = st.multiselect(
        label, range(len(tokens)), format_func=lambda index: f"{index}  {texts[index]}", key=key,
        placeholder=placeholder, persist_state="session", max_selections=max_selections,
    )  # fmt: skip
    return {option: [index for index in sorted(selected) if index < len(tokens)]}


def corpus(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Course, flip times and overlap rates over the test set."""
    left, right = st.columns([3, 3], vertical_alignment="bottom")
    options = forced_decoding_controls.sentence_count(left, "forced-sentences")
    options |= forced_decoding_controls.whose(right, "forced", frame, compatible_runs[0])
    figure_view.show("past-future-course", frame.request(compatible_runs, **options))
    figure_view.show("flip-times", frame.request(compatible_runs, **options))
    predicate = "predicts bags of words, which overlap rates compare"
    frame, with_bags = page_sections.compatible(frame, predicate, has_bags, "gdr-bow-bca")
    figure_view.show("overlap", frame.request(with_bags, **options))


def truth(frame: Frame) -> None:
    """Comparison with the gold links and with model-free rules."""
    frame, compatible_runs = forced_decoding_controls.with_models(frame)
    if not has_truth(compatible_runs[0], frame.view.test):
        empty_states.empty_state(
            f"The test set {frame.view.test!r} has no gold links; the controlled corpus has. "
            "Write one, prepare it and train on it:",
            "workbench data controlled --out DIR",
        )
        return
    left, right, last = st.columns([3, 3, 2], vertical_alignment="bottom")
    options = forced_decoding_controls.sentence_count(left, "forced-sentences")
    probe = last.toggle(
        "Run probe", False, key="probe", bind="query-params",
        help="Trains a probe on the gold links to read each run's states; about a minute per run",
    )  # fmt: skip
    page_sections.read_old_label("present", {"Left out": "out", "FUTURE": "future"})
    present = right.segmented_control(
        "Current word", choices(TruthOptions, "present"), format_func=PRESENT.__getitem__,
        default=default(TruthOptions, "present"), required=True, key="present", bind="query-params",
    )  # fmt: skip
    options |= {"present": present, "probe": probe}
    if len(guided(compatible_runs)) == len(compatible_runs):
        st.caption("Choose a plain system too: its cumulative attention is the second rule.")
    figure_view.show("past-future-truth", frame.request(compatible_runs, **options))


@st.cache_data(max_entries=8, show_spinner="Forcing")
def _remainders(key: tuple[object, ...], options: UnderTranslationOptions, _request: Request) -> pd.DataFrame:
    return remainder_table(_request, options)


def under_translation(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Sentences with remaining FUTURE mass; a click on a row selects the sentence."""
    left, right, last = st.columns([3, 3, 2], vertical_alignment="bottom")
    options = forced_decoding_controls.sentence_count(left, "forced-sentences")
    by = right.segmented_control(
        "Rank by", choices(UnderTranslationOptions, "by"), format_func=lambda name: RANKED[name].capitalize(),
        default=default(UnderTranslationOptions, "by"), required=True, key="ranked", bind="query-params",
    )  # fmt: skip
    options |= {"by": by}
    aligned = compatible_runs[0].translations(frame.view.test).test_set.references is not None and last.toggle(
        "Use word aligner",
        False,
        key="aligned",
        bind="query-params",
        help="Do sentences with more remaining mass leave out more words?",
    )
    figure_view.show("under-translation", frame.request(compatible_runs, **options, aligned=aligned))
    with errors_as_messages():
        key = (*figure_view.stamps(compatible_runs, frame.view.test), frame.view.test)
        ranking = UnderTranslationOptions.model_validate(options)
        table = _remainders(key, ranking, frame.request(compatible_runs)).head(MAX_ROWS)
        numbers = table["sentence"].tolist()
        st.dataframe(
            table,
            hide_index=True,
            placeholder="–",
            column_config=_COLUMNS,
            column_order=list(_COLUMNS),
            height=300 if len(table) > 7 else "content",
            key="remainders",
            on_select=lambda: look_at("remainders", numbers),
            selection_mode="single-row",
            alt="Sentences by remaining FUTURE mass",
        )
        st.caption("Select a row to look at its sentence, here and on the other pages.")
    sentence_texts.show(frame)
    figure_view.show("past-future", frame.request(compatible_runs))


def lengths(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Output lengths and scores by source length of all chosen runs, with or without PAST and FUTURE."""
    for name in ("output-lengths", "length-scores", "scores"):  # Figures 5a, 5b and 6 of the paper
        figure_view.show(name, frame.request(frame.tested, **({"metrics": "bleu"} if name == "scores" else {})))
