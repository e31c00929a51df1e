"""Help: the terms, the formulas, the keys, where files lie, and how to report."""

import streamlit as st

from workbench.app import frame, glossary
from workbench.widgets import help_tables

frame.heading("Help", "What the terms mean here, the formulas behind the numbers, keys, files, and how to report.")
here = frame.current()
terms, formulas, keys, files, report = st.tabs(["Glossary", "Formulas", "Keys", "Files", "Reporting"])
with terms:
    wanted = st.text_input("Search", placeholder="a term, or a word of what it means", key="term", bind="query-params")
    help_tables.show_terms(glossary.find(glossary.terms(), wanted))
with formulas:
    help_tables.show_formulas(glossary.formulas())
with keys:
    help_tables.show_keys()
with files:
    help_tables.show_files(here.root)
with report:
    help_tables.show_report(here.root)
