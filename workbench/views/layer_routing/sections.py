"""Sections of the page Routing: one sentence, the test set, controls, training.

Sections arrange controls and figures; the figures compute.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from analyses.attention import word_numbers
from workbench.app.components import (
    empty_states,
    figure_view,
    forced_decoding_controls,
    page_sections,
    sentence_texts,
    shadings,
    word_selection,
)
from workbench.app.frame import Frame, errors_as_messages
from workbench.figures.options import choices, default
from workbench.figures.request import Request
from workbench.plotting.grammar import Side
from workbench.store.runs import Run
from workbench.views.layer_routing.corpus_figures import (
    RoutedOptions,
    RoutingCorpusOptions,
    RoutingHealthOptions,
    corpus_table,
)
from workbench.views.layer_routing.figures import RoutingCurvesOptions, RoutingMapsOptions, assignments
from workbench.views.layer_routing.measure import is_followed

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

ORDERS = {"natural": "By number", "sorted": "Sorted by layer"}
UNITS = {"share": "Share of log N", "nats": "Nats"}
FORMULAS = {"corrected": "Corrected", "printed": "As published"}
Number = st.column_config.NumberColumn
MEASURES = {
    "series": "System",
    "measure": "Measure",
    "iteration": Number("Iteration"),
    "layer": "Layer",
    "value": Number("Value", format="%.4f"),
    "low": Number("95% CI lower", format="%.4f"),
    "high": Number("95% CI upper", format="%.4f"),
}


def sentence(frame: Frame, compatible_runs: Sequence[Run], side: str) -> None:
    """Assignments of one sentence, with sliders for iteration and position."""
    sentence_texts.show(frame, shadings.attended(frame))
    columns = st.columns([3, 3, 2, 3], vertical_alignment="bottom")
    order = columns[0].segmented_control(
        "Capsules", choices(RoutingMapsOptions, "order"), format_func=ORDERS.__getitem__,
        default=default(RoutingMapsOptions, "order"), required=True, key="order", bind="query-params",
    )  # fmt: skip
    growth = columns[1].toggle(
        "Change per iteration", False, key="growth", bind="query-params",
        help="Maps of the change since the previous iteration",
    )  # fmt: skip
    layers = columns[2].toggle("Per layer", False, key="layers", bind="query-params")
    unit = _entropy_unit(columns[3])
    translation = forced_decoding_controls.target()
    with errors_as_messages():
        traces = forced_decoding_controls.looked_into(frame, compatible_runs, translation)
        tokens = list(traces[0].source if side == "encoder" else traces[0].target)
        iterations = min(len(assignments(run, trace, side)) for run, trace in zip(compatible_runs, traces, strict=True))
        maps = {"order": order, "difference": growth}
        curves = {"layers": layers, "entropy": unit}
        request = frame.request(compatible_runs, **translation, side=side)
        _figures_with_sliders(request, maps, curves, tokens, iterations)


def _entropy_unit(column: DeltaGenerator) -> str:
    return column.segmented_control(
        "Entropy", choices(RoutingCurvesOptions, "entropy"), format_func=UNITS.__getitem__,
        default=default(RoutingCurvesOptions, "entropy"), required=True, key="entropy", bind="query-params",
        help="A share of log N, the entropy of even shares, compares systems with different numbers of capsules N",
    )  # fmt: skip


@st.fragment
def _figures_with_sliders(
    request: Request, maps: dict[str, object], curves: dict[str, object], tokens: Sequence[str], iterations: int
) -> None:
    left, right = st.columns([2, 5])
    first = 2 if maps.get("difference") else 1
    steps = ["all", *map(str, range(first, iterations + 1))]
    iteration = forced_decoding_controls.slider(left, "Iteration r", "iteration", steps)
    positions = map(str, range(len(tokens)))
    side: Side = "source" if request.options["side"] == "encoder" else "target"
    word_selection.follow("position", side, word_numbers(tokens), "mean")
    position = forced_decoding_controls.slider(right, "Position t (mean: over all)", "position", ["mean", *positions])
    if position != "mean":
        forced_decoding_controls.marked(tokens, int(position), request.options["side"] == "decoder")

    def chosen(iteration: str, **options: object) -> Request:
        return replace(request, options={**request.options, "iteration": iteration, "position": position, **options})

    if iteration == "all" and st.toggle("Play the iterations", False, key="play", bind="query-params"):
        frames = {f"iteration {number}": chosen(number, **maps) for number in steps[1:]}
        figure_view.show_playing("routing-maps", chosen(iteration, **maps), frames)
    else:
        figure_view.show("routing-maps", chosen(iteration, **maps))
    figure_view.show("routing-curves", chosen(iteration, **curves))
    figure_view.show("routing-along", chosen(iteration, entropy=curves["entropy"]))


def corpus(frame: Frame, compatible_runs: Sequence[Run], side: str) -> None:
    """Measures over the test set with intervals, as figure and table."""
    columns = st.columns([2, 3, 3, 2, 2], vertical_alignment="bottom")
    sentences = forced_decoding_controls.sentence_count(columns[0], "routed-sentences", RoutedOptions)
    page_sections.read_old_label("formula", {"As printed": "printed"})
    formula = columns[1].segmented_control(
        "Formula", choices(RoutingCorpusOptions, "formula"), format_func=FORMULAS.__getitem__,
        default=default(RoutingCorpusOptions, "formula"), required=True, key="formula", bind="query-params",
        help="Equations 17 and 18 of Dou 2019",
    )  # fmt: skip
    unit = _entropy_unit(columns[2])
    layers = columns[3].toggle("Per layer", False, key="layers", bind="query-params")
    reported = columns[4].toggle("Reported values", True, key="beside-printed", bind="query-params")
    options = {"side": side, **sentences, "formula": formula, "layers": layers, "printed": reported, "entropy": unit}
    figure_view.show("routing-corpus", frame.request(compatible_runs, **options))
    with errors_as_messages():
        st.dataframe(
            corpus_table(frame.request(compatible_runs), RoutingCorpusOptions.model_validate(options)),
            hide_index=True,
            placeholder="–",
            key="measures",
            column_order=list(MEASURES),
            column_config=MEASURES,
            alt="Measures of routing with their intervals",
        )


def learned(frame: Frame, compatible_runs: Sequence[Run], side: str) -> None:
    """Trained run compared with its initial weights and with control votes."""
    sentences = forced_decoding_controls.sentence_count(st, "routed-sentences", RoutedOptions)
    figure_view.show("routing-learned", frame.request(compatible_runs, side=side, **sentences))


def health(frame: Frame, compatible_runs: Sequence[Run], side: str) -> None:
    """Measures of the last iteration over the checkpoints of training."""
    with_checkpoints = [run for run in compatible_runs if is_followed(run)]
    if len(with_checkpoints) < len(compatible_runs):
        empty_states.empty_state(
            f"Without checkpoints: {', '.join(run.name for run in compatible_runs if run not in with_checkpoints)}. "
            "Training keeps them when told to:",
            f"workbench train em-routing --data DATA --out {shlex.quote(str(frame.root))}/NAME --config keep_every=100",
        )
    if with_checkpoints:
        sentences = forced_decoding_controls.sentence_count(st, "routed-checkpoints", RoutingHealthOptions)
        figure_view.show("routing-health", frame.request(with_checkpoints, side=side, **sentences))
