"""Page Paper gallery: tables and figures of the papers with reported, recomputed and our numbers."""

import streamlit as st

from workbench.app.frame import current, errors_as_messages, escape_markdown, heading
from workbench.papers import presets
from workbench.papers.load import library
from workbench.views.paper_gallery import tables

heading(
    "Paper gallery",
    "Numbers reported in the papers, table by table, beside our scores; and whether they agree with each other.",
)
frame = current()
with errors_as_messages():
    papers = library()
    preset = tables.choose(papers)
    paper, table = papers[preset.paper], preset.table
    cited = f"{', '.join(paper.heading.authors)}. {paper.heading.title}. {paper.heading.venue} {paper.heading.year}."
    st.caption(escape_markdown(cited))
    if paper.heading.left_out:
        st.caption(escape_markdown(f"Out of scope here: {paper.heading.left_out}."))
    st.subheader(escape_markdown(f"{preset.title}: {preset.what}"))
    if table is not None:
        st.caption(escape_markdown(table.data))
        tables.show_table(preset, table, frame)
        tables.show_dots(preset, table, frame)
        st.subheader("Reported and recomputed")
        tables.show_checks(presets.checks_of(papers, preset.paper, table.id))
    if preset.cases:
        st.subheader("Translation cases")
        tables.show_cases(preset, frame)
    if table is not None and table.drawing:
        st.subheader("The same kind of figure, of our runs")
        tables.show_drawing(table, frame)
    if paper.claims:
        with st.expander(f"Numbers in the text of the paper ({len(paper.claims)})"):
            tables.show_claims(presets.claims_of(paper))
            tables.show_checks(presets.checks_of(papers, preset.paper))
