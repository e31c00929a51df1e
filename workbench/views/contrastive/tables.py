"""Tables of the page Contrastive evaluation: accuracy by tag with margins, and items."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from workbench.figures.request import Request
from workbench.store.runs import Run
from workbench.views.contrastive import measure
from workbench.views.contrastive.figures import ContrastiveOptions, accuracy_table, contrasts
from workbench.views.contrastive.measure import Contrast

MOST_ITEMS = 1000  # shown
Number = st.column_config.NumberColumn
_ACCURACY = {
    "system": "System",
    "tag": "Tag",
    "n": Number("Items"),
    "right": Number("Right"),
    "ties": Number("Ties", help="Equally probable: counted as wrong"),
    "share": Number("Accuracy (%)", format="%.1f"),
    "low": Number("95% CI lower", format="%.1f"),
    "high": Number("95% CI upper", format="%.1f"),
    "majority": Number("Majority baseline (%)", format="%.1f", help="Accuracy of the most frequent right pronoun"),
    "margin": Number("Margin (nats)", format="%.3f", help="Mean of log P right less log P of the best wrong one"),
    "margin_per_token": Number(
        "Margin per token", format="%.3f", help="The same, each log P divided by its number of tokens"
    ),
}


def show_accuracy(request: Request, options: ContrastiveOptions) -> None:
    """Table of the figure's numbers with margins, and the command that prints it."""
    table = accuracy_table(request, options)
    st.dataframe(
        table.assign(**{name: 100 * table[name] for name in ("share", "low", "high", "majority")}),
        hide_index=True,
        placeholder="–",
        column_config=_ACCURACY,
        column_order=list(_ACCURACY),
        key="accuracy",
        alt="Accuracy by tag",
    )
    with st.popover("Command"):
        st.code(command(request.runs, options), language="bash", wrap_lines=True)


def command(runs: Sequence[Run], options: ContrastiveOptions) -> str:
    """Command line that scores the runs and prints the table."""
    test_set_arguments = measure.command_arguments(str(options.name))
    arguments = [
        "workbench",
        "contrastive-eval",
        *test_set_arguments,
        *(word for run in runs for word in ("--run", run.argument)),
    ]
    return shlex.join([*arguments, *(["--tag", options.tag] if options.tag else [])])


def show_items(request: Request, options: ContrastiveOptions) -> None:
    """Table of items with the margins of systems; only items that some system gets wrong, unless all are selected."""
    by_system = contrasts(request, options)
    table = measure.items_table(by_system)
    wrong = (table[list(by_system)] <= 0).any(axis="columns")
    everything = st.toggle("Show items all systems solve", key="every-item", persist_state="session")
    rows = table if everything else table[wrong]
    if rows.empty:
        st.text("Every system gets every item right.")
        return
    shown = rows.sort_values(next(iter(by_system)), kind="stable").head(MOST_ITEMS)
    st.dataframe(
        shown,
        hide_index=True,
        placeholder="–",
        height=360,
        column_config=_columns(shown, by_system),
        key="items",
        alt="Items",
    )
    limit_text = f", the first {MOST_ITEMS} shown" if len(rows) > MOST_ITEMS else ""
    st.caption(f"{int(wrong.sum())} of {len(table)} items are wrong for some system{limit_text}; margins in nats.")


def _columns(shown: pd.DataFrame, by_system: dict[str, Contrast]) -> dict[str, object]:
    texts = {name: st.column_config.TextColumn(name.capitalize(), width=300) for name in ("source", "right", "wrong")}
    margins = {name: Number(name, format="%.3f") for name in by_system}
    others: dict[str, object] = {str(name): str(name).capitalize() for name in shown}
    return {**others, **texts, **margins}
