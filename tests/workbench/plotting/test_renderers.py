"""One figure, two renderers: the same cells, lines, limits and labels, and every token as typed."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb

from tests.workbench.plotting.heat_maps import heat_of
from tests.workbench.plotting.labels import paper_labels
from workbench.plotting import theme
from workbench.plotting.axes import plotly_text, token_axis, token_text
from workbench.plotting.grammar import (
    Axis,
    Bars,
    Figure,
    Heat,
    Labels,
    Line,
    Outlines,
    Panel,
    Points,
    Segments,
    SeriesStyle,
    rule,
)
from workbench.plotting.matplotlib_renderer import to_matplotlib
from workbench.plotting.plotly_renderer import to_plotly

pytestmark = pytest.mark.long

SOURCE = ["the", "<b>", "the", "</s>", "$x$", "**", "我"]
TARGET = ["die", "a & b", "die"]


def heat_figure(role="probability", limits=(0.0, 1.0), matrix=None) -> Figure:
    if matrix is None:
        matrix = np.arange(21.0).reshape(3, 7) / 20.0
    heat = heat_of(matrix, SOURCE, TARGET, "source", "step", "value", role=role, limits=limits, label="P")
    panel = Panel((heat,), token_axis(SOURCE, "source"), token_axis(TARGET, "target", reversed=True), height=0.8)
    return Figure("map", "A map", (panel,))


def line_figure() -> Figure:
    table = pd.DataFrame(
        {
            "step": [1, 2, 3, 4],
            "loss": [4.0, np.nan, 2.0, 1.5],
            "low": [3.5, np.nan, 1.5, 1.0],
            "high": [4.5, np.nan, 2.5, 2],
        }
    )
    marks = (
        Line(table, "step", "loss", "gdr", theme.MODEL_1, low="low", high="high"),
        Points(table, "step", "loss", "reported", theme.REPORTED, low="low", high="high"),
        Bars(table, "step", "loss", "bars", theme.MODEL_2),
        Segments(table.assign(x2=0.0, y2=1.0), "step", "loss", "tree", x_end="x2", y_end="y2"),
        Labels(table.dropna().assign(text="<b> $x$"), "step", "loss"),
        rule(2.5),
    )
    return Figure("curve", "Curve", (Panel(marks, Axis("step", range=(0.5, 4.5)), Axis("loss", range=(0.0, 5.0))),))


def plotly_labels(axis) -> list[str]:
    return [html.unescape(text) for text in axis.ticktext]


def test_heat_cells_limits_and_labels_agree():
    figure = heat_figure()
    screen, paper = to_plotly(figure), to_matplotlib(figure)
    axes = paper.axes[0]
    mesh = axes.collections[0]
    expected = np.arange(21.0).reshape(3, 7) / 20.0
    np.testing.assert_allclose(screen.data[0].z, expected, atol=1e-7)
    np.testing.assert_allclose(mesh.get_array(), expected)
    assert (screen.layout.coloraxis.cmin, screen.layout.coloraxis.cmax) == mesh.get_clim() == (0.0, 1.0)
    assert plotly_labels(screen.layout.xaxis) == paper_labels(axes.xaxis) == SOURCE
    assert plotly_labels(screen.layout.yaxis) == paper_labels(axes.yaxis) == ["die", "a␣&␣b", "die"]
    assert list(screen.layout.yaxis.range) == list(axes.get_ylim()) == [2.5, -0.5]
    assert list(screen.layout.xaxis.range) == list(axes.get_xlim()) == [-0.5, 6.5]


def test_repeated_tokens_keep_their_columns():
    screen = to_plotly(heat_figure())
    assert screen.data[0].z.shape == (3, 7)
    assert list(screen.data[0].x) == [0, 1, 2, 3, 4, 5, 6]
    assert screen.layout.xaxis.type == "linear"


@pytest.mark.parametrize(("role", "limits"), [("signed", (-1.0, 0.5)), ("relative", (1 / 8, 4.0))])
def test_neutral_value_is_white_on_both(role, limits):
    neutral = {"signed": 0.0, "relative": 1.0}[role]
    figure = heat_figure(role, limits, np.full((3, 7), neutral))
    mesh = to_matplotlib(figure).axes[0].collections[0]
    assert min(mesh.cmap(mesh.norm(mesh.get_array()[0, 0]))) > 0.96
    screen = to_plotly(figure)
    axis = screen.layout.coloraxis
    assert axis.cmin == -axis.cmax == mesh.get_clim()[0]
    assert min(to_rgb(axis.colorscale[len(axis.colorscale) // 2][1])) > 0.96
    np.testing.assert_array_equal(screen.data[0].z, 0.0)


@pytest.mark.parametrize("role", ["probability", "signed", "relative"])
def test_a_map_has_the_same_colors_on_a_page_and_on_paper(role):
    figure = heat_figure(role, {"relative": (1 / 8, 8.0)}.get(role, (-1.0 if role == "signed" else 0.0, 1.0)))
    mesh = to_matplotlib(figure).axes[0].collections[0]
    for dark in (False, True):
        for position, color in to_plotly(figure, dark).layout.coloraxis.colorscale:
            np.testing.assert_allclose(to_rgb(color), mesh.cmap(position)[:3], atol=1 / 255)


def test_a_probability_is_white_at_0_and_bluer_and_darker_the_larger_it_is_in_grey_too():
    colors = np.array([to_rgb(color) for _, color in theme.color_scale("probability", (0.0, 1.0)).stops(65)])
    greys = np.array([to_rgb(theme.as_grey(to_hex(color)))[0] for color in colors])
    assert colors[0].min() > 0.96
    assert (np.diff(greys) < 0).all()
    assert greys[-1] < 0.2
    assert (colors[1:, 2] > colors[1:, 0]).all()


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize(("role", "limits"), [("probability", (0.0, 1.0)), ("signed", (-2.0, 2.0))])
def test_texts_on_cells_contrast_with_them(role, limits, grey):
    values = np.linspace(*limits, 257)
    scale = theme.color_scale(role, limits, grey)
    cells = theme.luminance(colormaps[scale.map_name](np.linspace(0.0, 1.0, 257))[:, :3])
    inks = theme.luminance(np.array([to_rgb(color) for color in theme.ink(values, grey, role, limits)]))
    light, dark = np.maximum(cells, inks), np.minimum(cells, inks)
    assert ((light + 0.05) / (dark + 0.05)).min() > 4.5  # level AA of WCAG 2.2


def test_a_line_on_cells_is_as_dark_on_a_dark_page():
    heat = heat_figure().panels[0]
    panel = replace(heat, marks=(*heat.marks, rule(2.5, horizontal=False, style=theme.BASELINE)))
    across = [to_plotly(Figure("map", "A map", (panel,)), dark).data[1] for dark in (False, True)]
    assert [line.line.color for line in across] == [theme.BLACK, theme.BLACK]


def test_outlines_run_around_their_cells_and_no_others_on_both():
    panel = heat_figure().panels[0]
    wanted = pd.DataFrame({"source": [1, 4], "step": [0, 2]})
    outlines = Outlines(wanted, "source", "step", "misjudged", theme.MODEL_1, across=2.0)
    figure = Figure("map", "A map", (replace(panel, marks=(*panel.marks, outlines)),))
    on_page, on_paper = to_plotly(figure).data[1], to_matplotlib(figure).axes[0].lines[0]
    np.testing.assert_allclose([on_page.x, on_page.y], on_paper.get_data())
    corners = np.array([on_page.x, on_page.y]).T.reshape(2, 6, 2)
    assert np.isnan(corners[:, 5]).all()  # no line leads from one to the next
    np.testing.assert_array_equal(corners[:, 0], corners[:, 4])
    for cell, around in zip(wanted.to_numpy(), corners[:, :5], strict=True):
        low, high = around.min(axis=0), around.max(axis=0)
        np.testing.assert_allclose((low + high) / 2, cell)
        assert ((high - low < (2.0, 1.0)) & (high - low > (1.8, 0.8))).all()
    assert (on_page.line.color, on_paper.get_color()) == (theme.PAST, theme.PAST)


def test_hover_of_a_large_map_says_the_value_not_its_shade():
    ratios = np.tile([0.25, 1.0, 100.0], (3_000, 1))
    figure = Figure("large", "Large", (Panel((heat_of(ratios, role="relative", limits=(1 / 8, 8.0)),)),))
    (heat,) = to_plotly(figure).data
    assert "%{customdata" in heat.hovertemplate
    assert "%{z" not in heat.hovertemplate
    np.testing.assert_array_equal(heat.customdata, ratios)


def test_ratio_is_shaded_by_its_logarithm_and_clipped():
    heat = heat_of(np.array([[0.0, 0.25, 1.0, 4.0, 99.0]]), role="relative", limits=(1 / 8, 8.0))
    np.testing.assert_allclose(theme.shades(heat), [[-3.0, -2.0, 0.0, 2.0, 3.0]])


def test_lines_bands_bars_and_rules_agree():
    figure = line_figure()
    screen, axes = to_plotly(figure), to_matplotlib(figure).axes[0]
    curve = next(trace for trace in screen.data if trace.name == "gdr")
    drawn = axes.lines[0]
    np.testing.assert_array_equal(curve.x, drawn.get_xdata())
    np.testing.assert_array_equal(curve.y, drawn.get_ydata())
    assert np.isnan(curve.y[1])
    assert (curve.line.color, curve.line.dash, curve.marker.symbol) == (theme.PAST, "solid", "square")
    assert (drawn.get_color(), drawn.get_linestyle(), drawn.get_marker()) == (theme.PAST, "-", "s")
    band = [trace for trace in screen.data if trace.name == "band"]
    assert [trace.y.tolist() for trace in band] == [[4.5, 3.5], [2.5, 2.0, 1.0, 1.5]]  # the missing value parts it
    bars = next(trace for trace in screen.data if trace.type == "bar")
    heights = [patch.get_height() for patch in axes.patches]
    np.testing.assert_array_equal(bars.y, heights)
    assert screen.data[-1].y.tolist() == [2.5, 2.5] == list(axes.lines[-1].get_ydata())
    assert screen.data[-1].x.tolist() == [0.5, 4.5]
    assert list(screen.layout.xaxis.range) == list(axes.get_xlim())


def test_printed_values_are_hollow_on_both():
    figure = line_figure()
    screen, axes = to_plotly(figure), to_matplotlib(figure).axes[0]
    assert next(trace for trace in screen.data if trace.name == "reported").marker.symbol == "circle-open"
    hollow = [item for item in axes.collections if item.get_facecolor().size == 0 and len(item.get_offsets()) == 4]
    assert len(hollow) == 1


def test_error_bars_end_where_the_table_says():
    trace = next(trace for trace in to_plotly(line_figure()).data if trace.name == "reported")
    np.testing.assert_allclose(trace.error_y.array, [0.5, np.nan, 0.5, 0.5])
    np.testing.assert_allclose(trace.error_y.arrayminus, [0.5, np.nan, 0.5, 0.5])


@pytest.mark.parametrize("along", ["x", "y"])
def test_intervals_end_in_the_same_places_on_both_even_where_they_do_not_hold_the_value(along):
    ends = pd.DataFrame({"low": [4.0, 5.5, 3.0], "high": [7.0, 6.0, 4.5]})
    mark = Points(ends.assign(x=5.0, y=5.0), "x", "y", "gdr", low="low", high="high", error_axis=along)
    figure = Figure("points", "Points", (Panel((mark,)),))
    (trace,) = to_plotly(figure).data
    bars = trace[f"error_{along}"]
    np.testing.assert_allclose(np.stack([5.0 - bars.arrayminus, 5.0 + bars.array], axis=1), ends)
    (drawn,) = to_matplotlib(figure).axes[0].containers
    np.testing.assert_allclose([line[:, "xy".index(along)] for line in drawn.lines[2][0].get_segments()], ends)


def test_faint_points_have_faint_intervals_on_paper():
    table = pd.DataFrame({"x": [1.0], "y": [2.0], "low": [0.5], "high": [3.0]})
    mark = Points(table, "x", "y", "gdr", theme.styles(["gdr"])["gdr"], low="low", high="high")
    mark = replace(mark, style=replace(mark.style, opacity=0.35))
    axes = to_matplotlib(Figure("one", "One", (Panel((mark,)),))).axes[0]
    assert {drawn.get_alpha() for drawn in axes.collections} == {0.35}


def test_arrays_travel_typed_and_zoom_survives():
    made = json.loads(to_plotly(heat_figure()).to_json())
    assert set(made["data"][0]["z"]) >= {"dtype", "bdata"}
    assert made["data"][0]["z"]["dtype"] == "f4"
    assert made["layout"]["uirevision"] == "map"


@pytest.mark.slow
def test_linked_panels_zoom_together_and_look_on_paper_as_they_would_alone():
    panels = [replace(heat_figure().panels[0], linked=linked) for linked in ("", "a", "b", "a", "b", "c")]
    for columns in (1, 2):
        drawn = to_plotly(Figure("maps", "Maps", tuple(panels), columns=columns))
        matches = [drawn.layout[f"xaxis{number or ''}"].matches for number in ("", 2, 3, 4, 5, 6)]
        assert matches == [None, None, None, "x2", "x3", None]
    shared = to_plotly(Figure("maps", "Maps", tuple(panels), shared_x=True))
    assert {axis.matches for axis in shared.select_xaxes()} == {None, "x6"}  # of the last row, which none follows
    alone, linked = (to_matplotlib(Figure("maps", "Maps", tuple(replace(panel, linked=name) for panel in panels)))
                     for name in ("", "a"))  # fmt: skip
    assert [axes.get_position().bounds for axes in alone.axes] == [axes.get_position().bounds for axes in linked.axes]


def test_hover_names_the_tokens_in_one_order():
    hover = to_plotly(heat_figure()).data[0].hovertext[1][3]
    assert html.unescape(hover).split("<br>") == ["source: </s> (3)", "target: a␣&␣b (1)", "value: 0.500"]


def test_dark_page_turns_black_lines_light():
    table = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
    figure = Figure("dark", "Dark", (Panel((Line(table, "x", "y", "baseline", theme.BASELINE),)),))
    assert to_plotly(figure).data[0].line.color == "#000000"
    assert to_plotly(figure, dark=True).data[0].line.color == "#F2F2F2"


def test_paper_has_the_width_and_the_panel_height_it_asked_for():
    for width, inches in (("column", 3.03), ("page", 6.30), (5.0, 5.0)):
        canvas = to_matplotlib(heat_figure(), width)
        assert canvas.get_size_inches()[0] == pytest.approx(inches)
        assert canvas.axes[0].get_position().height * canvas.get_size_inches()[1] == pytest.approx(0.8, abs=0.03)


def test_a_title_wider_than_its_panel_is_broken():
    panel = replace(heat_figure().panels[0], title="a system with a long name − another one")
    figure = Figure("maps", "Maps", (panel,) * 4, width="page", columns=4)
    canvas = to_matplotlib(figure)
    axes = canvas.axes[:4]
    ends = [(one.title.get_window_extent().x0, one.title.get_window_extent().x1) for one in axes]
    assert all(end < begin for (_, end), (begin, _) in pairwise(ends))
    assert {one.get_title().replace("\n", " ") for one in axes} == {panel.title}
    word = replace(panel, title="REDUNDANT")
    narrow = to_matplotlib(replace(figure, panels=(word,) * 8, columns=8), "column").axes[:8]
    assert {one.get_title() for one in narrow} == {"REDUNDANT"}


def test_unknown_width_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="neither inches nor one of column, page"):
        to_matplotlib(heat_figure(), "poster")


def test_texts_are_drawn_as_typed():
    assert token_text("a b\t") == "a␣b␣"
    assert token_text("") == "␣"
    for typed in ("<b>", "</s>", "$x$", "**", "a & b", "&lt;"):
        assert html.unescape(plotly_text(typed)) == typed
        assert not set(plotly_text(typed)) & set("<>$")


def test_grey_paper_marks_negative_cells():
    figure = heat_figure("signed", (-1.0, 1.0), np.linspace(-1.0, 1.0, 21).reshape(3, 7))
    texts = [text.get_text() for text in to_matplotlib(figure, grey=True).axes[0].texts]
    assert texts == ["−"] * 10


def test_two_values_for_one_cell_are_refused():
    table = pd.DataFrame({"x": [0, 0], "y": [1, 1], "value": [0.1, 0.2]})
    with pytest.raises(ValueError, match=r"two values at x=0.0, y=1.0"):
        Heat(table.astype({"x": float}), "x", "y").cells()


def test_a_missing_column_names_the_nearest():
    table = pd.DataFrame({"step": [1], "score": [2.0]})
    with pytest.raises(ValueError, match=r"draws column 'scores'.*nearest is 'score'"):
        Line(table, "step", "scores", "gdr")


def test_table_holds_what_is_drawn_and_nothing_else():
    table = line_figure().table
    assert set(table["mark"]) == {"line", "points", "bars", "segments", "labels", "rule"}
    lines = table[table["mark"] == "line"]
    assert lines["step"].tolist() == [1, 2, 3, 4]
    assert lines["loss"].dropna().tolist() == [4.0, 2.0, 1.5]


def test_series_of_one_figure_differ_in_colour_dash_and_marker_pair():
    names = ["transformer", "gdr", "gdr-bow", "future-cost-1", "future-cost-2", "qcn", "han", "san"]
    styles = theme.styles(names)
    assert styles["transformer"] == theme.BASELINE
    assert styles["future-cost-1"] == theme.MODEL_1
    assert styles["future-cost-2"] == theme.MODEL_2
    assert len({style.colour for style in styles.values()}) == len(names)
    assert len({(style.dash, style.marker) for style in styles.values()}) == len(names)
    assert theme.style_of("my-run") == theme.style_of("my-run")


def test_a_name_in_the_color_of_a_run_can_be_read_on_light_and_dark_pages():
    for color in {theme.style_of(name).colour for name in ("transformer", *theme.SYSTEMS)} | {theme.FUTURE, theme.PAST}:
        for dark in (False, True):
            ground = theme.on_page(color, dark)
            light, dim = sorted(
                (float(theme.luminance(np.array([to_rgb(one)]))[0]) for one in (ground, theme.text_on(ground))),
                reverse=True,
            )
            assert (light + 0.05) / (dim + 0.05) >= 4.5


def test_a_given_style_stays_with_its_run():
    kept = SeriesStyle("#009E73", "dot", "star")
    styles = theme.styles(["a", "b", "c"], {"b": kept})
    assert styles["b"] == kept
    assert kept.colour not in {styles["a"].colour, styles["c"].colour}
