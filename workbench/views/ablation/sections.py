"""Section of ablations: scores and costs over the values of one option, costs by length, differences by experiment.

Used by the pages of mechanisms with options to vary. Arranges controls and figures; the figures compute.
"""

from __future__ import annotations

import streamlit as st

from workbench.app.components import empty_states, figure_view
from workbench.app.frame import Frame, errors_as_messages
from workbench.app.pages import Page
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.experiments import ablation
from workbench.figures.options import default
from workbench.store.runs import Run
from workbench.views.ablation.difference_figures import DifferenceOptions, varied_between
from workbench.views.ablation.length_cost import length_benches

HERE, SCOPE = "runs", "context_sentences"


def ablations(frame: Frame, page: Page, stacked: bool = False) -> None:
    """Ablations of the runs in the folders of the chosen runs, or of an experiment with results.

    page: options of its mechanisms come first, and so do experiments with such options.
    stacked: show BLEU and chrF below each other instead of one metric, no cost by length, and only systems that read
    context sentences.
    """
    candidates = _runs_in_same_folders(frame)
    with errors_as_messages():
        settings = {HERE: ablation.settings_of_runs(candidates)}
        settings |= {name: ablation.settings_of_experiment(name) for name in ablation.experiments()}
        if stacked:
            settings = {
                name: {system: system_settings for system, system_settings in group.items() if SCOPE in system_settings}
                for name, group in settings.items()
            }
        own = {name: ablation.varied_options_of(page.mechanisms, group) for name, group in settings.items()}
        options = {
            name: list(dict.fromkeys([*own[name], *ablation.varied_options(group)])) for name, group in settings.items()
        }
        sources = sorted((name for name, varied in options.items() if varied), key=lambda name: not own[name])
        if not sources:
            empty_states.empty_state(
                "No two runs here differ in one option alone. A grid of systems in a file makes such runs:",
                "workbench experiment run "
                + ("data/experiments/controlled-documents-sweeps.yaml" if stacked else "FILE"),
            )
            return
        columns = st.columns([3, 3, 2])
        source = columns[0].selectbox(
            "Of", sources, key="swept", bind="query-params",
            format_func=lambda name: "The runs in the same folder" if name == HERE else name,
        )  # fmt: skip
        option = columns[1].selectbox(
            "Option",
            options[source],
            format_func=lambda name: name.replace("_", " "),
            key="option",
            bind="query-params",
        )
        metric = (
            "bleu"
            if stacked
            else columns[2].selectbox(
                "Metric",
                ["bleu", "chrf"],
                format_func=METRIC_NAMES.__getitem__,
                key="ablation-metric",
                bind="query-params",
            )
        )
        figure_options = {"option": option} if stacked else {"option": option, "metric": metric}
        figure = "ablation-stacked" if stacked else "ablation"
        if source == HERE:
            figure_view.show(figure, frame.request(candidates, **figure_options))
        else:
            figure_view.show(figure, frame.request((), experiment=source, **figure_options))
        for bench in ablation.benches_of(option):
            figure_view.show("ablation-cost", frame.request((), option=option, bench=bench), key=bench)
        if not stacked:
            for bench in length_benches():
                figure_view.show("length-cost", frame.request((), bench=bench), key=bench)
            _across_experiments(frame, metric)


def _across_experiments(frame: Frame, metric: str) -> None:
    """Differences to the baselines of experiments that differ in an option: is a gain that of one size?"""
    left, right = st.columns([5, 3])
    names = left.multiselect(
        "Experiments",
        ablation.experiments(),
        default=default(DifferenceOptions, "experiments"),
        key="experiments",
        bind="query-params",
    )
    varied = varied_between(names)
    if not varied:
        st.caption("Choose two experiments whose systems differ in an option, such as the width.")
        return
    standard = default(DifferenceOptions, "option")
    option = right.selectbox(
        "Option that differs between them",
        varied,
        index=varied.index(standard) if standard in varied else 0,
        format_func=lambda name: name.replace("_", " "),
        key="option-between",
        bind="query-params",
    )
    figure_view.show("ablation-differences", frame.request((), experiments=tuple(names), option=option, metric=metric))


def _runs_in_same_folders(frame: Frame) -> list[Run]:
    """Runs in the same folders as the chosen ones that have translated the test set."""
    folders = {run.folder.parent for run in frame.chosen}
    return [
        run
        for run in frame.runs
        if run.folder.parent in folders and not run.problem and not run.outside and frame.view.test in run.tests()
    ]
