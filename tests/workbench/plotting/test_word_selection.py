"""Words along an axis, the word at a position of a chart, and frames around a selected word."""

import numpy as np
import pandas as pd
import pytest

from workbench.plotting.axes import matrix_table, token_axis
from workbench.plotting.grammar import Axis, Bars, Figure, Heat, Panel
from workbench.plotting.plotly_renderer import to_plotly
from workbench.plotting.word_selection import frames

pytestmark = pytest.mark.long

PIECES = ["▁the", "▁un", "seen", "▁cat", "</s>"]


def test_pieces_have_the_number_of_their_word():
    assert token_axis(PIECES, side="source").words == (0, 1, 1, 2, 3)
    assert token_axis(["the", "cat"], side="target").words == (0, 1)
    assert token_axis(PIECES).words == (), "an axis without a side has no word to select"


def test_the_token_that_begins_a_target_is_no_word():
    assert token_axis(["<s>", *PIECES[:-1]], side="target").words == (-1, 0, 1, 1, 2)


def test_words_of_a_sentence_count_after_the_context_that_is_joined_to_it():
    own = token_axis(PIECES, side="source").words
    before = ["▁it", "</s>", "▁he", "▁ran", "</s>"]
    assert token_axis([*before, *PIECES], side="source").words == (-5, -4, -3, -2, -1, *own)


def _figure(copies: int = 1) -> Figure:
    """Maps of three target words by the pieces, and below each bars of the pieces."""
    cells = matrix_table(np.full((3, 5), 0.1), x="source", y="target")
    x = token_axis(PIECES, side="source")
    words = token_axis(["die", "Katze", "</s>"], side="target", reversed=True)
    bars = Bars(pd.DataFrame({"x": range(5), "y": [1.0] * 5}), "x", "y")
    maps = [Panel((Heat(cells, "source", "target"),), x, words) for _ in range(copies)]
    return Figure("both", "Both", (*maps, *(Panel((bars,), x) for _ in range(copies))), columns=copies)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_selected_word_is_framed_over_all_of_its_pieces_in_every_panel(copies):
    chart = to_plotly(_figure(copies), width=1200)
    shapes = frames(chart, {"source": 1})
    assert [(shape["x0"], shape["x1"]) for shape in shapes] == [(0.5, 2.5)] * 2 * copies
    axes = [trace.xaxis for trace in chart.data]
    assert [shape["xref"] for shape in shapes] == axes, "one frame a panel"
    assert all(shape["yref"] == f"{trace.yaxis} domain" for shape, trace in zip(shapes, chart.data, strict=True))


def test_a_selected_target_word_frames_a_row_of_maps_and_nothing_else():
    (shape,) = frames(to_plotly(_figure()), {"target": 2})
    assert (shape["y0"], shape["y1"], shape["yref"], shape["xref"]) == (1.5, 2.5, "y", "x domain")


def test_a_frame_hides_no_cell_and_shades_bars():
    over_map, over_bars = frames(to_plotly(_figure()), {"source": 0})
    assert over_map["fillcolor"] == "rgba(0,0,0,0)"
    assert over_bars["fillcolor"] != "rgba(0,0,0,0)"


def test_a_word_that_no_axis_has_frames_nothing():
    chart = to_plotly(_figure())
    assert frames(chart, {"source": 9}) == frames(chart, {}) == []


def test_a_chart_without_texts_has_nothing_to_select():
    bars = Bars(pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 2.0]}), "x", "y")
    chart = to_plotly(Figure("plain", "Plain", (Panel((bars,), Axis("number")),)))
    assert frames(chart, {"source": 0, "target": 0}) == []
