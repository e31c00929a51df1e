"""Page Paper gallery: the claims of a paper beside our experiments; below, its tables and figures one by one."""

import streamlit as st

from workbench.app.frame import current, errors_as_messages, escape_markdown, heading
from workbench.papers import presets
from workbench.papers.load import library
from workbench.views.paper_gallery import claim_rows, tables

heading("Paper gallery", "What the papers claim, what they report, what our experiments show, and the verdict.")
frame = current()
with errors_as_messages():
    papers = library()
    name = tables.choose_paper(papers)
    paper = papers[name]
    cited = f"{', '.join(paper.heading.authors)}. {paper.heading.title}. {paper.heading.venue} {paper.heading.year}."
    st.caption(escape_markdown(cited))
    if paper.heading.left_out:
        st.caption(escape_markdown(f"Out of scope here: {paper.heading.left_out}."))
    claim_rows.show(name, paper, frame)
    st.subheader("Details")
    preset = tables.choose(papers, name)
    if preset is not None:
        table = preset.table
        st.markdown(f"**{escape_markdown(f'{preset.title}: {preset.what}')}**")
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
            tables.show_checks(presets.checks_of(papers, name))
