"""Controls of the page Attribution, and the table of the attributions' completeness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from workbench.app.components import forced_decoding_controls
from workbench.figures.options import choices
from workbench.figures.request import Request
from workbench.plotting.axes import with_drawn_pieces
from workbench.views.attribution.figures import AttributionOptions, WordAttributionOptions, sums_table
from workbench.views.attribution.measure import BASELINES, METHODS, WHOLE

Number = st.column_config.NumberColumn
NATS = {
    "log_prob": ("log P", "%.3f"),
    "baseline_log_prob": ("log P of the baseline", "%.3f"),
    "difference": ("Difference", "%+.3f"),
    "sum": ("Sum of attributions", "%+.3f"),
    "error": ("Error", "%+.4f"),
}
SHOWN = {"bars": "A word or the sentence", "matrix": "Every word"}


def options(words: Sequence[str], translation: Mapping[str, object]) -> AttributionOptions:
    """Controls for the options of the chosen figure; `words`: output words to choose from."""
    columns = st.columns([4, 3, 2, 2.4], vertical_alignment="bottom")
    shown = columns[0].segmented_control(
        "Explain", list(SHOWN), format_func=SHOWN.__getitem__, default="bars", required=True,
        key="explain", bind="query-params",
    )  # fmt: skip
    method = columns[1].selectbox(
        "Method",
        choices(AttributionOptions, "method"),
        format_func=METHODS.__getitem__,
        key="method",
        bind="query-params",
    )
    baseline = columns[2].selectbox(
        "Baseline", choices(AttributionOptions, "baseline"), format_func=BASELINES.__getitem__, key="from",
        bind="query-params", help="What a word is compared with: the embedding that stands in its place",
    )  # fmt: skip
    values = {**translation, "method": method, "baseline": baseline}
    if shown == "matrix":
        return AttributionOptions.model_validate(values)
    names = {str(number): f"{number} {word}" for number, word in enumerate(words, 1)}
    forced_decoding_controls.by_number("word", names)
    if st.session_state.get("word") not in (None, WHOLE, *names):
        st.session_state["word"] = WHOLE
    word = columns[3].selectbox(
        "Output word", [WHOLE, *names], format_func=lambda number: names.get(number, "The whole output"),
        key="word", bind="query-params",
    )  # fmt: skip
    return WordAttributionOptions.model_validate({**values, "word": word})


def completeness(request: Request, options: AttributionOptions) -> None:
    """Table of the sums of the attributions and the differences that they should equal."""
    sums = sums_table(request, options, options.word if isinstance(options, WordAttributionOptions) else None)
    st.dataframe(
        with_drawn_pieces(sums),
        hide_index=True,
        placeholder="–",
        width="content",
        key="sums",
        column_config={
            "system": "System",
            "word": "Explained",
            **{name: Number(f"{label} (nats)", format=form) for name, (label, form) in NATS.items()},
            "steps": "Steps",
            "complete": st.column_config.CheckboxColumn(
                "Complete", help="Is the error under 1 % of max(|difference|, 0.5 nat)?"
            ),
        },
        alt="What the attributions sum to, and how far that is from the difference",
    )
    st.caption(
        "Difference: log P minus log P of the baseline, what the attributions should sum to. Integrated gradients "
        "double their steps until the error is under 1 % of it (of 0.5 nat where it is smaller); gradient × input and "
        "occlusion promise no such sum."
    )
