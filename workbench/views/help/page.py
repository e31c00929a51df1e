"""Page Help: terms, formulas, keys, files, and how to report."""

import streamlit as st

from workbench.app import glossary
from workbench.app.frame import current, heading
from workbench.views.help import tables

heading("Help", "What the terms mean here, the formulas behind the numbers, keys, files, and how to report.")
frame = current()
terms, formulas, keys, files, report = st.tabs(["Glossary", "Formulas", "Keys", "Files", "Reporting"])
with terms:
    query = st.text_input("Search", placeholder="a term, or a word of what it means", key="term", bind="query-params")
    tables.show_terms(glossary.find(glossary.terms(), query))
with formulas:
    tables.show_formulas(glossary.formulas())
with keys:
    tables.show_keys()
with files:
    tables.show_files(frame.root)
with report:
    tables.show_report(frame.root)
