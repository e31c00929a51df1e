"""Page Contrastive evaluation: how often runs find the right translation more probable than wrong ones."""

import streamlit as st

from workbench.app.components import empty_states, figure_view, page_sections
from workbench.app.frame import errors_as_messages, heading
from workbench.store.runs import Run
from workbench.views.contrastive import measure, tables
from workbench.views.contrastive.figures import ContrastiveOptions

WHOLE = "(all)"


def _has_scored(run: Run) -> bool:
    return not run.outside and bool(measure.scored_names(run))


heading(
    "Contrastive evaluation",
    "How often a right translation is more probable than wrong ones that differ in one detail, such as a pronoun.",
)
frame = empty_states.require_runs(translated=False)
if not any(map(_has_scored, frame.chosen)):
    message = (
        "No contrastive test set was scored by the chosen runs yet: a file of items, or the pronouns of the demo's "
        "corpus."
    )
    empty_states.empty_state_of_runs(
        message,
        frame.chosen,
        "workbench contrastive-eval FILE --run {}\nworkbench contrastive-eval --controlled test --run {}",
    )
    frame = page_sections.any_compatible(frame, "has scored a contrastive test set", _has_scored)
compatible_runs = [run for run in frame.chosen if not run.outside]
available = sorted({name for run in compatible_runs for name in measure.scored_names(run)})
if not available:
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
