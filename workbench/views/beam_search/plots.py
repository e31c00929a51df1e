"""Plots of beam trees: kept, pruned and finished hypotheses of one system or of two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from analyses.attention import text_of
from workbench.plotting import theme
from workbench.plotting.axes import are_pieces
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Figure, Mark, Panel, Points, SeriesStyle
from workbench.views.beam_search.tree_layout import (
    NODE_CAP,
    Row,
    continuation_caption,
    edges_with_corners,
    height,
    hidden_axis,
    row_title,
    split_into_rows,
    steps_axis,
    with_parents,
    without_descendants,
    words,
)

_TREE = ("id", "parent", "step", "word", "log_prob", "score", "normalised", "rank", "fate", "on_best", "y")
_HOVER = ("word", "prob", "log_prob", "score", "normalised", "rank", "fate")
_WIDTHS = ((0.0, 0.1, 0.4), (0.1, 0.5, 0.9), (0.5, np.inf, 1.6))  # P(word) from, below -> points
_BEST = SeriesStyle(theme.PAST, "solid", "square")
_KEPT = SeriesStyle("#444444", "solid", "circle")
_PRUNED = SeriesStyle("#A6A6A6", "solid", "x", size=3.0)
_FINISHED = SeriesStyle(theme.FUTURE, "solid", "diamond", size=5.0)


def beam_tree(
    nodes: pd.DataFrame,
    title: str = "Beam search",
    steps: tuple[int, int] | None = None,
    minimum_probability: float = 0.01,
    node_cap: int = NODE_CAP,
    pruned: bool = True,
) -> Figure:
    """Hypotheses of one search from left to right, the best path straight.

    Node size: rank in the beam; edge width: P(word). Squares: best path, circles: kept, diamonds: finished (with
    normalized score), pale crosses: pruned. steps: inclusive window. Words below `minimum_probability` are hidden with
    their descendants, except on the best path, and so are nodes beyond `node_cap`. Without `pruned` a tree of a page's
    width stays low enough for a paper.
    """
    shown = _visible(nodes, steps, minimum_probability, node_cap, pruned)
    rows = split_into_rows([shown])
    panels = tuple(_tree_panel(row, 0, row_title("", row, len(rows))) for row in rows)
    caption = _caption(len(nodes) - len(shown), len(rows), minimum_probability)
    return Figure("beam-tree", title, panels, caption, _summary(shown, nodes), "page")


def beam_trees_side_by_side(
    first: pd.DataFrame,
    second: pd.DataFrame,
    names: tuple[str, str] = ("A", "B"),
    title: str = "Beam search of two systems",
    steps: tuple[int, int] | None = None,
    minimum_probability: float = 0.01,
    node_cap: int = NODE_CAP,
    pruned: bool = True,
) -> Figure:
    """Two trees on the same steps, one above the other, each at the width of a page."""
    shown = [_visible(nodes, steps, minimum_probability, node_cap, pruned) for nodes in (first, second)]
    rows = split_into_rows(shown)
    panels = tuple(
        _tree_panel(row, number, row_title(name, row, len(rows)))
        for row in rows
        for number, name in enumerate(names)
        if len(row.trees[number])
    )
    hidden = len(first) + len(second) - sum(map(len, shown))
    caption = f"{names[0]} above, {names[1]} below. {_caption(hidden, len(rows), minimum_probability)}"
    summary = " ".join(f"{name}: {_summary(*both)}" for name, *both in zip(names, shown, (first, second), strict=True))
    return Figure("beam-trees", title, panels, caption, summary, "page", shared_x=len(rows) == 1)


def _visible(
    nodes: pd.DataFrame, steps: tuple[int, int] | None, minimum_probability: float, node_cap: int, pruned: bool
) -> pd.DataFrame:
    require_columns(nodes, _TREE, "nodes")
    nodes = nodes.assign(prob=np.exp(nodes["log_prob"].astype(float)), on_best=nodes["on_best"].astype(bool))
    unlikely = (nodes["prob"] < minimum_probability) & ~nodes["on_best"]
    if not pruned:
        unlikely |= (nodes["fate"] == "pruned") & ~nodes["on_best"]
    shown = without_descendants(nodes, set(nodes.loc[unlikely, "id"]))
    if steps is not None:
        shown = shown[shown["step"].between(*steps)]
    if len(shown) > node_cap:
        # Pruned nodes have no descendants, so the least likely of them are dropped first, then the last steps.
        order = shown.assign(last=(shown["fate"] == "pruned") & ~shown["on_best"])
        order = order.sort_values(["last", "step", "prob"], ascending=[True, True, False], kind="stable")
        shown = shown[shown["id"].isin(order["id"].iloc[:node_cap])]
    if not len(shown):
        raise ValueError(f"no node of the beam lies in steps {steps}; the search has {int(nodes['step'].max())} steps")
    return shown


def _classes(nodes: pd.DataFrame) -> list[tuple[str, pd.Series, SeriesStyle]]:
    best, finished, pruned = nodes["on_best"], nodes["fate"] == "finished", nodes["fate"] == "pruned"
    return [
        ("pruned", pruned & ~best, _PRUNED),
        ("kept", ~best & ~finished & ~pruned, _KEPT),
        ("finished", finished & ~best, _FINISHED),
        ("best path", best, _BEST),
    ]


def _tree_panel(row: Row, number: int, title: str) -> Panel:
    nodes, x_range = row.trees[number], row.x_range
    edges = with_parents(nodes)
    nodes = nodes.assign(diameter=_diameters(nodes["rank"]))
    marks: list[Mark] = []
    for name, members, style in _classes(nodes):
        class_edges = edges[edges["id"].isin(nodes.loc[members, "id"])]
        edge_style = _KEPT if name == "finished" else style
        for low, high, width in _WIDTHS:
            rows = class_edges[(class_edges["prob"] >= low) & (class_edges["prob"] < high)]
            if len(rows):
                marks.append(edges_with_corners(rows, replace(edge_style, width=width)))
    for name, members, style in _classes(nodes):
        rows = nodes[members]
        if not len(rows):
            continue
        size = None if name == "pruned" else "diameter"
        marks.append(Points(rows, "step", "y", name, style, _HOVER, size=size))
        ink = replace(style, colour="#8A8A8A" if name == "pruned" else theme.BLACK)
        marks += words(rows, nodes, x_range, ink, 6.0 if name == "pruned" else 7.0, bold=name == "best path")
    return Panel(tuple(marks), steps_axis(x_range, row.steps[1]), hidden_axis(nodes), height(nodes), title)


def _diameters(rank: pd.Series) -> pd.Series:
    return (6.0 - 0.9 * (rank - rank.min()).astype(float)).clip(lower=3.0)


def _caption(hidden: int, rows: int, minimum_probability: float) -> str:
    rules = "Width of an edge: P(word); size of a node: rank; numbers: normalized score of a finished hypothesis."
    rules += continuation_caption(rows)
    if not hidden:
        return rules
    return f"{rules} {hidden} nodes are not drawn: P(word) < {minimum_probability:g}, or left out by choice."


def _summary(shown: pd.DataFrame, nodes: pd.DataFrame) -> str:
    best = nodes[nodes["on_best"].astype(bool)].sort_values("step")
    tokens = [str(word) for word in best["word"] if str(word)]
    text = text_of(tokens) if are_pieces(tokens) else " ".join(tokens)
    others, finished = int((~shown["on_best"]).sum()), int((nodes["fate"] == "finished").sum())
    last, steps = int(shown["step"].max()), int(nodes["step"].max())
    window = f" up to step {last} of {steps}" if last < steps else ""
    return f"The best path reads {text!r}; {finished} hypotheses finished. {others} other nodes are drawn{window}."
