"""Sections of the page Content states: states in one sentence and over the test set, maps of coverage."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from workbench.app.components import figure_view, forced_decoding_controls, sentence_texts
from workbench.app.frame import Frame
from workbench.store.runs import Run
from workbench.views.past_future.measure import coverage_units


def sentence(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """States at every step of one sentence."""
    sentence_texts.show(frame)
    _in_parts("content-states", frame, compatible_runs, forced_decoding_controls.target())


def corpus(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Means of the states over the relative position."""
    left, right = st.columns([3, 3], vertical_alignment="bottom")
    options = forced_decoding_controls.sentence_count(left, "content-sentences")
    options |= forced_decoding_controls.whose(right, "content-forced", frame, compatible_runs[0])
    _in_parts("content-course", frame, compatible_runs, options)


def _in_parts(name: str, frame: Frame, compatible_runs: Sequence[Run], options: dict[str, object]) -> None:
    """The lengths of the states, and on request all other measures."""
    figure_view.show(name, frame.request(compatible_runs, **options, part="lengths"), key="lengths")
    if st.toggle("All other measures", False, key="content-rest", bind="query-params"):
        figure_view.show(name, frame.request(compatible_runs, **options, part="rest"), key="rest")


def coverage(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Coverage of each source word after each step, for all runs with a model."""
    frame, with_models = forced_decoding_controls.with_models(frame)
    sentence_texts.show(frame)
    translation = forced_decoding_controls.target()
    pieces = st.toggle("Show subwords", False, key="content-pieces", bind="query-params", help="Not merged into words")
    options: dict[str, object] = {"pieces": pieces}
    if widths := [units for units in map(coverage_units, with_models) if units]:
        units = ["mean", *map(str, range(1, min(widths) + 1))]
        options["unit"] = st.selectbox("Unit of neural coverage", units, key="content-unit", bind="query-params")
    figure_view.show("coverage-map", frame.request(with_models, **translation, **options))
    st.caption("Against the truth of the controlled corpus: page Past and future, Against the truth.")
