"""Paper gallery: each table and figure of the papers, what is printed beside ours, and what the numbers give again."""

import streamlit as st

from workbench.app import frame
from workbench.papers import presets
from workbench.papers.load import library
from workbench.views.paper_gallery import tables

frame.heading(
    "Paper gallery",
    "Numbers reported in the papers, table by table, beside our scores; and whether they agree with each other.",
)
here = frame.current()
with frame.sentences_for_errors():
    papers = library()
    preset = tables.choose(papers)
    paper, table = papers[preset.paper], preset.table
    st.caption(frame.as_typed(f"{', '.join(paper.heading.authors)}. {paper.heading.title}. {paper.heading.venue} "
                              f"{paper.heading.year}."))  # fmt: skip
    if paper.heading.left_out:
        st.caption(frame.as_typed(f"Out of scope here: {paper.heading.left_out}."))
    st.subheader(frame.as_typed(f"{preset.title}: {preset.what}"))
    if table is not None:
        st.caption(frame.as_typed(table.data))
        tables.show_table(preset, table, here)
        tables.show_dots(preset, table, here)
        st.subheader("Reported and recomputed")
        tables.show_checks(presets.checks_of(papers, preset.paper, table.id))
    if preset.cases:
        st.subheader("Translation cases")
        tables.show_cases(preset, here)
    if table is not None and table.drawing:
        st.subheader("The same kind of figure, of our runs")
        tables.show_drawing(table, here)
    if paper.claims:
        with st.expander(f"Numbers in the text of the paper ({len(paper.claims)})"):
            tables.show_claims(presets.claims_of(paper))
            tables.show_checks(presets.checks_of(papers, preset.paper))
