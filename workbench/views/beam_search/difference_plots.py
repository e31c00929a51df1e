"""Plot of the difference of two beam searches: one tree of all prefixes that either search reached."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from workbench.plotting import theme
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Figure, Mark, Panel, Points, SeriesStyle, rule
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

_DIFF = ("parent", "step", "word", "prefix", "in_a", "in_b", "fate_a", "fate_b", "y")
_SHARED = SeriesStyle("#9A9A9A", "solid", "circle")


def beam_diff(
    nodes: pd.DataFrame,
    names: tuple[str, str] = ("A", "B"),
    title: str = "Where two beams part",
    divergence_step: int | None = None,
    steps: tuple[int, int] | None = None,
    minimum_probability: float = 0.0,
    node_cap: int = NODE_CAP,
    pruned: bool = True,
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """One tree of all prefixes that either search reached; equal prefixes are one node (id: the row unless given).

    Gray circles: reached by both; color and marker of a system: by this one only; a ring around a dot: reached by both
    but kept by the ring's system only. A rule marks where the best paths part (`divergence_step`; None: the first
    prefix that differs). steps: inclusive window. Words below `minimum_probability` in every search that reached them
    are hidden with their descendants, without `pruned` also those that no search kept; best paths stay. Nodes beyond
    `node_cap` are dropped from the last step backwards.
    """
    require_columns(nodes, _DIFF, "nodes")
    nodes = nodes.assign(prefix=[_prefix_text(prefix) for prefix in nodes["prefix"]])
    if "id" not in nodes:
        nodes = nodes.assign(id=range(len(nodes)))
    shown = _visible_diff(nodes, steps, minimum_probability, pruned)
    shown = shown.nsmallest(node_cap, "step") if len(shown) > node_cap else shown
    chosen_by_name = _diff_classes(shown, names)
    class_styles = _diff_styles(names, theme.styles(names, styles))
    differing = shown[~chosen_by_name["both"]]
    parting_step = (
        divergence_step if divergence_step is not None else differing["step"].min() if len(differing) else None
    )
    reason = "first difference" if divergence_step is None else "best paths part"
    rows = split_into_rows([shown])
    panels = []
    for row in rows:
        parting: list[Mark] = []
        if parting_step is not None and row.steps[0] <= parting_step <= row.steps[1]:
            parting.append(rule(float(parting_step) - 0.5, horizontal=False, series=reason))
        panels.append(_diff_panel(row, names, class_styles, parting, row_title("", row, len(rows))))
    hidden = f" {len(nodes) - len(shown)} nodes are not drawn." if len(shown) < len(nodes) else ""
    counts = ", ".join(f"{int(members.sum())} {name}" for name, members in chosen_by_name.items())
    reached = f"Prefixes reached by {names[0]} and by {names[1]}, equal ones merged"
    caption = f"{reached}; a ring: kept by its system only.{hidden}{continuation_caption(len(rows))}"
    return Figure("beam-diff", title, tuple(panels), caption, f"Of the prefixes drawn, {counts}.", "page")


def _diff_panel(
    row: Row,
    names: tuple[str, str],
    class_styles: dict[str, tuple[SeriesStyle, ...]],
    parting: list[Mark],
    title: str,
) -> Panel:
    nodes, marks = row.trees[0], [*parting]
    chosen_by_name = _diff_classes(nodes, names)
    edges = with_parents(nodes)
    for name, members in chosen_by_name.items():
        rows = edges[edges["id"].isin(nodes.loc[members, "id"])]
        if len(rows):
            marks.append(edges_with_corners(rows, replace(class_styles[name][0], width=0.9)))
    hover = ("prefix", "word", "fate_a", "fate_b")
    for name, members in chosen_by_name.items():
        rows = nodes[members]
        if len(rows):
            marks += [
                Points(rows, "step", "y", name, style, hover, legend=number == 0)
                for number, style in enumerate(class_styles[name])
            ]
    marks += words(nodes, nodes, row.x_range, SeriesStyle(theme.BLACK), 7.0)
    return Panel(tuple(marks), steps_axis(row.x_range, row.steps[1]), hidden_axis(nodes), height(nodes), title)


def _prefix_text(prefix: object) -> str:
    return " ".join(map(str, prefix)) if isinstance(prefix, (tuple, list)) else str(prefix)


def _diff_classes(nodes: pd.DataFrame, names: tuple[str, str]) -> dict[str, pd.Series]:
    a, b = names
    kept_a, kept_b = (nodes[f"fate_{side}"].isin(["kept", "finished"]) for side in "ab")
    in_a, in_b = nodes["in_a"].astype(bool), nodes["in_b"].astype(bool)
    both = in_a & in_b
    return {
        "both": both & (kept_a == kept_b),
        f"{a} only": in_a & ~in_b,
        f"{b} only": in_b & ~in_a,
        f"kept by {a}, pruned by {b}": both & kept_a & ~kept_b,
        f"kept by {b}, pruned by {a}": both & kept_b & ~kept_a,
    }


def _diff_styles(names: tuple[str, str], styles: dict[str, SeriesStyle]) -> dict[str, tuple[SeriesStyle, ...]]:
    """Styles of the markers of each class of nodes, the outer one first."""
    a, b = names
    outer = {name: replace(styles[name], hollow=True, size=6.5) for name in names}
    inner = {name: replace(styles[name], size=2.8) for name in names}
    return {
        "both": (_SHARED,),
        f"{a} only": (styles[a],),
        f"{b} only": (styles[b],),
        f"kept by {a}, pruned by {b}": (outer[a], inner[b]),
        f"kept by {b}, pruned by {a}": (outer[b], inner[a]),
    }


def _visible_diff(
    nodes: pd.DataFrame, steps: tuple[int, int] | None, minimum_probability: float, pruned: bool
) -> pd.DataFrame:
    sides = [side for side in "ab" if f"score_{side}" in nodes and f"best_{side}" in nodes]
    nodes = nodes.assign(on_best=nodes[[f"best_{side}" for side in sides]].any(axis=1) if sides else False)
    hidden = pd.Series(False, index=nodes.index)
    if not pruned:
        hidden |= ~(nodes["fate_a"].isin(["kept", "finished"]) | nodes["fate_b"].isin(["kept", "finished"]))
    if minimum_probability > 0 and sides:
        log_probs = pd.DataFrame({side: _log_prob(nodes, f"score_{side}") for side in sides})
        hidden |= np.exp(log_probs.max(axis=1)) < minimum_probability
    shown = without_descendants(nodes, set(nodes.loc[hidden & ~nodes["on_best"], "id"]))
    shown = shown if steps is None else shown[shown["step"].between(*steps)]
    if not len(shown):
        raise ValueError(
            f"no node of the beams lies in steps {steps}; the searches have {int(nodes['step'].max())} steps"
        )
    return shown


def _log_prob(nodes: pd.DataFrame, score: str) -> pd.Series:
    """Log-probability of each node's word (its score minus its parent's); NaN if the search did not reach it."""
    scores = nodes.set_index("id")[score].astype(float)
    return nodes[score].astype(float) - nodes["parent"].map(scores).where(nodes["parent"] >= 0, 0.0)
