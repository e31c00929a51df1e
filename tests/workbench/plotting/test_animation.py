"""Charts that play: every frame is the chart of its own step, and the layout leaves room for the controls."""

import numpy as np
import pandas as pd
import pytest

from workbench.plotting.animation import growing, through
from workbench.plotting.axes import matrix_table
from workbench.plotting.grammar import Figure, Heat, Line, Panel, Points, Segments
from workbench.plotting.plotly_renderer import to_plotly

pytestmark = pytest.mark.long

CELLS = [np.full((2, 3), value) for value in (0.2, 0.5, 0.9)]


def _map(values: np.ndarray, title: str = "") -> Figure:
    return Figure("map", "Map", (Panel((Heat(matrix_table(values), "x", "y"),), title=title),))


def _tree() -> Figure:
    nodes = pd.DataFrame({"x": [0, 1, 1, 2], "y": [0.0, 1.0, -1.0, 1.0]})
    edges = pd.DataFrame({"x": [0, 0, 1], "y": [0.0, 0.0, 1.0], "x_end": [1, 1, 2], "y_end": [1.0, -1.0, 1.0]})
    return Figure("tree", "Tree", (Panel((Segments(edges, "x", "y", "edges"), Points(nodes, "x", "y", "nodes"))),))


def test_a_frame_is_the_chart_of_its_step_and_the_last_one_stands_at_first():
    charts = [to_plotly(_map(values, f"iteration {number}")) for number, values in enumerate(CELLS)]
    playing = through(charts, ["1", "2", "3"])
    assert [frame.name for frame in playing.frames] == ["1", "2", "3"]
    for frame, chart in zip(playing.frames, charts, strict=True):
        np.testing.assert_array_equal(frame.data[0].z, chart.data[0].z)
        assert frame.layout.annotations[0].text == chart.layout.annotations[0].text, "titles of panels change too"
    np.testing.assert_array_equal(playing.data[0].z, charts[-1].data[0].z)
    assert [step.label for step in playing.layout.sliders[0].steps] == ["1", "2", "3"]
    assert charts[0].layout.sliders == (), "the charts themselves stay as they are"


def test_charts_of_other_traces_do_not_play():
    with pytest.raises(ValueError, match="same panels"):
        through([to_plotly(_map(CELLS[0])), to_plotly(_tree())], ["1", "2"])
    with pytest.raises(ValueError, match="label"):
        through([to_plotly(_map(CELLS[0]))], ["1", "2"])


def test_a_growing_chart_shows_what_lies_left_of_the_step():
    chart = to_plotly(_tree())
    playing = growing(chart, [0, 1, 2])
    for step, frame in zip((0, 1, 2), playing.frames, strict=True):
        for trace, drawn in zip(chart.data, frame.data, strict=True):
            x, y = np.asarray(trace.x, float), np.asarray(trace.y, float)
            shown = np.isfinite(np.asarray(drawn.y, float))
            np.testing.assert_array_equal(shown, (x <= step) & np.isfinite(y))
    assert np.isfinite(np.asarray(playing.frames[-1].data[1].y, float)).all()


def test_the_controls_stand_below_panels_of_unchanged_size():
    lines = Panel(
        (Line(pd.DataFrame({"x": [0, 1], "y": [0, 1]}), "x", "y", name) for name in ("a", "b")),
    )
    chart = to_plotly(Figure("two", "Two", (Panel(tuple(lines.marks)),)))
    playing = growing(chart, [0, 1])

    def area(drawn):
        return drawn.layout.height - drawn.layout.margin.t - drawn.layout.margin.b

    assert area(playing) == area(chart)
    assert playing.layout.height > chart.layout.height
    from_top = [(1 - drawn.layout.legend.y) * drawn.layout.height for drawn in (chart, playing)]
    assert from_top[0] == pytest.approx(from_top[1])
