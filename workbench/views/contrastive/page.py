"""Page Contrastive evaluation: how often runs find the right translation more probable than wrong ones."""

import streamlit as st

from workbench.app.components import empty_states, figure_view, page_sections
from workbench.app.frame import errors_as_messages, heading
from workbench.views.contrastive import measure, tables
from workbench.views.contrastive.figures import ContrastiveOptions

WHOLE = "(all)"

heading(
    "Contrastive evaluation",
    "How often a right translation is more probable than wrong ones that differ in one detail, such as a pronoun.",
)
frame = empty_states.require_runs(translated=False)
compatible_runs = [run for run in frame.chosen if not run.outside]
available = sorted({name for run in compatible_runs for name in measure.scored_names(run)})
if not available:
    page_sections.offer_others(
        frame, "has scored a contrastive test set", lambda run: not run.outside and bool(measure.scored_names(run))
    )
    message = (
        "No contrastive test set was scored by the chosen runs yet: a file of items, or the pronouns of the demo's "
        "corpus."
    )
    empty_states.empty_state_of_runs(
        message,
        frame.chosen,
        "workbench contrastive-eval FILE --run {}\nworkbench contrastive-eval --controlled test --run {}",
    )
    st.stop()
left, right = st.columns(2)
name = left.selectbox("Contrastive test set", available, key="contrast", bind="query-params")
scored = [run for run in compatible_runs if name in measure.scored_names(run)]
with errors_as_messages():
    tags = measure.tag_names(measure.read(scored[0], name))
    tag = right.selectbox("By", [*tags, WHOLE], key="tag", bind="query-params")
    options = ContrastiveOptions(name=name, tag=None if tag == WHOLE else tag)
    request = frame.request(scored, **options.model_dump())
    figure_view.show("contrastive", request)
    tables.show_accuracy(request, options)
    waiting = [run for run in compatible_runs if run not in scored]
    if waiting:
        empty_states.empty_state(
            f"Not scored yet: {', '.join(run.name for run in waiting)}. Score it:",
            tables.command(waiting, ContrastiveOptions(name=name)),
        )
    st.subheader("Items")
    tables.show_items(request, options)
