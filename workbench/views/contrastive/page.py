"""Contrastive evaluation: how often the runs find the right translation more probable than wrong ones."""

import streamlit as st

from workbench.app import frame
from workbench.app.components import empty_states, figure_view, page_sections
from workbench.views.contrastive import measure, tables
from workbench.views.contrastive.figures import ContrastiveOptions

WHOLE = "(all)"

frame.heading(
    "Contrastive evaluation",
    "How often a right translation is more probable than wrong ones that differ in one detail, such as a pronoun.",
)
here = empty_states.require_runs(translated=False)
able = [run for run in here.chosen if not run.outside]
known = sorted({name for run in able for name in measure.names(run)})
if not known:
    page_sections.offer_others(
        here, "has scored a contrastive test set", lambda run: not run.outside and bool(measure.names(run))
    )
    said = (
        "No contrastive test set was scored by the chosen runs yet: a file of items, or the pronouns of the demo's "
        "corpus."
    )
    empty_states.empty_state_of_runs(
        said,
        here.chosen,
        "workbench contrastive-eval FILE --run {}\nworkbench contrastive-eval --controlled test --run {}",
    )
    st.stop()
left, right = st.columns(2)
name = left.selectbox("Contrastive test set", known, key="contrast", bind="query-params")
scored = [run for run in able if name in measure.names(run)]
with frame.errors_as_messages():
    tags = measure.tag_names(measure.read(scored[0], name))
    tag = right.selectbox("By", [*tags, WHOLE], key="tag", bind="query-params")
    options = ContrastiveOptions(name=name, tag=None if tag == WHOLE else tag)
    request = here.request(scored, **options.model_dump())
    figure_view.show("contrastive", request)
    tables.show_accuracy(request, options)
    waiting = [run for run in able if run not in scored]
    if waiting:
        empty_states.empty_state(
            f"Not scored yet: {', '.join(run.name for run in waiting)}. Score it:",
            tables.command(waiting, ContrastiveOptions(name=name)),
        )
    st.subheader("Items")
    tables.show_items(request, options)
