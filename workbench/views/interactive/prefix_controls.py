"""Parts of the page What-if: clickable pieces, alternatives of a step, comparison with unconstrained outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from analyses.sentences import word_diff
from workbench.app.components import word_diff as diff_view
from workbench.app.frame import escape_markdown
from workbench.app.url_state import PREFIX
from workbench.store.runs import Run
from workbench.views.interactive import prefix_constrained
from workbench.views.interactive.prefix_constrained import Continued

Number = st.column_config.NumberColumn
_COLUMNS = {
    "system": "System",
    "text": st.column_config.TextColumn("Translation from the prefix", width=300),
    "score": Number("Score", format="%.3f", help="log P under the length penalty"),
    "log_prob": Number("log P (nats)", format="%.3f"),
    "log_prob_change": Number("Change of log P", format="%+.3f", help="Against the unconstrained translation"),
    "future_cost": Number(
        "Future cost (nats)", format="%.3f", help="The sum of the log P that the system estimated one word ahead"
    ),
    "coverage": Number("Coverage (%)", format="%.1f"),
    "coverage_before": Number("Unconstrained (%)", format="%.1f", help="Coverage of the unconstrained translation"),
}


def _set_prefix(key: str, texts: Sequence[str]) -> None:
    """Set the prefix to the text of the clicked pill and clear the selection."""
    index = st.session_state[key]
    if index is not None:
        st.session_state[PREFIX] = texts[index]
        st.session_state[key] = None


def pieces(name: str, tokens: Sequence[str]) -> None:
    """Pieces of an output; a click on one sets the prefix to the text up to it."""
    texts, key = prefix_constrained.prefixes(tokens), f"pieces-{name}"
    if not texts:
        st.text(f"{name}: (empty)")
        return
    st.pills(
        escape_markdown(name), range(len(texts)), key=key, on_change=_set_prefix, args=(key, texts),
        format_func=lambda number: f":gray[{number + 1}] {escape_markdown(tokens[number])}",  # equal ones would be one
        help="Click to make the text up to this subword the prefix",
    )  # fmt: skip


def alternatives(name: str, table: pd.DataFrame) -> None:
    """Ranked next pieces with probabilities; a click appends one to the prefix."""
    records = table[table["prefix"] != ""].to_dict("records")
    key = f"next-{name}"
    st.pills(
        "Next subword", range(len(records)), key=key, on_change=_set_prefix,
        args=(key, [row["prefix"] for row in records]),
        format_func=lambda row: escape_markdown(f"{records[row]['piece']}  {records[row]['probability']:.3f}"),
        help="Ranked by probability; click to append one to the prefix",
    )  # fmt: skip
    taken = table[table["taken"]]
    end = table[table["prefix"] == ""]
    notes = [f"{escape_markdown(name)} goes on with {escape_markdown(taken['piece'].iloc[0])}"] if len(taken) else []
    notes += [f"the end of the sentence has P {end['probability'].iloc[0]:.3f}"] if len(end) else []
    st.caption(f"{'; '.join(notes)}." if notes else "")


def results(table: pd.DataFrame) -> None:
    """Table of the translations from the prefix."""
    columns = {name: column for name, column in _COLUMNS.items() if not table[name].isna().all()}
    shown = table.assign(coverage=100 * table["coverage"], coverage_before=100 * table["coverage_before"])
    st.dataframe(shown, hide_index=True, column_config=columns, column_order=list(columns), key="what-if",
                 placeholder="–", alt="Translations from the prefix")  # fmt: skip


def changes(continued: Sequence[Continued], names: Mapping[str, str]) -> None:
    """Translations from the prefix with their differences to the unconstrained ones marked."""
    lines = [
        diff_view.html_line(
            names[translations.run.name],
            word_diff(translations.free.text, translations.forced.text),
            "unchanged" if translations.free.text == translations.forced.text else "",
        )
        for translations in continued
    ]
    with st.container(border=True):
        diff_view.show(lines)
    st.caption("Underlined: not in the unconstrained translation. Struck out: only there.")


def trained_runs(runs: Sequence[Run]) -> list[Run]:
    """Runs with a trained model."""
    return [run for run in runs if not run.outside and run.trained]
