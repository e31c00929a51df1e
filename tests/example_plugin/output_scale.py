"""An example of a package that adds to the workbench: a mechanism, an analysis, a figure, a page."""

import pandas as pd
import streamlit as st
import torch

from core_models.interface.mechanism import HookPoint, Mechanism
from core_models.system_catalogue import Entry
from workbench.app import frame
from workbench.app.components import empty_states, figure_view
from workbench.figures.request import named, styles
from workbench.views.scores.plots import score_dots


class OutputScale(Mechanism):
    """Scales what the vocabulary head reads by one number for each dimension."""

    hook_points = (HookPoint.OUTPUT,)

    def __init__(self, spec, options):
        super().__init__(spec, options)
        self.scale = torch.nn.Parameter(torch.ones(spec.widths["output"]))

    def at(self, hook_point, x, view, own_state):
        return x * self.scale


SYSTEM = Entry("Transformer, scaled outputs", "an example", {"mechanisms": [{"output_scale": {}}]})


def output_words(request):
    """Words a sentence that each system wrote."""
    lines = {run.name: pd.Series(run.translations(request.test).hypotheses) for run in request.runs}
    return pd.DataFrame([{"system": name, "words": own.str.split().str.len().mean()} for name, own in lines.items()])


def draw_output_words(request):
    table = output_words(request).rename(columns={"words": "score"}).assign(metric="words", low=float("nan"))
    return score_dots(named(table.assign(high=float("nan")), request), styles=styles(request))


def page():
    frame.heading("Output words", "How many words the systems write.")
    figure_view.show("output-words", empty_states.require_runs().request())
    st.text("Made by a plug-in.")
