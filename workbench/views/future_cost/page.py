"""Page Future cost: estimated and realized cost of the next word, in a sentence and over a test set."""

import shlex

import streamlit as st

from workbench.app.components import empty_states, figure_view, page_sections, sentence_texts
from workbench.app.frame import errors_as_messages, escape_markdown, heading
from workbench.store.runs import short_names
from workbench.views.future_cost.measure import agreement_table, estimates, is_traced

Number = st.column_config.NumberColumn
COLUMNS = {
    "system": "System",
    "pearson": Number("Pearson r", format="%.3f"),
    "spearman": Number("Spearman ρ", format="%.3f"),
    "mean_absolute_error": Number("Mean absolute error (nats)", format="%.3f"),
    "bias": Number(
        "Bias (nats)",
        format="%+.3f",
        help="Mean of estimated minus realised log P; positive: the words were costlier than foreseen",
    ),
    "n": Number("Words", format="localized"),
}

heading(
    "Future cost",
    "How well a system foretells, one step ahead, what its next word will cost (Duan 2020). A cost is −log P in nats.",
)
frame = empty_states.require_runs()
frame, compatible_runs = page_sections.compatible(frame, "estimates a future cost", estimates, "future-cost-2")
untraced = [run for run in compatible_runs if not is_traced(run, frame.view.test)]
if untraced:
    empty_states.empty_state_of_runs(
        "Without traces of this test set there is nothing to show. Make them:",
        untraced,
        f"workbench trace {{}} --test {shlex.quote(frame.view.test)}",
    )
compatible_runs = [run for run in compatible_runs if run not in untraced]
if not compatible_runs:
    st.stop()

st.subheader("Along the translation")
sentence_texts.show(frame)
names = short_names(frame.tested)
for tab, run in zip(
    st.tabs([escape_markdown(names[run.name]) for run in compatible_runs]), compatible_runs, strict=True
):
    with tab:
        figure_view.show("future-cost-overlay", frame.request([run]), key=run.name)

st.subheader("Over the test set")
with errors_as_messages():
    table = agreement_table(frame.request(compatible_runs))
    st.dataframe(
        table,
        hide_index=True,
        placeholder="–",
        width="content",
        key="agreement",
        column_config=COLUMNS,
        alt="How estimated and realised costs agree",
    )
figure_view.show("future-cost-calibration", frame.request(compatible_runs))
