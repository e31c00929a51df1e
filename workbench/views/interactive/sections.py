"""Sections of the page Translate: the outputs of all runs, and the beam tree, n-best list and tokens of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from analyses.sentences import word_diff
from workbench.app.components import figure_view
from workbench.app.components import word_diff as diff_view
from workbench.app.frame import escape_markdown
from workbench.app.url_state import PREFIX
from workbench.plotting.axes import token_texts, with_drawn_pieces
from workbench.store.runs import Run
from workbench.views.beam_search import controls as beam_controls
from workbench.views.beam_search import node_selection
from workbench.views.interactive import decoding, prefix_constrained
from workbench.views.interactive.decoding import TranslationRequest
from workbench.views.interactive.prefix_constrained import Continued
from workbench.views.interactive.tokens_table import token_table

Number = st.column_config.NumberColumn
_COLUMNS = {
    "system": "System",
    "score": Number("Score", format="%.3f", help="log P under the length penalty"),
    "log_prob": Number("log P (nats)", format="%.3f"),
    "log_prob_change": Number("Change of log P", format="%+.3f", help="Against the unconstrained translation"),
    "future_cost": Number(
        "Future cost (nats)", format="%.3f", help="The sum of the log P that the system estimated one word ahead"
    ),
    "coverage": Number("Coverage (%)", format="%.1f"),
    "coverage_before": Number("Unconstrained (%)", format="%.1f", help="Coverage of the unconstrained translation"),
    "text": st.column_config.TextColumn("Translation", width=300),
}
_N_BEST = {
    "score": Number("Score", format="%.3f", width=70),
    "log_prob": Number("log P (nats)", format="%.3f", width=100),
    "text": st.column_config.TextColumn("Translation", width="large"),
}
_TOKENS = {
    "step": Number("Step", width=60),
    "token": "Token",
    "log_prob": Number("log P (nats)", format="%.3f", width=110),
    "probability": st.column_config.ProgressColumn("P", format="%.3f", min_value=0.0, max_value=1.0),
}


def trained_runs(runs: Sequence[Run]) -> list[Run]:
    """Runs with a trained model."""
    return [run for run in runs if not run.outside and run.trained]


def translated(run: Run, request: TranslationRequest) -> Continued:
    """Translate from the forced prefix and, to compare, without it."""
    free = decoding.translate(run, replace(request, prefix=""))
    return Continued(run, request, free, decoding.translate(run, request) if request.prefix else free)


def outputs(continued: Sequence[Continued], names: Mapping[str, str]) -> None:
    """Translations of all runs; with a forced prefix, their differences to the unconstrained ones are marked."""
    constrained = bool(continued[0].request.prefix)
    lines = [
        diff_view.html_line(
            names[item.run.name],
            word_diff(item.free.text, item.forced.text),
            "unchanged" if constrained and item.free.text == item.forced.text else "",
        )
        for item in continued
    ]
    with st.container(border=True):
        diff_view.show(lines)
    if constrained:
        st.caption("Underlined: not in the unconstrained translation. Struck out: only there.")


def _set_prefix(key: str, texts: Sequence[str]) -> None:
    """Set the prefix to the text of the clicked pill and clear the selection."""
    index = st.session_state[key]
    if index is not None:
        st.session_state[PREFIX] = texts[index]
        st.session_state[key] = None


def pieces(continued: Sequence[Continued], names: Mapping[str, str]) -> None:
    """Pieces of each run's output; a click on one sets the prefix to the text up to it."""
    for item in continued:
        name, tokens = names[item.run.name], item.forced.tokens
        drawn = token_texts(tokens)
        texts, key = prefix_constrained.prefixes(tokens), f"pieces-{name}"
        if not texts:
            st.text(f"{name}: {diff_view.EMPTY}")
            continue
        st.pills(
            escape_markdown(name), range(len(texts)), key=key, on_change=_set_prefix, args=(key, texts),
            format_func=lambda number, drawn=drawn: (  # numbered, since equal ones would be one
                f":gray[{number + 1}] {escape_markdown(drawn[number])}"
            ),
            help="Click to make the text up to this subword the prefix",
        )  # fmt: skip


def results(table: pd.DataFrame) -> None:
    """Table of the translations of all runs."""
    columns = {name: column for name, column in _COLUMNS.items() if not table[name].isna().all()}
    shown = table.assign(coverage=100 * table["coverage"], coverage_before=100 * table["coverage_before"])
    st.dataframe(shown, hide_index=True, column_config=columns, column_order=list(columns), key="outputs",
                 placeholder="–", alt="Translations of all runs")  # fmt: skip


def tree(item: Continued) -> None:
    """Beam tree of a run's search; a node's text can be made the prefix."""
    figure = decoding.tree(item.forced, **beam_controls.options(decoding.steps(item.forced)))
    points = figure_view.show_figure(figure, decoding.command(item.run, item.request), key="live", selectable=True)
    prefix, place = node_selection.choose(figure, points, "live")
    if prefix is not None:
        place.button("Force this prefix", icon=":material/call_split:", on_click=_force, args=(prefix,), key="force")


def _force(prefix: str) -> None:
    st.session_state[PREFIX] = prefix


def tokens(item: Continued) -> None:
    """The n-best list of a run, and the tokens of its best translation with their probabilities."""
    st.dataframe(
        [
            {"score": hypothesis.score, "log_prob": hypothesis.log_prob, "text": hypothesis.text}
            for hypothesis in (item.forced, *item.forced.n_best)
        ],
        key="n-best",
        hide_index=True,
        placeholder="–",
        column_config=_N_BEST,
        alt="The best translations",
    )
    st.caption("Score: log P under the length penalty.")
    st.dataframe(
        with_drawn_pieces(token_table(item.forced.tokens, item.forced.token_log_probs)),
        key="tokens",
        hide_index=True,
        placeholder="–",
        column_config=_TOKENS,
        height=250,
        alt="Log-probability of each token",
    )
    st.code(decoding.command(item.run, item.request), language="bash", wrap_lines=True)


def alternatives(item: Continued) -> None:
    """Ranked next pieces of a run with probabilities; a click appends one to the prefix."""
    table = with_drawn_pieces(prefix_constrained.alternatives(item.run, item.request.prefix, item.forced))
    records = table[table["prefix"] != ""].to_dict("records")
    st.pills(
        "What could come next", range(len(records)), key="next", on_change=_set_prefix,
        args=("next", [row["prefix"] for row in records]),
        format_func=lambda row: escape_markdown(f"{records[row]['piece']}  {records[row]['probability']:.3f}"),
        help="Ranked by probability; click to append one to the prefix",
    )  # fmt: skip
    taken = table[table["taken"]]
    end = table[table["prefix"] == ""]
    notes = [f"The translation goes on with {escape_markdown(taken['piece'].iloc[0])}."] if len(taken) else []
    notes += [f"The end of the sentence has P {end['probability'].iloc[0]:.3f}."] if len(end) else []
    st.caption(" ".join(notes))
