"""Controls of the page Attention: part, layer, head, the file of gold links, and what argmax links."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from workbench.app.components.color_scale import color_scale_maximum
from workbench.evaluation.live_trace import layers_and_heads
from workbench.figures.options import choices, default
from workbench.store.runs import Run
from workbench.views.attention.alignment_error_figures import AlignmentErrorOptions
from workbench.views.attention.figures import PARTS, AttentionOptions

PART_NAMES = {"cross": "Target → source", "encoder": "Source → source", "decoder": "Target → target"}
ARGMAX_NAMES = {"words": "Of words", "pieces": "Of pieces"}
NAMES = {"mean": "Mean", "rollout": "Rollout", "each": "Each"}


def attention(runs: Sequence[Run]) -> dict[str, object]:
    """Controls for the options of the figure `attention`: part, layer, head, words, limit, difference."""
    part = st.segmented_control(
        "Attention", choices(AttentionOptions, "part"), format_func=PART_NAMES.__getitem__,
        default=default(AttentionOptions, "part"), required=True, key="part", bind="query-params",
    )  # fmt: skip
    columns = st.columns([3, 3, 4, 3, 4], vertical_alignment="bottom")
    layers, heads = layers_and_heads(runs, PARTS[part][0])
    layer = _choice(columns[0], "layer", layers, "Rollout follows attention through the layers")
    head = _choice(columns[1], "head", heads, "") if layer != "rollout" else "mean"
    limit = color_scale_maximum(columns[2])
    words = columns[3].toggle("Words", False, key="words", bind="query-params", help="Merge subwords into words")
    options = {"part": part, "layer": layer, "head": head, "words": words, "limit": limit}
    if len(runs) < 2 or "each" in (layer, head):
        return options
    difference = columns[4].toggle(
        "Difference", False, key="difference", bind="query-params",
        help="Maps of the other runs minus the baseline; of the same texts, such as the reference",
    )  # fmt: skip
    return {**options, "difference": difference}


def _choice(column, option: str, count: int, help_text: str) -> str:
    """Select box for a layer or head, by number or by a named choice of the option."""
    options = [*choices(AttentionOptions, option), *map(str, range(1, count + 1))]
    if st.session_state.get(option) not in (None, *options):
        st.session_state[option] = options[0]
    return column.selectbox(
        option.capitalize(), options, format_func=lambda name: NAMES.get(name, name), key=option, bind="query-params",
        help=help_text or None,
    )  # fmt: skip


def argmax() -> str:
    """What argmax links, for the option of the figure `alignment-error`."""
    return st.segmented_control(
        "Links by argmax", choices(AlignmentErrorOptions, "argmax"), format_func=ARGMAX_NAMES.__getitem__,
        default=default(AlignmentErrorOptions, "argmax"), required=True, key="argmax", bind="query-params",
        help="Weights of pieces are joined to words before, or links of pieces after: then a word may have several",
    )  # fmt: skip


def links() -> str:
    """Path of a local file of gold links; never read from the URL, which may come from somebody else."""
    return st.text_input(
        "Gold alignments (Pharaoh)",
        key="links",
        persist_state="session",
        placeholder="file of alignments such as 0-0 1-2 2?3, one sentence per line; the truth where it is known",
        help="Pharaoh format: source word-target word, ? for a possible link; counted from 0 or from 1",
    ).strip()
