"""Tables of the page Scores: scores with signatures, paired tests against the baseline, LaTeX."""

from __future__ import annotations

import shlex
from dataclasses import asdict

import pandas as pd
import streamlit as st

from analyses.scores import FORMER_PRESETS, PRESETS
from workbench.app.components import figure_view, page_sections
from workbench.app.components.figure_view import Stamps, stamps
from workbench.app.frame import Frame, escape_markdown
from workbench.evaluation import scoring
from workbench.evaluation.scoring import METRIC_NAMES, Counting
from workbench.export.latex import score_table_latex
from workbench.store.runs import Run, short_names
from workbench.store.search_settings import search_note
from workbench.store.training_logs import precision_note
from workbench.views.scores import test_sets
from workbench.views.scores.verdict import METHOD_TEXTS, verdict

METHOD_NAMES = {
    "bootstrap": "Bootstrap",
    "randomization": "Randomization",
    "sign": "Sign test",
    "bootstrap-sacrebleu": "Bootstrap, sacreBLEU's p",
}
Number = st.column_config.NumberColumn

_SCORES = {
    "system": "System",
    "metric": "Metric",
    "score": Number("Score", format="%.2f"),
    "low": Number("95% CI lower", format="%.2f"),
    "high": Number("95% CI upper", format="%.2f"),
    "n": Number("Sentences", format="localized"),
    "signature": st.column_config.TextColumn("Signature", width="large"),
}
_TESTS = {
    "system": "System",
    "metric": "Metric",
    "score": Number("Score", format="%.2f"),
    "delta": Number("Difference", format="%+.2f"),
    "low": Number("95% CI lower", format="%+.2f"),
    "high": Number("95% CI upper", format="%+.2f"),
    "p_value": Number("p", format="%.4f"),
    "p_holm": Number("p (Holm-corrected)", format="%.4f"),
}
_BESIDE = {test_sets.DELTA: "%+.2f", test_sets.P: "%.4f"}


@st.cache_data(max_entries=16, show_spinner="Scoring")
def _scores(
    key: Stamps, test: str, metrics: tuple[str, ...], counting: Counting, _runs: tuple[Run, ...]
) -> pd.DataFrame:
    return scoring.score_table(_runs, test, metrics, counting=counting)


@st.cache_data(max_entries=16, show_spinner="Testing the differences")
def _comparison(
    key: Stamps, test: str, metrics: tuple[str, ...], method: str, counting: Counting, _runs: tuple[Run, ...]
) -> pd.DataFrame:
    return scoring.comparison_table(_runs, test, _runs[0].name, method, metrics, counting)


def choose_counting(references: int) -> Counting:
    """Controls of scoring: a preset and, with several references, one of them or all."""
    left, right = st.columns(2)
    asked = st.query_params.get("preset", "")  # NAME: DESCRIPTION, whatever it is called and described as today
    name = FORMER_PRESETS.get(asked.partition(":")[0], asked.partition(":")[0])
    if name in PRESETS:
        page_sections.read_old_label("preset", {asked: name})
    preset = left.selectbox(
        "Metric settings (sacreBLEU signature)",
        list(PRESETS),
        format_func=lambda name: f"{name}: {PRESETS[name].description}",
        key="preset",
        bind="query-params",
    )
    if references < 2:
        return Counting(preset)
    names = {0: f"all {references} together", **{number: str(number) for number in range(1, references + 1)}}
    reference = right.selectbox(
        "Reference", list(names), format_func=names.__getitem__, key="reference", bind="query-params"
    )
    return Counting(preset, reference)


def show(frame: Frame, metrics: list[str], method: str, counting: Counting) -> None:
    """Tables of scores and of differences to the baseline with p-values, and the LaTeX table."""
    runs, test = frame.tested, frame.view.test
    key = stamps(runs, test)
    scores = _with_display_names(_scores(key, test, tuple(metrics), counting, runs), runs)
    _table(scores, _SCORES, "Scores with intervals", ["evaluate", *_counting_arguments(counting)], runs, test, metrics)
    st.subheader("Difference to the baseline")
    tests, baseline = None, short_names(runs)[runs[0].name]
    if len(runs) < 2:
        st.text("A test needs a second run that has translated this test set: choose one in the sidebar.")
    else:
        tests = _with_display_names(_comparison(key, test, tuple(metrics), method, counting, runs), runs)
        for _, of_metric in tests.groupby("metric", sort=False):
            st.text(verdict(of_metric, baseline))
        without = " It gives no interval (–)." if tests[["low", "high"]].isna().all(axis=None) else ""
        corrected = "Holm's correction runs over the systems of one metric."
        notes = "".join(f" {note}" for note in (precision_note(runs), search_note(runs, [test])) if note)
        st.caption(escape_markdown(f"Baseline: {baseline}. {METHOD_TEXTS[method]}; {corrected}{without}{notes}"))
        _table(
            tests,
            _TESTS,
            "Differences to the baseline",
            ["compare", "--method", method, *_counting_arguments(counting)],
            runs,
            test,
            metrics,
        )
    with st.expander("LaTeX table"):
        st.code(score_table_latex(scores, tests, baseline), language="latex", wrap_lines=True)


def show_pairs(frame: Frame, metrics: list[str], method: str, counting: Counting) -> None:
    """Matrix of every pair of three runs or more, under one of the chosen metrics."""
    if len(frame.tested) < 3:
        return
    st.subheader("Every pair")
    metric = metrics[0]
    if len(metrics) > 1:
        metric = st.segmented_control(
            "Metric of the pairs", metrics, format_func=METRIC_NAMES.__getitem__, default=metric, required=True,
            key="pairs", bind="query-params",
        )  # fmt: skip
    figure_view.show("score-pairs", frame.request(metric=metric, method=method, **asdict(counting)))


def show_by_test(frame: Frame, metrics: list[str], method: str, counting: Counting) -> None:
    """Scores of all test sets that the runs share, on request: figure, table and LaTeX table."""
    runs = frame.tested
    tests = test_sets.shared_tests(runs)
    if len(tests) < 2:
        return
    st.subheader("All test sets")
    left, right = st.columns([2, 5], vertical_alignment="bottom")
    metric = left.selectbox("Metric", metrics, format_func=METRIC_NAMES.__getitem__, key="by-test-metric")
    if not right.toggle(f"Score all {len(tests)} test sets", key="by-test", bind="query-params"):
        return
    figure_view.show("scores-by-test", frame.request(metric=metric, tests=tests, **asdict(counting)))
    scores, compared = _by_test(stamps(runs, *tests), tuple(tests), metric, method, counting, runs)
    table = test_sets.wide(
        _with_display_names(scores, runs), None if compared is None else _with_display_names(compared, runs)
    )
    formats = {test_sets.difference_column(sign, test): form for sign, form in _BESIDE.items() for test in tests}
    numbers = {name: Number(format=formats.get(name, "%.2f")) for name in map(str, table) if name != test_sets.SYSTEM}
    numbers |= {test_sets.MEAN: Number("mean", format="%.2f")}
    system = {test_sets.SYSTEM: st.column_config.TextColumn("System", pinned=True)}
    st.dataframe(
        table, hide_index=True, column_config={**system, **numbers}, placeholder="–",
        key="by-test-table", alt=f"{METRIC_NAMES[metric]} by test set",
    )  # fmt: skip
    baseline = short_names(runs)[runs[0].name]
    if compared is not None:
        corrected = f"p (Holm-corrected) over all {len(compared)} differences of the table"
        st.caption(escape_markdown(f"Δ: to {baseline}. {METHOD_TEXTS[method]}; {corrected}."))
    arguments = ["compare" if len(runs) > 1 else "evaluate", *(run.argument for run in runs)]
    arguments += [word for test in tests for word in ("--test", test)]
    arguments += ["--method", method] if len(runs) > 1 else []
    with st.popover("Command"):
        command = shlex.join(["workbench", *arguments, *_counting_arguments(counting), "--metrics", metric])
        st.code(command, language="bash", wrap_lines=True)
    with st.expander("LaTeX table of all test sets"):
        latex_arguments = (
            _with_display_names(scores, runs),
            None if compared is None else _with_display_names(compared, runs),
            baseline,
        )
        st.code(score_table_latex(*latex_arguments), language="latex", wrap_lines=True)


@st.cache_data(max_entries=16, show_spinner="Scoring all test sets")
def _by_test(
    key: Stamps, tests: tuple[str, ...], metric: str, method: str, counting: Counting, _runs: tuple[Run, ...]
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Scores with their means, and differences to the first run (None for a single run)."""
    scores = test_sets.with_means(test_sets.score_table(_runs, tests, [metric], counting=counting))
    if len(_runs) < 2:
        return scores, None
    return scores, test_sets.comparison_table(_runs, tests, _runs[0].name, method, [metric], counting)


def _counting_arguments(counting: Counting) -> list[str]:
    """Command arguments of the scoring settings; none for the default."""
    preset = [] if counting.preset == Counting.preset else ["--preset", counting.preset]
    return preset + (["--reference", str(counting.reference)] if counting.reference else [])


def _with_display_names(table: pd.DataFrame, runs: tuple[Run, ...]) -> pd.DataFrame:
    return table.assign(system=table["system"].map(short_names(runs)), metric=table["metric"].replace(METRIC_NAMES))


def _table(
    table: pd.DataFrame,
    columns: dict[str, object],
    title: str,
    command: list[str],
    runs: tuple[Run, ...],
    test: str,
    metrics: list[str],
) -> None:
    """Show a table with the command that prints it; the baseline is the first run of the command."""
    st.dataframe(
        table, hide_index=True, column_config=columns, column_order=list(columns), placeholder="–", key=title,
        alt=title,
    )  # fmt: skip
    arguments = ["workbench", command[0], *(run.argument for run in runs), "--test", test, *command[1:]]
    with st.popover("Command"):
        st.code(shlex.join([*arguments, "--metrics", ",".join(metrics)]), language="bash", wrap_lines=True)
