"""Sections of the page Human rating: create a study, import ratings, and show results by system on request."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.components import empty_states, figure_view, upload
from workbench.app.frame import Frame, escape_markdown
from workbench.figures.request import Request
from workbench.store import rating_studies as rating
from workbench.store.csv_cells import csv_text
from workbench.store.rating_studies import Study
from workbench.views.human_evaluation import tables

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

Number = st.column_config.NumberColumn
_SCORES = {"score": Number(format="%.2f"), "low": Number("95% CI lower", format="%.2f"),
           "high": Number("95% CI upper", format="%.2f"), "n": "sentences"}  # fmt: skip
_TESTS = {"difference": Number(format="%+.2f"), "low": Number("95% CI lower", format="%+.2f"),
          "high": Number("95% CI upper", format="%+.2f"), "p_value": Number("p", format="%.4f"),
          "p_holm": Number("p (Holm-corrected)", format="%.4f")}  # fmt: skip
_AGREEMENT = {"alpha": Number("Krippendorff's alpha", format="%.3f"), "units": "translations"}


def choose_study(frame: Frame) -> str:
    """Select box of studies; without a study shows how to create one and stops the page."""
    names = rating.studies(frame.root)
    if not names:
        message = "There is no study here yet. Create one above, or on the command line:"
        empty_states.empty_state(message, _command(frame, "NAME", 100, 1))
        st.stop()
    return st.selectbox("Study", names, key="study", bind="query-params")


def new_study(frame: Frame) -> None:
    """Controls that create a study of the chosen runs."""
    st.text(f"Runs: {', '.join(run.name for run in frame.tested)}. Test set: {frame.view.test}.")
    count = len(frame.tested[0].translations(frame.view.test))
    with st.form("new-study", clear_on_submit=False):
        name = st.text_input("Name", placeholder="letters, digits, + and -").strip()
        left, right = st.columns(2)
        sentences = int(left.number_input("Sentences, sampled without replacement", 1, count, min(100, count)))
        seed = int(right.number_input("Random seed", 0, 2**31 - 1, 1))
        reference = st.toggle("Show the reference to raters", False)
        submitted = st.form_submit_button("Create study", type="primary")
    st.code(_command(frame, name or "NAME", sentences, seed, reference), language="bash", wrap_lines=True)
    if submitted:
        study = rating.create(frame.root, name, frame.tested, frame.view.test, sentences, seed, reference)
        message = f"{study.name} is there: {len(study.items)} sentences, {len(study.systems)} systems."
        st.success(escape_markdown(message))


def _command(frame: Frame, name: str, sentences: int, seed: int, reference: bool = False) -> str:
    words = ["workbench", "rating", "new", name]
    for run in frame.tested:
        words += ["--run", run.argument]
    words += ["--test", frame.view.test, "--sentences", str(sentences), "--seed", str(seed), "--runs", str(frame.root)]
    return shlex.join([*words, *(["--reference"] if reference else [])])


def show(frame: Frame, study: Study) -> None:
    """Progress of the raters, import of ratings, and results on request."""
    rows = []
    for rater in study.raters:
        marks = rating.marks(study, rater)
        rows.append({"rater": rater, "rated": sum(rating.is_rated(study, rater, item, marks) for item in study.items)})
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    left.text(f"{len(study.items)} sentences of {study.test}; " + (_progress_text(rows) or "nobody has begun."))
    with right.popover("Import ratings"):
        st.caption("A CSV file: a form that was filled in, or an export. A row a rater, sentence and translation.")
        upload.take_in(["csv"], f"ratings-{study.name}", lambda file: _import_ratings(study, file))
    if st.toggle("Unblind: say which system is which", False, key="unblind"):
        _unblinded(frame, rating.open_study(frame.root, study.name))


def _import_ratings(study: Study, file: UploadedFile) -> str:
    counts = tables.bring_in(study, file, file.name)
    return "Kept: " + ", ".join(f"{count} ratings of {rater}" for rater, count in counts.items()) + "."


def _progress_text(rows: list[dict[str, object]]) -> str:
    return ", ".join(f"{row['rater']} has rated {row['rated']}" for row in rows) + "." if rows else ""


def _unblinded(frame: Frame, study: Study) -> None:
    default = study.systems.index(frame.view.baseline) if frame.view.baseline in study.systems else 0
    baseline = st.selectbox("Baseline of the study", study.systems, default, key=f"rating-baseline-{study.name}")
    results = tables.results(study, baseline)
    runs = [run for run in frame.runs if not run.problem and rating.system_name(frame.root, run) in study.systems]
    if runs:
        runs.sort(key=lambda run: rating.system_name(frame.root, run) != baseline)
        request = Request(tuple(runs), study.test, options={"study": study.name}, palette_runs=frame.chosen)
        figure_view.show("human-rating", request)
    st.subheader("Results")
    st.dataframe(
        results.intervals, hide_index=True, placeholder="–", column_config=_SCORES, alt="Mean ratings with intervals"
    )
    st.caption(escape_markdown(f"{results.counted}. Intervals: 95% bootstrap over sentences."))
    if results.differences is not None:
        st.subheader("Difference to the baseline")
        st.dataframe(
            results.differences,
            hide_index=True,
            placeholder="–",
            column_config=_TESTS,
            alt="Differences to the baseline",
        )
    st.subheader("Agreement of the raters")
    st.dataframe(
        results.agreement, hide_index=True, placeholder="–", column_config=_AGREEMENT, alt="Krippendorff's alpha"
    )
    st.download_button(
        "Download the ratings",
        csv_text(tables.export(study)),
        f"{study.name}.csv",
        "text/csv",
        on_click="ignore",
    )
