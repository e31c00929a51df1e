"""Parts of the page Paper gallery: choice of a table, reported and our numbers, checks, claims and cases."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from analyses.sentences import REFERENCE, SOURCE
from workbench.app.components import figure_view, sentence_texts
from workbench.app.components.empty_states import empty_state, empty_state_of_runs
from workbench.app.frame import Frame, errors_as_messages, escape_markdown, page_file
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.experiments import ablation
from workbench.export.latex import beside_latex
from workbench.papers import comparison, presets
from workbench.papers.our_measurements import result_files
from workbench.papers.our_results import OURS, SPEEDS, missing_results, our_results
from workbench.papers.presets import Preset
from workbench.papers.schema import Paper, Table
from workbench.store.runs import Run
from workbench.views.paper_gallery import translation_case

Text = st.column_config.TextColumn
Number = st.column_config.NumberColumn
FEWEST_DOTS = 3  # fewest table rows for which dots are drawn

_OURS = {
    "row": Text("Row", pinned=True),
    "measure": "Measure",
    "ours": Number("This work", format="%.2f", help="Of other data than the paper's: no reproduction"),
    "low": Number("95% CI lower", format="%.2f"),
    "high": Number("95% CI upper", format="%.2f"),
    "reported": Text("Reported", width="medium", help="Of the same measure; speeds as ratios to the baseline's"),
    "differs": Text("Not as reported, and how ours was measured", width="large"),
    "where": "Where",
    "data": "Data",
    "test": "Test set",
    "ran as": "System there",
    "signature": Text("Signature", width="large"),
}
_CHECKS = {
    "what": Text("What", width="large"),
    "reported": Text("Reported", alignment="right"),
    "recomputed": Text("Recomputed", alignment="right"),
    "outcome": "Outcome",
    "note": Text("Note", width="large"),
    "known": Text("Known as", help="This project's label of a known contradiction"),
}
_CLAIMS = {
    "what": Text("What", width="large"),
    "reported": Text("Reported", alignment="right"),
    "unit": "Unit",
    "where": "Where",
    "system": "System",
}


def choose_paper(papers: Mapping[str, Paper]) -> str:
    """Control for the paper."""
    return st.selectbox("Paper", list(papers), key="paper", bind="query-params", width=300)


def choose(papers: Mapping[str, Paper], name: str) -> Preset | None:
    """Control for a table or figure of a paper; None until one is chosen."""
    of_paper = presets.presets(papers)[name]
    if st.session_state.get("table") not in (None, "", *of_paper):  # another paper's
        st.session_state["table"] = None
    table = st.segmented_control(
        "Table or figure",
        list(of_paper),
        format_func=lambda name: of_paper[name].title,
        wrap=True,
        key="table",
        bind="query-params",
        help="Its numbers as reported, ours beside them, and whether they agree with each other",
    )
    return of_paper.get(table) if table else None


@st.cache_data(max_entries=16, show_spinner="Scoring")
def _our_results(key: figure_view.Stamps, table: str, test: str, _table: Table, _runs: list[Run]) -> pd.DataFrame:
    return our_results(_table, _runs, test)


def show_table(preset: Preset, table: Table, frame: Frame) -> None:
    """Table of reported numbers, with their digits as printed, and our numbers."""
    runs, test = presets.in_row_order(table, frame.tested), frame.view.test
    results = pd.DataFrame(columns=OURS)
    with errors_as_messages():
        results = _our_results(_stamps(runs, test), f"{preset.paper}/{table.id}", test, table, runs)
    rows = comparison.reported(table, results)
    printed = {
        column.label: Text(column.label, alignment="right", help=column.unit or None) for column in table.columns
    }
    columns = {
        "row": Text("Row", pinned=True),
        "system": "System",
        **printed,
        "ours": Text("This work", help="Of other data than the paper's: no reproduction"),
        "cited": "Cited from",
    }
    order = [name for name in columns if name in rows and _has_values(rows[name])]
    st.dataframe(
        rows,
        height="content",
        hide_index=True,
        column_config=columns,
        column_order=order,
        placeholder="",
        key=f"printed-{preset.paper}-{table.id}",
        alt=f"{preset.title}: reported values beside ours",
    )
    notes = [f"{row.label}: {row.note}." for row in table.rows if row.note]
    if len(results):
        notes.insert(0, f"Ours is of other data than the paper's and no reproduction: {comparison.origins(results)}.")
    if notes:
        st.caption(escape_markdown(" ".join(notes)))
    if len(results):
        _show_ours(preset, table, results)
    for command, without in missing_results(table, runs, test, results).items():
        empty_state_of_runs(
            "Not computed of these runs yet; the reported measures can be had of them:", without, command
        )


def _show_ours(preset: Preset, table: Table, results: pd.DataFrame) -> None:
    """Table of our numbers with the reported ones of the same measure, their origin and the differences in setup."""
    st.subheader("Reported vs. ours")
    lines = comparison.compared(table, results)
    order = [name for name in _OURS if _has_values(lines[name])]
    st.dataframe(
        lines, hide_index=True, column_config=_OURS, column_order=order, placeholder="",
        key=f"ours-{preset.paper}-{table.id}", alt=f"{preset.title}: ours beside reported values",
    )  # fmt: skip
    with st.expander("LaTeX table"):
        st.code(beside_latex(lines, comparison.origins(results)), language="latex", wrap_lines=True)


def _stamps(runs: Sequence[Run], test: str) -> figure_view.Stamps:
    """Cache key that changes with the runs' translations and results of a test set."""
    result_times = [tuple(path.stat().st_mtime for path in result_files(run, test) if path.is_file()) for run in runs]
    return (*figure_view.stamps(runs, test), *result_times)


def _has_values(column: pd.Series) -> bool:
    """Return True if the column has a value."""
    return bool((column.notna() & (column.astype(str) != "")).any())


def show_dots(preset: Preset, table: Table, frame: Frame) -> None:
    """Dot plot of the same numbers."""
    labels = {column.key: column.label for column in presets.columns_with_values(table)}
    if len(table.rows) < FEWEST_DOTS:
        return
    if not labels:
        empty_state(f"The paper draws {preset.title} and prints none of its values.")
        return
    scored = [column.key for column in table.columns if column.key in labels and column.measure in METRIC_NAMES]
    key = f"columns-{preset.paper}-{table.id}"
    columns = st.pills("Columns drawn", list(labels), format_func=labels.__getitem__, selection_mode="multi",
                       default=scored or list(labels), key=key, persist_state="session")  # fmt: skip
    if columns:
        relative = any(column.measure in SPEEDS for column in table.columns if column.key in columns)
        options = {"paper": preset.paper, "table": table.id, "columns": columns, "relative": relative}
        runs = [run for run in presets.in_row_order(table, frame.tested) if presets.rows_of(table, run.system)]
        figure_view.show("paper-table", frame.request(runs, **options))
    else:
        empty_state("Choose a column above.")


def show_checks(checks: pd.DataFrame) -> None:
    """Reported and recomputed numbers: badges with the counts of equal and different ones, and the table."""
    if checks.empty:
        st.text("Nothing here can be recomputed from the paper's own numbers.")
        return
    agreeing = int(checks["agrees"].sum())
    with st.container(horizontal=True):
        if agreeing:
            st.badge(f"reported = recomputed: {agreeing}", icon=":material/check:", color="green")
        if agreeing < len(checks):
            st.badge(f"reported ≠ recomputed: {len(checks) - agreeing}", icon=":material/difference:", color="orange")
    for check in checks[~checks["agrees"].astype(bool)].to_dict("records"):
        st.text(f"{check['what']}: reported {check['reported']}, recomputed {check['recomputed']}.")
    outcome = checks["agrees"].map({True: "agrees", False: "differs"})
    rows = checks.assign(outcome=outcome).sort_values("agrees", kind="stable")
    st.dataframe(rows, hide_index=True, column_config=_CHECKS, column_order=list(_CHECKS), placeholder="",
                 alt="Reported numbers and what the paper's own numbers give")  # fmt: skip


def show_drawing(table: Table, frame: Frame) -> None:
    """Figure of our runs that corresponds to the paper's figure."""
    if not frame.known:
        empty_state(
            "There is no run here yet, so nothing of ours can be drawn. Build the demo, on the page Start or so:",
            shlex.join(["workbench", "demo", "--runs", str(frame.root)]),
        )
    elif not frame.tested:
        empty_state(
            "Choose runs that have translated a test set in the sidebar; the same kind of figure is drawn of them."
        )
    else:
        runs, option = presets.in_row_order(table, frame.tested), str(table.options.get("option", ""))
        runs = [run for run in runs if not (option and run.outside)]  # translated elsewhere: without any option
        if option and option not in ablation.varied_options(ablation.settings_of_runs(runs)):
            experiment = ablation.experiment_varying(option, table.rows[0].system)
            if experiment is not None:
                figure_view.show(table.drawing, frame.request((), experiment=experiment, **table.options))
                return
        figure_view.show(table.drawing, frame.request(runs, **table.options))


def show_cases(preset: Preset, frame: Frame) -> None:
    """Translation cases of the paper, our sentence in the same form, and links to pages that show it."""
    for case in preset.cases:
        with st.container(border=True):
            st.text(case.what)
            st.caption(escape_markdown(f"Shows: {case.shows}. Systems: {', '.join(case.systems) or 'not said'}."))
    if frame.tested:
        st.caption(f"This work, sentence {frame.view.sentence} of the sidebar:")
        texts = {name: text for name, text in sentence_texts.texts(frame).items() if text is not None}
        base = REFERENCE if REFERENCE in texts else next(name for name in texts if name != SOURCE)
        translation_case.show(texts, base)
    with st.container(horizontal=True):
        for page, label in (("sentences", "Our sentences"), ("beam_trees", "Our beam trees")):
            st.page_link(page_file(page), label=label, icon=":material/arrow_forward:")


def show_claims(claims: pd.DataFrame) -> None:
    """Table of the numbers in the paper's text."""
    st.dataframe(claims, hide_index=True, column_config=_CLAIMS, column_order=list(_CLAIMS), key="claims",
                 placeholder="", alt="Numbers in the paper's text")  # fmt: skip
