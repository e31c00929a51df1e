"""One option at several values: what it does to scores, and what it costs; and what systems cost by sentence length.

A section of the pages whose mechanisms have options to vary. It arranges controls and figures; drawings compute.
"""

from __future__ import annotations

import streamlit as st

from workbench.app.components import empty_states, figure_view
from workbench.app.frame import Frame, errors_as_messages
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.experiments import ablation
from workbench.store.runs import Run
from workbench.views.ablation.length_cost import length_benches

HERE, SCOPE = "runs", "context_sentences"


def ablations(frame: Frame, stacked: bool = False) -> None:
    """Of the runs beside the chosen ones, or of an experiment whose results are here.

    stacked: BLEU and chrF, one below the other, instead of one metric, no cost by length, and only systems that read
    the sentences before.
    """
    beside = _beside(frame)
    with errors_as_messages():
        settings = {HERE: ablation.settings_of_runs(beside)}
        settings |= {name: ablation.settings_of_experiment(name) for name in ablation.experiments()}
        if stacked:
            settings = {
                name: {system: own for system, own in found.items() if SCOPE in own} for name, found in settings.items()
            }
        options = {name: ablation.varied_options(found) for name, found in settings.items()}
        known = [name for name, varied in options.items() if varied]
        if not known:
            empty_states.empty_state(
                "No two runs here differ in one option alone. A grid of systems in a file makes such runs:",
                "workbench experiment run "
                + ("data/experiments/controlled-documents-sweeps.yaml" if stacked else "FILE"),
            )
            return
        columns = st.columns([3, 3, 2])
        which = columns[0].selectbox(
            "Of", known, format_func=lambda name: "The runs in the same folder" if name == HERE else name, key="swept",
            bind="query-params",
        )  # fmt: skip
        option = columns[1].selectbox(
            "Option", options[which], format_func=lambda name: name.replace("_", " "), key="option", bind="query-params"
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
        asked = {"option": option} if stacked else {"option": option, "metric": metric}
        figure = "ablation-stacked" if stacked else "ablation"
        if which == HERE:
            figure_view.show(figure, frame.request(beside, **asked))
        else:
            figure_view.show(figure, frame.request((), experiment=which, **asked))
        for bench in ablation.benches_of(option):
            figure_view.show("ablation-cost", frame.request((), option=option, bench=bench), key=bench)
        for bench in () if stacked else length_benches():
            figure_view.show("length-cost", frame.request((), bench=bench), key=bench)


def _beside(frame: Frame) -> list[Run]:
    """All runs in the folders of the chosen ones that have translated the test set."""
    folders = {run.folder.parent for run in frame.chosen}
    return [
        run
        for run in frame.runs
        if run.folder.parent in folders and not run.problem and not run.outside and frame.view.test in run.tests()
    ]
