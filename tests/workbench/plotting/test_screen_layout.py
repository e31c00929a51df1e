"""On a screen of any width texts stand apart: legends, labels of axes, words in panels; and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from tests.workbench.plotting.heat_maps import heat_of
from workbench.plotting import screen_layout, theme
from workbench.plotting.axes import category_axis, cut_to, ems, lines, plotly_lines, token_axis
from workbench.plotting.grammar import Axis, Figure, Labels, Line, Panel, Points, Segments, rule
from workbench.plotting.plotly_renderer import to_plotly
from workbench.plotting.screen_layout import FONT, lay_out, min_width

pytestmark = pytest.mark.long

WIDTHS = (280, 360, 480, 640, 760, 960, 1600)
SYSTEMS = ("transformer", "future-cost-1", "future-cost-2", "kept by future-cost-1, pruned by future-cost-2")


def curves(columns: int = 1, names: tuple[str, ...] = SYSTEMS) -> Figure:
    table = pd.DataFrame({"step": [0.0, 1.0], "loss": [1.0, 0.0]})
    marks = tuple(Line(table, "step", "loss", name, style) for name, style in theme.styles(names).items())
    panels = (Panel(marks, Axis("updates of the weights"), Axis("loss per word (nats)")),) * columns
    return Figure("curves", "How the loss falls while the systems are trained", panels, columns=columns)


def maps(tokens: int, columns: int, word: str = "word") -> Figure:
    words = [f"{word}{index}" for index in range(tokens)]
    heat = heat_of(np.eye(tokens), words, words, label="P")
    panel = Panel((heat,), token_axis(words, "source"), token_axis(words, "target", reversed=True), height=1.5)
    return Figure("maps", "Maps", (panel,) * columns, columns=columns)


def sentence(words: int) -> Figure:
    """Words above the steps of an axis, as long as a page of a paper has room for, the last one beside its step."""
    length = int(theme.PAPER_WIDTHS["page"] * 72 / ((words + 3) * 0.6 * 7.0))
    table = pd.DataFrame({"step": np.arange(1.0, words + 1), "lane": 0.0, "text": "w" * length})
    marks = (
        Labels(table[:-1], "step", "lane", align="above", font_points=7.0),
        Labels(table[-1:], "step", "lane", align="right", font_points=7.0),
    )
    axis = Axis("step", range=(0.0, words + 3.0))
    return Figure("sentence", "Sentence", (Panel(marks, axis, Axis(range=(-1.0, 1.0), visible=False)),), width="page")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_legend_ends_above_the_panels_and_every_name_fits_into_its_row(width):
    figure = curves()
    layout = lay_out(figure, width)
    height, room = screen_layout.legend_height(figure, layout.width), layout.panel
    assert layout.legend + height <= layout.top
    named = [trace.name for trace in to_plotly(figure, width=width).data]
    for name in named:
        assert all(FONT * ems(line) <= room - 40 for line in name.split("<br>"))
    assert [name.replace("<br>", " ") for name in named] == list(SYSTEMS)


def test_a_legend_takes_one_row_where_all_names_fit_and_one_for_each_where_no_two_do():
    three = curves(names=SYSTEMS[:3])
    one_row = screen_layout.legend_height(three, 960)
    assert screen_layout.legend_height(three, 280) == 3 * one_row
    heights = [screen_layout.legend_height(three, width) for width in WIDTHS]
    assert heights == sorted(heights, reverse=True)


def test_short_names_share_a_row_of_the_legend_whatever_the_longest_takes():
    row = screen_layout.legend_height(curves(names=("a", "b")), 400)
    short = curves(names=("a", "b", "c", "a name that takes most of a row"))
    assert screen_layout.legend_height(short, 400) == 2 * row


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "figure", [curves(4), maps(8, 3), maps(30, 2), maps(40, 1, 10 * "世界"), sentence(12)], ids=lambda one: one.name
)
def test_panels_move_below_each_other_before_their_labels_touch(figure, width):
    layout = lay_out(figure, width)
    columns = layout.figure.columns
    across = layout.left + layout.right + columns * layout.panel + (columns - 1) * layout.column_gap
    assert across == pytest.approx(layout.width)
    assert layout.width == max(width, min_width(figure))
    assert layout.panel >= 140
    for panel in layout.figure.panels:
        positions, texts = screen_layout.ticks(panel.x, layout.panel)
        assert texts == panel.x.labelled()[1]
        if panel.x.positions:
            assert layout.panel * (positions[1] - positions[0]) / len(panel.x.positions) >= 13
        assert all(
            FONT * ems(line) <= layout.panel + 1
            for line in plotly_lines(panel.x.label, layout.panel / FONT).split("<br>")
        )
    if width >= 1600:
        assert columns == figure.columns


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("tokens", [8, 30])
def test_panels_that_are_compared_stay_beside_each_other_and_every_token_keeps_its_label(tokens, width):
    figure = replace(maps(tokens, 3), side_by_side=True, shared_y=True)
    layout = lay_out(figure, width)
    assert layout.figure.columns == 3
    assert layout.left + layout.right + 3 * layout.panel + 2 * layout.column_gap == pytest.approx(layout.width)
    assert layout.width == max(width, min_width(figure))
    assert layout.panel / tokens >= 13 - 1e-9
    drawn = to_plotly(figure, width=width)
    assert {len(axis.ticktext) for axis in drawn.select_xaxes()} == {tokens}
    assert len({axis.domain for axis in drawn.select_xaxes()}) == 3


@pytest.mark.parametrize(
    ("low", "high", "most"),
    [
        (-1.7385, 1.1621, 5),  # alone at 0 with steps of 2
        (-4.0032, 1.6569, 5),  # alone at 0 with steps of 5
        (-6.0204, 1.4814, 3),
        (0.0, 0.0, 3),
    ],
)
def test_numbers_below_a_narrow_panel_are_more_where_only_one_would_be_there(low, high, most):
    table = pd.DataFrame({"gain": [(low + high) / 2], "place": [0.0], "low": [low], "high": [high]})
    dots = Points(table, "gain", "place", low="low", high="high", error_axis="x")
    panel = Panel((rule(0.0, horizontal=False), dots), Axis("gain"))
    assert screen_layout.most_numbers(panel, 189.5) == most
    assert screen_layout.most_numbers(panel, 600.0) == 10
    drawn = to_plotly(Figure("claims", "Claims", (panel,) * 4, columns=4), width=800)
    assert {axis.nticks for axis in drawn.select_xaxes()} == {most}


def test_long_names_beside_the_first_column_take_nothing_from_the_second():
    """Names of systems stand beside the left panel, numbers beside the right one."""
    table = pd.DataFrame({"place": range(len(SYSTEMS)), "auc": 0.9})
    mark = Line(table, "auc", "place", "AUC", theme.styles(["AUC"])["AUC"])
    names = Panel((mark,), Axis("AUC"), category_axis(SYSTEMS))
    numbers = Panel((mark,), Axis("said"), Axis("share"))
    layout = lay_out(Figure("truth", "Truth", (names, numbers), columns=2), 960)
    alone = lay_out(Figure("truth", "Truth", (numbers, numbers), columns=2), 960)
    assert layout.left > 2 * layout.column_gap == 2 * alone.column_gap == 2 * alone.left
    assert layout.left + layout.right + 2 * layout.panel + layout.column_gap == pytest.approx(960)


@pytest.mark.parametrize(
    ("low", "high", "widest"),
    [
        (0.0, 1.0, "0.8"),
        (-0.99999, -0.9985, "-0.9995"),
        (5.5451772, 5.5451778, "5.5451776"),
        (-4000.0, 90.0, "-4000"),
        (0.0, 0.0004, "0.0004"),
        (0.0, 123456.0, "100,000"),
    ],
)
def test_the_title_of_an_axis_stands_beside_its_widest_number(low, high, widest):
    """Of those that Plotly writes at its ticks between two numbers; wide ones are few and no reason elsewhere."""

    def left(*ends: float) -> int:
        mark = Line(pd.DataFrame({"step": [0.0, 1.0], "loss": ends}), "step", "loss")
        return lay_out(Figure("curve", "Curve", (Panel((mark,), Axis(), Axis("loss")),)), 760).left

    usual = left(0.0, 1.0)
    assert usual <= left(low, high) <= usual + FONT * ems("0" * len(widest))
    assert left(low, high) >= 10 + FONT * ems(widest) + 15
    assert left(0.0, 5e6) == left(3.0, 3.0) == usual  # 5M; no scale at all


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("words", [3, 12])
def test_words_in_a_panel_stand_apart_at_the_size_in_which_they_are_drawn(words, width):
    figure = sentence(words)
    screen = to_plotly(figure, width=width)
    layout = lay_out(figure, width)
    pixels = layout.panel / (words + 3.0)
    drawn = []
    for trace in screen.data:
        for x, text in zip(trace.x, trace.text, strict=True):
            wide = ems(text) * trace.textfont.size / pixels
            drawn.append((x, x + wide) if trace.textposition == "middle right" else (x - wide / 2, x + wide / 2))
    assert all(begin >= end - 1e-9 for (_, end), (begin, _) in pairwise(sorted(drawn)))
    assert max(end for _, end in drawn) <= words + 3.0
    assert min(trace.textfont.size for trace in screen.data) >= 10


def test_labels_thin_out_where_a_narrow_axis_has_no_room_for_all():
    axis = token_axis([str(index) for index in range(1000, 1030)])
    assert [len(screen_layout.ticks(axis, room)[0]) for room in (400, 390, 389, 100)] == [30, 30, 15, 8]


def test_a_narrow_screen_shows_the_same_values_as_a_wide_one():
    narrow, wide = (to_plotly(maps(8, 3), width=width) for width in (280, 1600))
    assert len({narrow.layout[f"xaxis{number}"].domain for number in ("", 2, 3)}) == 1
    assert narrow.layout.height > wide.layout.height
    for one, other in zip(narrow.data, wide.data, strict=True):
        np.testing.assert_array_equal(one.z, other.z)
        assert one.hovertext == other.hovertext
    assert narrow.layout.yaxis.range == wide.layout.yaxis.range


def test_every_scale_has_a_bar_of_its_own_within_the_right_margin():
    probability, signed = (heat_of(np.eye(2), role=role, label=role) for role in ("probability", "signed"))
    beside = Figure("two", "Two", (Panel((probability,)), Panel((signed,))), columns=2)
    below = Figure("two", "Two", (Panel((probability,)), Panel((signed,))))
    for figure, slots in ((beside, [0, 1]), (below, [0, 0])):
        layout = lay_out(figure, 960)
        assert [slot for slot, _, _ in layout.bars.values()] == slots
        assert layout.right >= screen_layout.BAR_ROOM * (max(slots) + 1)


def test_bars_beside_the_same_rows_never_stand_on_each_other():
    one, both, other = (
        Panel((heat_of(np.eye(2), role=role, limits=limits, label=role),))
        for role, limits in (("probability", (0.0, 1.0)), ("signed", (-1.0, 1.0)), ("relative", (1 / 8, 8.0)))
    )
    layout = lay_out(Figure("three", "Three", (one, both, other, both), columns=2), 1200)
    assert len(layout.heights) == 2
    assert list(layout.bars.values()) == [(0, 0, 0), (1, 0, 1), (0, 1, 1)]


def test_texts_are_cut_and_broken_to_the_room_they_have():
    assert (ems("abc"), ems("我们")) == (pytest.approx(1.8), 2.0)
    for text in ("Donaudampfschiff", "我们的世界杯比赛", "a b"):
        for room in (3.0, 5.5, 20.0):
            assert ems(cut_to(text, room)) <= max(room, 3 * ems(text) / len(text) + 1.0)
    assert cut_to("word", 2.4) == "word"
    assert plotly_lines("kept by <a>", 4.8) == "kept by<br>&lt;a&gt;"
    assert plotly_lines("kept by the second-pass", 8) == "kept by the<br>second-pass", "at a hyphen only where it must"
    assert plotly_lines("recurrent-second-pass", 9) == "recurrent-<br>second-pass"
    assert [lines(plotly_lines(text, 4.8)) for text in ("", "kept", "kept by both")] == [0, 1, 2]


def _luminance(color: str) -> float:
    """Relative luminance of sRGB (WCAG 2.2)."""
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_every_colour_of_a_figure_reads_on_a_dark_page():
    named = {
        theme.NEUTRAL,
        theme.REPORTED.colour,
        "#444444",
        "#A6A6A6",
        "#8A8A8A",
        "#9A9A9A",
    }
    drawn = (
        named
        | {style.colour for style in theme.styles([str(index) for index in range(9)]).values()}
        | {theme.BASELINE.colour}
    )
    ground = _luminance(theme.DARK.ground)
    for color in drawn:
        contrast = (_luminance(theme.on_page(color, dark=True)) + 0.05) / (ground + 0.05)
        assert contrast >= 3.0, color  # WCAG 1.4.11, graphics
    assert (_luminance(theme.DARK.text) + 0.05) / (ground + 0.05) >= 7.0


def test_edges_of_a_tree_follow_the_dark_page():
    table = pd.DataFrame({"x": [0.0], "y": [0.0], "x_end": [1.0], "y_end": [0.0]})
    figure = Figure("tree", "Tree", (Panel((Segments(table, "x", "y", style=theme.BASELINE),)),))
    dark = to_plotly(figure, dark=True)
    assert dark.data[0].line.color == "#F2F2F2"
    assert (dark.layout.font.color, dark.layout.xaxis.gridcolor) == (theme.DARK.text, theme.DARK.grid)
