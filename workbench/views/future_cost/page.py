"""Future cost: what a system expected its next word to cost beside what it cost, in a sentence and a test set."""

import shlex

import streamlit as st

from workbench.app import frame
from workbench.app.components import empty_states, figure_view, page_sections, sentence_texts
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

frame.heading(
    "Future cost",
    "How well a system foretells, one step ahead, what its next word will cost (Duan 2020). A cost is −log P in nats.",
)
here = empty_states.require_runs()
able = list(filter(estimates, here.tested))
if not able:
    page_sections.none_able(here, "estimates a future cost", estimates, "future-cost-2")
    st.stop()
untraced = [run for run in able if not is_traced(run, here.view.test)]
if untraced:
    empty_states.empty_state_of_runs(
        "Without traces of this test set there is nothing to show. Make them:",
        untraced,
        f"workbench trace {{}} --test {shlex.quote(here.view.test)}",
    )
able = [run for run in able if run not in untraced]
if not able:
    st.stop()

st.subheader("Along the translation")
sentence_texts.show(here)
names = short_names(here.tested)
for tab, run in zip(st.tabs([frame.escape_markdown(names[run.name]) for run in able]), able, strict=True):
    with tab:
        figure_view.show("future-cost-overlay", here.request([run]), key=run.name)

st.subheader("Over the test set")
with frame.errors_as_messages():
    table = agreement_table(here.request(able))
    st.dataframe(
        table,
        hide_index=True,
        placeholder="–",
        width="content",
        key="agreement",
        column_config=COLUMNS,
        alt="How estimated and realised costs agree",
    )
figure_view.show("future-cost-calibration", here.request(able))
