"""Page Sentences: all sentences with scores, filtered and sorted, and the chosen one with its differences."""

import streamlit as st

from analyses.sentences import REFERENCE, WORDS
from workbench.app import sentence_order
from workbench.app.components import empty_states
from workbench.app.frame import errors_as_messages, escape_markdown, heading, page_file
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.views.paper_gallery import translation_case
from workbench.views.segments import table

INSIDE = {
    "attention": "Attention",
    "attribution": "Attribution",
    "beam_trees": "Beam trees",
    "translate": "Translate it",
}

heading("Sentences", "Every sentence with its scores; a click on a row looks at it, here and on the other pages.")
frame = empty_states.require_runs()
request = frame.request()

left, right = st.columns([5, 3], vertical_alignment="bottom")
metrics = left.pills(
    "Metrics",
    list(METRIC_NAMES),
    format_func=METRIC_NAMES.__getitem__,
    selection_mode="multi",
    default=["chrf"],
    key="scored",
    bind="query-params",
)
count = len(request.runs[0].translations(request.test))
with right.popover("Add labels or scores"):
    st.caption("A CSV or TSV with a header and a row a sentence (COMET, MQM, …), or a text file with a label a line.")
    with errors_as_messages():
        table.add_annotations(frame.root, request.test, count)

with errors_as_messages():
    sentences, problems = table.gathered(request, metrics, frame.root)
    for problem in problems:
        st.warning(escape_markdown(problem))
    rows, sort_column = table.chosen_rows(sentences)
    sentence_order.keep(frame.view.test, rows, count)
    columns = [name for name in sentences.values.columns if name != WORDS]
    table.show(sentences, rows, columns, sort_column)

    number = frame.view.sentence
    texts = {str(name): str(text) for name, text in sentences.texts.loc[number].items()}
    values = sentences.values.loc[number]
    st.subheader(f"Sentence {number}")
    against = st.segmented_control(
        "Differences from",
        ["reference", "baseline"] if REFERENCE in texts else ["baseline"],
        default="reference" if REFERENCE in texts else "baseline",
        required=True,
        key="against",
        bind="query-params",
    )
    base = REFERENCE if against == "reference" else sentences.systems[0]
    scored = {
        system: [f"{METRIC_NAMES[metric]} {values[f'{METRIC_NAMES[metric]} {system}']:.1f}" for metric in metrics
                 if f"{METRIC_NAMES[metric]} {system}" in values]
        for system in sentences.systems
    }  # fmt: skip
    translation_case.show(texts, base, {system: " · ".join(scores) for system, scores in scored.items()})
    with st.container(horizontal=True):
        for page, label in INSIDE.items():
            st.page_link(page_file(page), label=label, icon=":material/arrow_forward:")
