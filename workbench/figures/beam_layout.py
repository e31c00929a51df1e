"""Where the nodes, edges and words of a beam tree stand: what its drawings share.

The tables give every node its place (`step`, `y`); here they only become marks. One mark for each class of nodes and
edges, never one for each edge, so that four hundred nodes stay quick on the screen.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from workbench.figures import theme
from workbench.figures.axes import token_text
from workbench.figures.grammar import Align, Axis, Labels, Mark, Segments, SeriesStyle, cut

NODE_CAP = 400
_LANE_INCHES = 0.165
CHARACTER_POINTS = 4.2
_FEWEST_CHARACTERS = 6  # of a word; where steps are narrower than that, some words are left out
_SCORE_CHARACTERS = 6  # " −2.39"
_LEAF_GAP_POINTS = 8.0
PAGE_POINTS = theme.PAPER_WIDTHS["page"] * 72.0
_MOST_AT_A_LEAF = 24  # characters of a word that stands to the right of a leaf, with its score behind it
_TRUNK = 0.16  # where an edge turns, in steps after its parent: before any word of the next step begins


def without_descendants(nodes: pd.DataFrame, gone: set) -> pd.DataFrame:
    for row in nodes.sort_values("step")[["id", "parent", "on_best"]].itertuples(index=False):
        if row.parent in gone and not row.on_best:
            gone.add(row.id)
    return nodes[~nodes["id"].isin(gone)]


def dense(nodes: pd.DataFrame) -> pd.DataFrame:
    """Closes the empty lanes that hidden nodes leave; the order of the lanes stays."""
    return nodes.assign(y=nodes["y"].rank(method="dense") - 1.0)


def _root(nodes: pd.DataFrame) -> tuple[float, float] | None:
    """Step and lane where the first words part, None where there is only one or they lie outside the window."""
    first = nodes[nodes["parent"] == -1]
    return (float(first["step"].min()) - 1.0, float(first["y"].min())) if len(first) > 1 else None


def with_parents(nodes: pd.DataFrame) -> pd.DataFrame:
    """One row for each edge: the node with the place of its parent (`from_step`, `from_y`)."""
    places = nodes[["id", "step", "y"]].rename(columns={"id": "parent", "step": "from_step", "y": "from_y"})
    root = _root(nodes)
    if root is not None:
        start = pd.DataFrame({"parent": [-1], "from_step": [root[0]], "from_y": [root[1]]})
        places = pd.concat([places, start], ignore_index=True)
    return nodes.merge(places, on="parent", how="inner")


def edges_with_corners(rows: pd.DataFrame, style: SeriesStyle) -> Segments:
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


def words(
    rows: pd.DataFrame,
    nodes: pd.DataFrame,
    reach: tuple[float, float],
    style: SeriesStyle,
    points: float,
    bold: bool = False,
) -> list[Mark]:
    """Words of inner nodes above them, cut to the room between two steps; of leaves to the right, with their score."""
    character = CHARACTER_POINTS * points / 7.0 * (reach[1] - reach[0]) / PAGE_POINTS  # its width, in steps
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


def crowded(nodes: pd.DataFrame) -> str:
    """What the caption says where steps are too narrow for words."""
    low, high = step_range(nodes)
    wide = _FEWEST_CHARACTERS * CHARACTER_POINTS * (high - low) > PAGE_POINTS
    return " Words that would stand on another are left out." if wide else ""


def step_range(nodes: pd.DataFrame) -> tuple[float, float]:
    """The steps with room for words before the first and after the last, where those of leaves stand."""
    root = _root(nodes)
    first = float(nodes["step"].min()) - 0.6 if root is None else root[0] - 0.1
    last = float(nodes["step"].max()) + 1.1
    leaves = nodes[~nodes["id"].isin(nodes["parent"])]
    scored = (leaves["fate"] == "finished") * _SCORE_CHARACTERS if "fate" in leaves else 0
    characters = leaves["word"].astype(str).str.len().clip(upper=_MOST_AT_A_LEAF) + scored
    share = (characters * CHARACTER_POINTS + _LEAF_GAP_POINTS) / PAGE_POINTS  # of the width, whatever it holds
    return first, max(last, float(((leaves["step"] - share * first) / (1.0 - share)).max()))


def steps_axis(reach: tuple[float, float], end: int) -> Axis:
    """An axis with that room, on which the steps up to the last one are named."""
    steps = range(int(np.ceil(reach[0])), end + 1)
    every = max(1, -(-len(steps) // 20))
    return Axis("step", "number", tuple(map(float, steps)), tuple(map(str, steps)), every, reach)


def hidden_axis(nodes: pd.DataFrame) -> Axis:
    """Lanes carry no number; the first stands on top, with room for its words."""
    return Axis("", range=(float(nodes["y"].min()) - 0.9, float(nodes["y"].max()) + 0.5), reversed=True, visible=False)


def height(nodes: pd.DataFrame) -> float:
    return max(0.8, _LANE_INCHES * (nodes["y"].max() - nodes["y"].min() + 1.4))
