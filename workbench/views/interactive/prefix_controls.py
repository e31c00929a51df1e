"""Parts of the page What-if: pieces that can be clicked, alternatives of a step, outputs beside unconstrained ones.

Also the way there from a beam tree: a node that is clicked, or chosen from a list, gives its prefix.
"""

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


def _take(key: str, texts: Sequence[str]) -> None:
    """Make the text behind the chosen pill the prefix; nothing stays chosen."""
    chosen = st.session_state[key]
    if chosen is not None:
        st.session_state[PREFIX] = texts[chosen]
        st.session_state[key] = None


def pieces(name: str, tokens: Sequence[str]) -> None:
    """The pieces of an output; a click on one makes all up to it the prefix."""
    texts, key = prefix_constrained.prefixes(tokens), f"pieces-{name}"
    if not texts:
        st.text(f"{name}: (empty)")
        return
    st.pills(
        escape_markdown(name), range(len(texts)), key=key, on_change=_take, args=(key, texts),
        format_func=lambda number: f":gray[{number + 1}] {escape_markdown(tokens[number])}",  # equal ones would be one
        help="Click to make the text up to this subword the prefix",
    )  # fmt: skip


def alternatives(name: str, table: pd.DataFrame) -> None:
    """The ranked next pieces with their probabilities; a click appends one to the prefix."""
    able = table[table["prefix"] != ""].to_dict("records")
    key = f"next-{name}"
    st.pills(
        "Next subword", range(len(able)), key=key, on_change=_take, args=(key, [row["prefix"] for row in able]),
        format_func=lambda row: escape_markdown(f"{able[row]['piece']}  {able[row]['probability']:.3f}"),
        help="Ranked by probability; click to append one to the prefix",
    )  # fmt: skip
    taken = table[table["taken"]]
    end = table[table["prefix"] == ""]
    said = [f"{escape_markdown(name)} goes on with {escape_markdown(taken['piece'].iloc[0])}"] if len(taken) else []
    said += [f"the end of the sentence has P {end['probability'].iloc[0]:.3f}"] if len(end) else []
    st.caption(f"{'; '.join(said)}." if said else "")


def results(table: pd.DataFrame) -> None:
    """What every run makes of the prefix."""
    columns = {name: column for name, column in _COLUMNS.items() if not table[name].isna().all()}
    shown = table.assign(coverage=100 * table["coverage"], coverage_before=100 * table["coverage_before"])
    st.dataframe(shown, hide_index=True, column_config=columns, column_order=list(columns), key="what-if",
                 placeholder="–", alt="Translations from the prefix")  # fmt: skip


def changes(continued: Sequence[Continued], names: Mapping[str, str]) -> None:
    """Each translation from the prefix, marked against the unconstrained one."""
    lines = [
        diff_view.html_line(
            names[one.run.name],
            word_diff(one.free.text, one.forced.text),
            "unchanged" if one.free.text == one.forced.text else "",
        )
        for one in continued
    ]
    with st.container(border=True):
        diff_view.show(lines)
    st.caption("Underlined: not in the unconstrained translation. Struck out: only there.")


def able_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs that have a model to decode with."""
    return [run for run in runs if not run.outside and run.trained]
