"""Labels of axes: which ones there are on paper, and how tokens and pieces are written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.workbench.plotting.heat_maps import heat_of
from tests.workbench.plotting.labels import paper_labels
from workbench.plotting.axes import category_axis, label_every, token_axis
from workbench.plotting.grammar import Axis, Figure, Line, Panel, Points
from workbench.plotting.matplotlib_renderer import to_matplotlib

pytestmark = pytest.mark.long


def test_a_logarithmic_axis_keeps_its_labels_on_paper():
    table = pd.DataFrame({"step": [1.0, 2.0], "rank": [1.0, 5000.0]})
    powers = (1.0, 10.0, 100.0, 1000.0)
    texts = tuple(f"{power:g}" for power in powers)
    rank = Axis("rank", positions=powers, texts=texts, range=(0.8, 7000.0), log=True)
    figure = Figure("ranks", "Ranks", (Panel((Line(table, "step", "rank", "gdr"),), y=rank, height=0.75),))
    assert paper_labels(to_matplotlib(figure).axes[0].yaxis) == list(texts)


def test_a_legend_and_titles_take_no_label_of_a_category_axis_on_paper():
    claims = ["Model I", "Model II", "Model I (big)", "Model II (big)"]
    table = pd.DataFrame({"gain": [0.1, 0.2, 0.3, 0.4], "place": range(4)})
    marks = tuple(Points(table, "gain", "place", f"a test set with a long name, {number}") for number in range(8))
    panels = (Panel(marks, y=category_axis(claims, reversed=True), height=0.68, title="scale-width-256-rate-0.001"),)
    figure = Figure("gains", "Gains", 12 * panels, shared_y=True, columns=4)
    axes = to_matplotlib(figure).axes
    assert [paper_labels(one.yaxis) for one in axes[::4]] == [claims] * 3


@pytest.mark.parametrize(("tokens", "panels", "columns"), [(8, 3, 3), (20, 3, 2), (30, 3, 1), (30, 2, 1), (12, 5, 3)])
def test_panels_that_are_compared_move_below_each_other_on_paper_until_every_token_has_a_label(tokens, panels, columns):
    words = [f"word{number}" for number in range(tokens)]
    panel = Panel((heat_of(np.eye(tokens)),), token_axis(words), token_axis(words, reversed=True), title="A system")
    figure = Figure("maps", "Maps", (panel,) * panels, width="page", columns=panels, side_by_side=True, shared_y=True)
    axes = to_matplotlib(figure).axes[:panels]
    assert [paper_labels(one.xaxis) for one in axes] == [words] * panels
    assert len({round(one.get_position().x0, 3) for one in axes}) == columns


def test_labels_thin_out_above_forty_tokens():
    assert [label_every(count) for count in (1, 40, 41, 80, 81)] == [1, 1, 2, 2, 3]
    axis = token_axis([f"w{index}" for index in range(81)])
    assert len(axis.labelled()[0]) == 27
    assert axis.text_at(80.0) == "w80"


def test_labels_of_pieces_read_as_words_and_show_where_a_word_goes_on():
    pieces = ["<s>", "▁the", "▁dog", "s", "▁", "Xy", "▁sleep", "ing", "<unk>", "</s>"]
    assert token_axis(pieces).texts == ("<s>", "the", "dog", "·s", "␣", "·Xy", "sleep", "·ing", "<unk>", "</s>")
    words = ["the", "dogs", "</s>"]
    assert token_axis(words).texts == tuple(words)  # no pieces: nothing goes on
    continued = ["der", "Kr@@", "an", "sinkt", "</s>"]
    assert token_axis(continued).texts == tuple(continued)
    assert token_axis(continued, side="target").words == (0, 1, 1, 2, 3)


def test_category_axis_keeps_every_label():
    assert len(category_axis([str(index) for index in range(60)]).labelled()[1]) == 60
