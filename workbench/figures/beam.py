"""Beam trees: what the search kept, pruned and finished, and where two searches part.

The tables give every node its place (`step`, `y`); here they only become marks. One mark for each class of nodes and
edges, never one for each edge, so that four hundred nodes stay quick on the screen.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from workbench.figures import theme
from workbench.figures.axes import token_text
from workbench.figures.grammar import Align, Axis, Figure, Labels, Mark, Panel, Points, Segments, SeriesStyle, cut, rule
from workbench.figures.registry import register, require_columns

NODE_CAP = 400
_TREE = ("id", "parent", "step", "word", "log_prob", "score", "normalised", "rank", "fate", "on_best", "y")
_DIFF = ("parent", "step", "word", "prefix", "in_a", "in_b", "fate_a", "fate_b", "y")
_HOVER = ("word", "prob", "log_prob", "score", "normalised", "rank", "fate")
_WIDTHS = ((0.0, 0.1, 0.4), (0.1, 0.5, 0.9), (0.5, np.inf, 1.6))  # P(word) from, below -> points
_BEST = SeriesStyle(theme.PAST, "solid", "square")
_KEPT = SeriesStyle("#444444", "solid", "circle")
_PRUNED = SeriesStyle("#A6A6A6", "solid", "x", size=3.0)
_FINISHED = SeriesStyle(theme.FUTURE, "solid", "diamond", size=5.0)
_SHARED = SeriesStyle("#9A9A9A", "solid", "circle")
_LANE_INCHES = 0.165
_CHARACTER_POINTS = 4.2
_FEWEST_CHARACTERS = 6  # of a word; where steps are narrower than that, some words are left out
_SCORE_CHARACTERS = 6  # " −2.39"
_LEAF_GAP_POINTS = 8.0
_PAGE_POINTS = theme.PAPER_WIDTHS["page"] * 72.0
_MOST_AT_A_LEAF = 24  # characters of a word that stands to the right of a leaf, with its score behind it
_TRUNK = 0.16  # where an edge turns, in steps after its parent: before any word of the next step begins


@register("beam-tree", "Beam tree", {"nodes": _TREE})
def beam_tree(
    nodes: pd.DataFrame,
    title: str = "Beam search",
    steps: tuple[int, int] | None = None,
    minimum_probability: float = 0.01,
    node_cap: int = NODE_CAP,
    pruned: bool = True,
) -> Figure:
    """The hypotheses of one search from left to right, the best path straight.

    Size of a node: its rank in the beam; width of an edge: P(word). Squares are the best path, circles were kept,
    diamonds finished (with their normalised score), pale crosses pruned. `steps` is a window, both ends in; words below
    `minimum_probability` are hidden with all that follows them, except on the best path; so is what exceeds `node_cap`.
    Without `pruned` a tree of a page's width stays low enough for a paper.
    """
    shown = _visible(nodes, steps, minimum_probability, node_cap, pruned)
    panel = _tree_panel(shown, _step_range(shown), int(shown["step"].max()), "")
    return Figure("beam-tree", title, (panel,), _caption(nodes, shown, minimum_probability), _summary(shown), "page")


@register("beam-trees", "Two beam trees", {"first": _TREE, "second": _TREE})
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
    """Two trees on the same steps, one above the other: words need the width of a page."""
    shown = [_visible(nodes, steps, minimum_probability, node_cap, pruned) for nodes in (first, second)]
    firsts, lasts = zip(*(_step_range(nodes) for nodes in shown), strict=True)
    reach, end = (min(firsts), max(lasts)), max(int(nodes["step"].max()) for nodes in shown)
    panels = tuple(_tree_panel(nodes, reach, end, name) for nodes, name in zip(shown, names, strict=True))
    caption = f"{names[0]} above, {names[1]} below. " + _caption(pd.concat([first, second]), pd.concat(shown),
                                                                 minimum_probability)  # fmt: skip
    summary = " ".join(f"{name}: {_summary(nodes)}" for name, nodes in zip(names, shown, strict=True))
    return Figure("beam-trees", title, panels, caption, summary, "page", shared_x=True)


@register("beam-diff", "Difference of two beams", {"nodes": _DIFF})
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
    """One tree of all prefixes that either search reached; equal prefixes are one node, its id the row unless given.

    Grey circles: both; the systems' own colour and marker: one only; a ring of the one around a dot of the other: both
    reached it but only the ring's system kept it. A rule stands where the best paths part (`divergence_step`), or,
    where that is not given, at the first prefix that differs. `steps` is a window, both ends in; words below
    `minimum_probability` in every search that reached them are hidden with all that follows them, without `pruned`
    also what no search kept; best paths stay. What exceeds `node_cap` goes from the last step backwards.
    """
    require_columns(nodes, _DIFF, "nodes")
    nodes = nodes.assign(prefix=[_prefix_text(prefix) for prefix in nodes["prefix"]])
    if "id" not in nodes:
        nodes = nodes.assign(id=range(len(nodes)))
    shown = _visible_diff(nodes, steps, minimum_probability, pruned)
    shown = shown.nsmallest(node_cap, "step") if len(shown) > node_cap else shown
    shown = _dense(shown) if len(shown) < len(nodes) else shown
    chosen_by_name = _diff_classes(shown, names)
    looks = _diff_looks(names, theme.styles(names, styles))
    marks: list[Mark] = []
    differing = shown[~chosen_by_name["both"]]
    parted = divergence_step if divergence_step is not None else differing["step"].min() if len(differing) else None
    if parted is not None:
        reason = "first difference" if divergence_step is None else "best paths part"
        marks.append(rule(float(parted) - 0.5, horizontal=False, series=reason))
    edges = _with_parents(shown)
    for name, chosen in chosen_by_name.items():
        rows = edges[edges["id"].isin(shown.loc[chosen, "id"])]
        if len(rows):
            marks.append(_edges(rows, replace(looks[name][0], width=0.9)))
    hover = ("prefix", "word", "fate_a", "fate_b")
    for name, chosen in chosen_by_name.items():
        rows = shown[chosen]
        if len(rows):
            marks += [
                Points(rows, "step", "y", name, look, hover, legend=number == 0)
                for number, look in enumerate(looks[name])
            ]
    reach = _step_range(shown)
    marks += _words(shown, shown, reach, SeriesStyle(theme.BLACK), 7.0)
    hidden = f" {len(nodes) - len(shown)} nodes are not drawn." if len(shown) < len(nodes) else ""
    counts = ", ".join(f"{int(chosen.sum())} {name}" for name, chosen in chosen_by_name.items())
    reached = f"Prefixes reached by {names[0]} and by {names[1]}, equal ones merged"
    caption = f"{reached}; a ring: kept by its system only.{hidden}{_crowded(shown)}"
    axis = _steps_axis(reach, int(shown["step"].max()))
    panel = Panel(tuple(marks), axis, _hidden_axis(shown), _height(shown))
    return Figure("beam-diff", title, (panel,), caption, f"Prefixes: {counts}.", "page")


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


def _diff_looks(names: tuple[str, str], styles: dict[str, SeriesStyle]) -> dict[str, tuple[SeriesStyle, ...]]:
    """For each class what is drawn at its nodes, the outer shape first."""
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


def _visible(
    nodes: pd.DataFrame, steps: tuple[int, int] | None, minimum_probability: float, node_cap: int, pruned: bool
) -> pd.DataFrame:
    require_columns(nodes, _TREE, "nodes")
    nodes = nodes.assign(prob=np.exp(nodes["log_prob"].astype(float)), on_best=nodes["on_best"].astype(bool))
    unlikely = (nodes["prob"] < minimum_probability) & ~nodes["on_best"]
    if not pruned:
        unlikely |= (nodes["fate"] == "pruned") & ~nodes["on_best"]
    shown = _without_descendants(nodes, set(nodes.loc[unlikely, "id"]))
    if steps is not None:
        shown = shown[shown["step"].between(*steps)]
    if len(shown) > node_cap:
        # What was pruned has no descendants, so the least likely of it goes first, then the last steps.
        order = shown.assign(last=(shown["fate"] == "pruned") & ~shown["on_best"])
        order = order.sort_values(["last", "step", "prob"], ascending=[True, True, False], kind="stable")
        shown = shown[shown["id"].isin(order["id"].iloc[:node_cap])]
    if not len(shown):
        raise ValueError(f"no node of the beam lies in steps {steps}; the search has {int(nodes['step'].max())} steps")
    return _dense(shown) if len(shown) < len(nodes) else shown


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
    shown = _without_descendants(nodes, set(nodes.loc[hidden & ~nodes["on_best"], "id"]))
    shown = shown if steps is None else shown[shown["step"].between(*steps)]
    if not len(shown):
        raise ValueError(
            f"no node of the beams lies in steps {steps}; the searches have {int(nodes['step'].max())} steps"
        )
    return shown


def _log_prob(nodes: pd.DataFrame, score: str) -> pd.Series:
    """log P of each node's word: its cumulative score less its parent's, NaN where a search did not reach it."""
    scores = nodes.set_index("id")[score].astype(float)
    return nodes[score].astype(float) - nodes["parent"].map(scores).where(nodes["parent"] >= 0, 0.0)


def _without_descendants(nodes: pd.DataFrame, gone: set) -> pd.DataFrame:
    for row in nodes.sort_values("step")[["id", "parent", "on_best"]].itertuples(index=False):
        if row.parent in gone and not row.on_best:
            gone.add(row.id)
    return nodes[~nodes["id"].isin(gone)]


def _dense(nodes: pd.DataFrame) -> pd.DataFrame:
    """Closes the empty lanes that hidden nodes leave; the order of the lanes stays."""
    return nodes.assign(y=nodes["y"].rank(method="dense") - 1.0)


def _root(nodes: pd.DataFrame) -> tuple[float, float] | None:
    """Step and lane where the first words part, None where there is only one or they lie outside the window."""
    first = nodes[nodes["parent"] == -1]
    return (float(first["step"].min()) - 1.0, float(first["y"].min())) if len(first) > 1 else None


def _with_parents(nodes: pd.DataFrame) -> pd.DataFrame:
    """One row for each edge: the node with the place of its parent (`from_step`, `from_y`)."""
    places = nodes[["id", "step", "y"]].rename(columns={"id": "parent", "step": "from_step", "y": "from_y"})
    root = _root(nodes)
    if root is not None:
        start = pd.DataFrame({"parent": [-1], "from_step": [root[0]], "from_y": [root[1]]})
        places = pd.concat([places, start], ignore_index=True)
    return nodes.merge(places, on="parent", how="inner")


def _edges(rows: pd.DataFrame, style: SeriesStyle) -> Segments:
    """Edges with corners: the parent's lane, the trunk, the own lane. Slanted ones would cross words."""
    turn = rows["from_step"] + _TRUNK
    corners = [
        (rows["from_step"], rows["from_y"]),
        (turn, rows["from_y"]),
        (turn, rows["y"]),
        (rows["step"], rows["y"]),
    ]
    pieces = [
        pd.DataFrame({"id": rows["id"], "step": x, "y": y, "step_end": x_end, "y_end": y_end})
        for (x, y), (x_end, y_end) in pairwise(corners)
    ]
    drawn = pd.concat(pieces)
    drawn = drawn[(drawn["step"] != drawn["step_end"]) | (drawn["y"] != drawn["y_end"])]
    drawn = drawn.astype({"step": float, "y": float})
    return Segments(drawn, "step", "y", "", style, ("id",), legend=False, x_end="step_end", y_end="y_end")


def _classes(nodes: pd.DataFrame) -> list[tuple[str, pd.Series, SeriesStyle]]:
    best, finished, pruned = nodes["on_best"], nodes["fate"] == "finished", nodes["fate"] == "pruned"
    return [
        ("pruned", pruned & ~best, _PRUNED),
        ("kept", ~best & ~finished & ~pruned, _KEPT),
        ("finished", finished & ~best, _FINISHED),
        ("best path", best, _BEST),
    ]


def _tree_panel(nodes: pd.DataFrame, reach: tuple[float, float], end: int, title: str) -> Panel:
    edges = _with_parents(nodes)
    nodes = nodes.assign(diameter=_diameters(nodes["rank"]))
    marks: list[Mark] = []
    for name, chosen, style in _classes(nodes):
        own = edges[edges["id"].isin(nodes.loc[chosen, "id"])]
        look = _KEPT if name == "finished" else style
        for low, high, width in _WIDTHS:
            rows = own[(own["prob"] >= low) & (own["prob"] < high)]
            if len(rows):
                marks.append(_edges(rows, replace(look, width=width)))
    for name, chosen, style in _classes(nodes):
        rows = nodes[chosen]
        if not len(rows):
            continue
        size = None if name == "pruned" else "diameter"
        marks.append(Points(rows, "step", "y", name, style, _HOVER, size=size))
        ink = replace(style, colour="#8A8A8A" if name == "pruned" else theme.BLACK)
        marks += _words(rows, nodes, reach, ink, 6.0 if name == "pruned" else 7.0, bold=name == "best path")
    return Panel(tuple(marks), _steps_axis(reach, end), _hidden_axis(nodes), _height(nodes), title)


def _diameters(rank: pd.Series) -> pd.Series:
    return (6.0 - 0.9 * (rank - rank.min()).astype(float)).clip(lower=3.0)


def _words(
    rows: pd.DataFrame,
    nodes: pd.DataFrame,
    reach: tuple[float, float],
    style: SeriesStyle,
    points: float,
    bold: bool = False,
) -> list[Mark]:
    """Words of inner nodes above them, cut to the room between two steps; of leaves to the right, with their score."""
    character = _CHARACTER_POINTS * points / 7.0 * (reach[1] - reach[0]) / _PAGE_POINTS  # its width, in steps
    most = max(_FEWEST_CHARACTERS, int(1.0 / character))
    leaf = ~rows["id"].isin(nodes["parent"])
    texts = []
    for row, last in zip(rows.to_dict("records"), leaf, strict=True):
        word = token_text(str(row["word"])) if str(row["word"]) else ""
        scored = row.get("fate") == "finished"
        score = f" {row['normalised']:.2f}".replace("-", "−") if scored else ""
        texts.append(cut(word, _MOST_AT_A_LEAF if last else most) + score)
    named = rows.assign(text=texts)
    marks: list[Mark] = []
    named = named[named["text"] != ""]
    inner = _apart(named[~leaf.loc[named.index]], character)
    sides: tuple[tuple[pd.DataFrame, Align, float], ...] = (inner, "above", 2.2), (named[leaf], "right", 4.0)
    for part, align, gap in sides:
        if len(part):
            marks.append(Labels(part, "step", "y", "", style, (), False, "text", align, points, bold, gap))
    return marks


def _apart(rows: pd.DataFrame, character: float) -> pd.DataFrame:
    """Without the words that would stand on the one before them on their lane; `character` is a width, in steps."""
    free: dict[float, float] = {}
    kept = []
    for index, step, lane, text in rows.sort_values("step")[["step", "y", "text"]].itertuples():
        half = len(text) * character / 2.0
        if step - half >= free.get(lane, -np.inf):
            free[lane] = step + half
            kept.append(index)
    return rows.loc[rows.index.isin(kept)]


def _crowded(nodes: pd.DataFrame) -> str:
    """What the caption says where steps are too narrow for words."""
    low, high = _step_range(nodes)
    wide = _FEWEST_CHARACTERS * _CHARACTER_POINTS * (high - low) > _PAGE_POINTS
    return " Words that would stand on another are left out." if wide else ""


def _step_range(nodes: pd.DataFrame) -> tuple[float, float]:
    """The steps with room for words before the first and after the last, where those of leaves stand."""
    root = _root(nodes)
    first = float(nodes["step"].min()) - 0.6 if root is None else root[0] - 0.1
    last = float(nodes["step"].max()) + 1.1
    leaves = nodes[~nodes["id"].isin(nodes["parent"])]
    scored = (leaves["fate"] == "finished") * _SCORE_CHARACTERS if "fate" in leaves else 0
    characters = leaves["word"].astype(str).str.len().clip(upper=_MOST_AT_A_LEAF) + scored
    share = (characters * _CHARACTER_POINTS + _LEAF_GAP_POINTS) / _PAGE_POINTS  # of the width, whatever it holds
    return first, max(last, float(((leaves["step"] - share * first) / (1.0 - share)).max()))


def _steps_axis(reach: tuple[float, float], end: int) -> Axis:
    """An axis with that room, on which the steps up to the last one are named."""
    steps = range(int(np.ceil(reach[0])), end + 1)
    every = max(1, -(-len(steps) // 20))
    return Axis("step", "number", tuple(map(float, steps)), tuple(map(str, steps)), every, reach)


def _hidden_axis(nodes: pd.DataFrame) -> Axis:
    """Lanes carry no number; the first stands on top, with room for its words."""
    return Axis("", range=(float(nodes["y"].min()) - 0.9, float(nodes["y"].max()) + 0.5), reversed=True, visible=False)


def _height(nodes: pd.DataFrame) -> float:
    return max(0.8, _LANE_INCHES * (nodes["y"].max() - nodes["y"].min() + 1.4))


def _caption(nodes: pd.DataFrame, shown: pd.DataFrame, minimum_probability: float) -> str:
    hidden = len(nodes) - len(shown)
    rules = "Width of an edge: P(word); size of a node: rank; numbers: normalised score of a finished hypothesis."
    rules += _crowded(shown)
    if not hidden:
        return rules
    return f"{rules} {hidden} nodes are not drawn: P(word) < {minimum_probability:g}, or left out by choice."


def _summary(nodes: pd.DataFrame) -> str:
    best = nodes[nodes["on_best"]].sort_values("step")
    fates = nodes["fate"].value_counts()
    words = " ".join(str(word) for word in best["word"] if str(word))
    counts = ", ".join(f"{count} {fate}" for fate, count in fates.items())
    return f"The best path reads {words!r}; of {len(nodes)} nodes drawn, {counts}."
