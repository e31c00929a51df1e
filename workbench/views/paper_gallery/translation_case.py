"""Translation case: source, reference and translations of one sentence with marked words; also as LaTeX."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from analyses.sentences import REFERENCE, SOURCE, word_diff
from workbench.app.components import word_diff as diff_view
from workbench.app.frame import escape_markdown
from workbench.export.latex import case_latex


def show(texts: Mapping[str, str], base: str, notes: Mapping[str, str] | None = None) -> None:
    """Show texts by name: source, reference if any, then systems, each with its differences to `base` marked.

    notes: text below the name of a system.
    """
    notes = notes or {}
    lines = []
    for name, text in texts.items():
        plain = name in (SOURCE, REFERENCE, base)
        differences = diff_view.plain(text) if plain else word_diff(texts[base], text)
        lines.append(diff_view.html_line(name, differences, notes.get(name, "")))
    with st.container(border=True):
        diff_view.show(lines)
    base_name = "the reference" if base == REFERENCE else base
    st.caption(escape_markdown(f"Underlined: not in {base_name}. Struck out: only in {base_name}."))
    with st.expander("LaTeX of this case"):
        st.code(case_latex(texts, base), language="latex", wrap_lines=True)
