"""Page Reranking: stored n-best lists, reranked by weights of PAST, FUTURE, length and other parts."""

import shlex

import streamlit as st

from analyses.reranking import LENGTH, grid_of
from workbench.app.components import empty_states, figure_view, page_sections
from workbench.app.frame import errors_as_messages, heading
from workbench.store.runs import Run
from workbench.views.reranking import measure
from workbench.views.reranking.figures import PARTS, WeightsOptions, free_parts, weights_table

Number = st.column_config.NumberColumn
COLUMNS = {
    "system": "System",
    "choice": "Selection",
    "score": Number("BLEU", format="%.2f"),
    "delta": Number("Δ vs. 1-best", format="%+.2f", help="Paired difference to the 1-best of the search"),
    "delta_low": Number("95% CI lower", format="%+.2f", help="Of Δ, paired bootstrap"),
    "delta_high": Number("95% CI upper", format="%+.2f"),
    "p_value": Number("p", format="%.3f"),
    "changed": Number("Changed", format="percent", help="Sentences with another hypothesis than the search's"),
    "weights": "Weights",
}


def _weights(parts: list[str]) -> dict[str, float]:
    """Sliders for the free parts; returns the weights that differ from their defaults."""
    weights = {}
    for column, part in zip(st.columns(max(3, len(parts))), parts, strict=False):
        grid, default = grid_of(part), 0.0 if part == LENGTH else 1.0
        value = column.slider(
            f"{PARTS.get(part, part)}", grid[0], grid[-1], default, 0.1, key=f"weight-{part}", bind="query-params"
        )
        if round(value, 1) != default:
            weights[part] = round(value, 1)
    return weights


def _is_scored(run: Run, test: str) -> bool:
    return not run.outside and measure.is_measured(run, test)


def _ask_for(runs: list[Run], test: str) -> None:
    """Say how to score the n-best lists of runs, and to make lists where there are none."""
    listed = [run for run in runs if not run.outside and measure.has_lists(run, test)]
    if listed:
        empty_states.empty_state_of_runs(
            "The n-best lists are not scored yet:", listed, f"workbench rerank {{}} --test {shlex.quote(test)}"
        )
    if unlisted := [run for run in runs if run not in listed]:
        empty_states.empty_state_of_runs(
            "No n-best lists are stored. Translate with a beam and as many hypotheses (the translations are made "
            "again), then score the lists:",
            unlisted,
            f"{measure.to_make('{}', test)}\nworkbench rerank {{}} --test {shlex.quote(test)}",
        )


heading(
    "Reranking",
    "Stored n-best lists, reranked by a weighted sum of the scores of every head and of the length; BLEU without "
    "decoding again (Zheng 2018, Table 7).",
)
frame = empty_states.require_runs()
test = frame.view.test
waiting = [run for run in frame.tested if not _is_scored(run, test)]
compatible_runs = [run for run in frame.tested if run not in waiting]
if not compatible_runs:
    _ask_for(waiting, test)
    frame = page_sections.any_compatible(frame, "has scored n-best lists", lambda run: _is_scored(run, test))
    compatible_runs = [run for run in frame.tested if _is_scored(run, test)]
if not compatible_runs:
    st.stop()
with errors_as_messages():
    parts = free_parts(compatible_runs, test)
    weights = _weights(parts)
    left, right = st.columns(2)
    part = left.segmented_control(
        "Curve over", parts, format_func=lambda name: PARTS.get(name, name), default=parts[0], required=True,
        key="weight-of", bind="query-params",
    )  # fmt: skip
    others = [name for name in compatible_runs[0].tests() if name != test]
    devs = [
        name
        for name in others
        if all(name in run.tests() and measure.is_measured(run, name) for run in compatible_runs)
    ]
    dev = right.selectbox(
        "Weights tuned on", ["", *devs], format_func=lambda name: name or "nothing", key="tuned-on",
        help="Another test set whose lists were scored too; never the one that is shown",
    )  # fmt: skip
    options = {"weights": ",".join(f"{name}={value:g}" for name, value in weights.items()), "dev": dev}
    request = frame.request(compatible_runs, **options, part=None if part == parts[0] else part)
    figure_view.show("rescoring", request)
    st.dataframe(
        weights_table(request, WeightsOptions(**options)),
        hide_index=True,
        placeholder="–",
        width="content",
        key="rescored",
        column_order=list(COLUMNS),
        column_config=COLUMNS,
        alt="BLEU by weights",
    )
_ask_for([run for run in waiting if run in frame.tested], test)
