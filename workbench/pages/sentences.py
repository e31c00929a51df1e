"""Sentences: all of them beside all systems, filtered and sorted; below, the chosen one with its differences."""

import streamlit as st

from analyses.sentences import REFERENCE, SOURCE, WORDS, word_diff
from workbench import frame
from workbench.evaluation import METRIC_NAMES
from workbench.widgets import sentence_table
from workbench.widgets import word_diff as diff_view

frame.heading("Sentences", "Every sentence with its scores; a click on a row looks at it, here and on the other pages.")
here = frame.needs_runs()
request = here.request()

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
    with frame.sentences_for_errors():
        sentence_table.add_annotations(here.root, request.test, count)

with frame.sentences_for_errors():
    sentences, problems = sentence_table.gathered(request, metrics, here.root)
    for problem in problems:
        st.warning(frame.as_typed(problem))
    rows = sentence_table.chosen_rows(sentences)
    columns = [name for name in sentences.values.columns if name != WORDS]
    sentence_table.show(sentences, rows, columns)

    number = here.view.sentence
    texts = {name: str(sentences.texts.at[number, name]) for name in sentences.texts}
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
    lines = [diff_view.html_line(name, diff_view.plain(texts[name])) for name in (SOURCE, REFERENCE) if name in texts]
    for system in sentences.systems:
        differences = diff_view.plain(texts[system]) if system == base else word_diff(texts[base], texts[system])
        said = [f"{METRIC_NAMES[metric]} {values[f'{METRIC_NAMES[metric]} {system}']:.1f}" for metric in metrics
                if f"{METRIC_NAMES[metric]} {system}" in values]  # fmt: skip
        lines.append(diff_view.html_line(system, differences, " · ".join(said)))
    with st.container(border=True):
        diff_view.show(lines)
    named = "the reference" if base == REFERENCE else base
    st.caption(frame.as_typed(f"Underlined: not in {named}. Struck out: only in {named}."))
    with st.container(horizontal=True):
        for page, label in (("translate", "Translate it"), ("beam_trees", "Beam trees")):
            st.page_link(frame.page_file(page), label=label, icon=":material/arrow_forward:")
