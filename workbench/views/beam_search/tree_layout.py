"""Layout of the nodes, edges and words of beam trees.

Tables give the position of every node (`step`, `y`); this module turns them into marks. All nodes or edges of a class
are one mark, so that four hundred nodes are drawn quickly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise

import numpy as np
import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import are_pieces, token_text
from workbench.plotting.grammar import Align, Axis, Labels, Mark, Segments, SeriesStyle, cut

NODE_CAP = 400
_LANE_INCHES = 0.19  # enough that a word above its node does not touch a word at a leaf on the lane above
CHARACTER_POINTS = 4.2
_MIN_CHARACTERS = 7  # of a word; if steps would be narrower, the tree continues in a row below
_SCORE_CHARACTERS = 6  # " −2.39"
_LEAF_GAP_POINTS = 8.0
PAGE_POINTS = theme.PAPER_WIDTHS["page"] * 72.0
_MAX_LEAF_CHARACTERS = 24  # characters of the word to the right of a leaf, before its score
_TURN = 0.16  # steps after its parent at which an edge turns, before any word of the next step begins
_NO_PARENT = -2  # parent of nodes whose parent is not drawn


@dataclass(frozen=True, eq=False)
class Row:
    """Row of a figure: the nodes of each search (empty after its end) in the same steps.

    steps: the first and the last; x_range: of the axis, of equal length in all rows.
    """

    trees: tuple[pd.DataFrame, ...]
    steps: tuple[int, int]
    x_range: tuple[float, float]


@dataclass(frozen=True, eq=False)
class _Branch:
    """Node with its descendants.

    lanes: lane of each node, relative to the first node's; occupied: intervals of steps on each lane.
    """

    lanes: dict[int, int]
    occupied: dict[int, list[tuple[float, float]]]

    def fits(self, below: int, other: _Branch) -> bool:
        return not any(
            start < occupied_end and occupied_start < end
            for lane, spans in other.occupied.items()
            for start, end in spans
            for occupied_start, occupied_end in self.occupied.get(lane + below, ())
        )

    def place_below(self, other: _Branch, turn: float) -> None:
        """Put another branch on the nearest free lanes below; its edge comes down at `turn`."""
        below = next(lane for lane in count(1) if self.fits(lane, other))
        self.lanes.update({node: lane + below for node, lane in other.lanes.items()})
        for lane, spans in other.occupied.items():
            self.occupied.setdefault(lane + below, []).extend(spans)
        for lane in range(1, below):
            self.occupied.setdefault(lane, []).append((turn, turn))


def without_descendants(nodes: pd.DataFrame, hidden: set) -> pd.DataFrame:
    """Nodes without the hidden ones and their descendants, which are added to `hidden`; the best path stays."""
    for row in nodes.sort_values("step")[["id", "parent", "on_best"]].itertuples(index=False):
        if row.parent in hidden and not row.on_best:
            hidden.add(row.id)
    return nodes[~nodes["id"].isin(hidden)]


def split_into_rows(trees: Sequence[pd.DataFrame]) -> list[Row]:
    """Split searches into as many rows as their words need, with the same steps of all searches in each row.

    A row begins with those nodes of the previous row that it continues.
    """
    first = min(int(nodes["step"].min()) for nodes in trees)
    last = max(int(nodes["step"].max()) for nodes in trees)
    for row_count in count(1):
        steps_per_row = math.ceil((last - first + 1) / row_count)
        steps = [(start, min(start + steps_per_row - 1, last)) for start in range(first, last + 1, steps_per_row)]
        pieces = [tuple(_window(nodes, *window) for nodes in trees) for window in steps]
        ranges = [[step_range(piece) for piece in row if len(piece)] for row in pieces]
        lows = [min(low for low, _ in row) for row in ranges]
        span = max(high - low for low, row in zip(lows, ranges, strict=True) for _, high in row)
        if steps_per_row == 1 or PAGE_POINTS / span >= _MIN_CHARACTERS * CHARACTER_POINTS:
            break
    return [
        Row(tuple(_assign_lanes(piece, span) for piece in row), window, (low, low + span))
        for row, window, low in zip(pieces, steps, lows, strict=True)
    ]


def row_title(name: str, row: Row, rows: int) -> str:
    """Title of a row: the system and, with several rows, the steps."""
    return ", ".join(filter(None, [name, f"steps {row.steps[0]} to {row.steps[1]}" if rows > 1 else ""]))


def continuation_caption(rows: int) -> str:
    """Caption for several rows; "" for one."""
    return " A row begins with the words of the row above that it continues." if rows > 1 else ""


def _window(nodes: pd.DataFrame, start: int, end: int) -> pd.DataFrame:
    window = nodes[nodes["step"].between(start, end)]
    return nodes[nodes["id"].isin(window["id"]) | ((nodes["step"] == start - 1) & nodes["id"].isin(window["parent"]))]


def _assign_lanes(nodes: pd.DataFrame, span: float) -> pd.DataFrame:
    """Assign nodes to few lanes, where `span` steps fill the width of a page, keeping the order of lanes if possible.

    The first path lies on lane 0. A branch takes the nearest lanes below its parent's that are free over its whole
    length: lanes of ended branches are reused, and no edge crosses another edge or a word.
    """
    if not len(nodes):
        return nodes
    steps = nodes.set_index("id")["step"].astype(float).to_dict()
    ends = (nodes["step"] + _leaf_points(nodes) * span / PAGE_POINTS).set_axis(nodes["id"]).to_dict()
    children: dict[int, list[int]] = {}
    for node, parent in nodes.sort_values("y", kind="stable")[["id", "parent"]].itertuples(index=False):
        children.setdefault(parent if parent in steps else _NO_PARENT, []).append(node)

    def branch(node: int, turn: float) -> _Branch:
        path = [node]
        while path[-1] in children:
            path.append(children[path[-1]][0])
        layout = _Branch(dict.fromkeys(path, 0), {0: [(turn, ends[path[-1]])]})
        for branching in reversed(path):  # later branches are nearer: their edges come down to the right of the others
            place_all(layout, children.get(branching, [])[1:], steps[branching] + _TURN)
        return layout

    def place_all(layout: _Branch, siblings: Sequence[int], turn: float) -> None:
        for sibling in siblings:
            layout.place_below(branch(sibling, turn), turn)

    first, *siblings = children[_NO_PARENT]
    turn = min(steps.values()) - 1.0 + _TURN
    trunk = branch(first, turn)
    place_all(trunk, siblings, turn)
    return nodes.assign(y=nodes["id"].map(trunk.lanes).astype(float))


def _root(nodes: pd.DataFrame) -> tuple[float, float] | None:
    """Step and lane at which the first words branch; None for a single first word, or outside the window."""
    first = nodes[nodes["parent"] == -1]
    return (float(first["step"].min()) - 1.0, float(first["y"].min())) if len(first) > 1 else None


def with_parents(nodes: pd.DataFrame) -> pd.DataFrame:
    """Edges, one per row: the node with the position of its parent (`from_step`, `from_y`)."""
    parents = nodes[["id", "step", "y"]].rename(columns={"id": "parent", "step": "from_step", "y": "from_y"})
    root = _root(nodes)
    if root is not None:
        start = pd.DataFrame({"parent": [-1], "from_step": [root[0]], "from_y": [root[1]]})
        parents = pd.concat([parents, start], ignore_index=True)
    return nodes.merge(parents, on="parent", how="inner")


def edges_with_corners(rows: pd.DataFrame, style: SeriesStyle) -> Segments:
    """Edges with corners: along the parent's lane, the trunk, the node's lane. Slanted edges would cross words."""
    turn = rows["from_step"] + _TURN
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
    segments = pd.concat(pieces)
    segments = segments[(segments["step"] != segments["step_end"]) | (segments["y"] != segments["y_end"])]
    segments = segments.astype({"step": float, "y": float})
    return Segments(segments, "step", "y", "", style, ("id",), legend=False, x_end="step_end", y_end="y_end")


def words(
    rows: pd.DataFrame,
    nodes: pd.DataFrame,
    x_range: tuple[float, float],
    style: SeriesStyle,
    points: float,
    bold: bool = False,
) -> list[Mark]:
    """Labels of inner nodes above them, cut to the width of a step, and of leaves to the right, with their score."""
    character = CHARACTER_POINTS * points / 7.0 * (x_range[1] - x_range[0]) / PAGE_POINTS  # its width, in steps
    max_characters = max(_MIN_CHARACTERS, int(1.0 / character))
    leaf = ~rows["id"].isin(nodes["parent"])
    pieces = are_pieces(nodes["word"].astype(str))
    texts = []
    for row, is_leaf in zip(rows.to_dict("records"), leaf, strict=True):
        word = token_text(str(row["word"]), pieces) if str(row["word"]) else ""
        score = f" {row['normalised']:.2f}".replace("-", "−") if row.get("fate") == "finished" else ""
        texts.append(cut(word, _MAX_LEAF_CHARACTERS if is_leaf else max_characters) + score)
    labels = rows.assign(text=texts)
    marks: list[Mark] = []
    labels = labels[labels["text"] != ""]
    inner = labels[~leaf.loc[labels.index]]
    sides: tuple[tuple[pd.DataFrame, Align, float], ...] = (inner, "above", 2.2), (labels[leaf], "right", 4.0)
    for part, align, gap in sides:
        if len(part):
            marks.append(Labels(part, "step", "y", "", style, (), False, "text", align, points, bold, gap))
    return marks


def step_range(nodes: pd.DataFrame) -> tuple[float, float]:
    """Range of the axis of steps, with room for words before the first and after the last step."""
    root = _root(nodes)
    first = float(nodes["step"].min()) - 0.6 if root is None else root[0] - 0.1
    last = float(nodes["step"].max()) + 1.1
    leaves = nodes[~nodes["id"].isin(nodes["parent"])]
    share = _leaf_points(leaves) / PAGE_POINTS  # of the page's width
    return first, max(last, float(((leaves["step"] - share * first) / (1.0 - share)).max()))


def _leaf_points(nodes: pd.DataFrame) -> pd.Series:
    """Width in points of each node's label (word and score) if it is a leaf's label."""
    score_characters = (nodes["fate"] == "finished") * _SCORE_CHARACTERS if "fate" in nodes else 0
    word_characters = nodes["word"].map(lambda word: len(token_text(str(word), piece=True)))
    characters = word_characters.clip(upper=_MAX_LEAF_CHARACTERS) + score_characters
    return characters * CHARACTER_POINTS + _LEAF_GAP_POINTS


def steps_axis(x_range: tuple[float, float], end: int) -> Axis:
    """Axis of the range `x_range`, labelled up to the step `end`."""
    steps = range(int(np.ceil(x_range[0])), end + 1)
    every = max(1, math.ceil(len(steps) / 20))
    return Axis("step", "number", tuple(map(float, steps)), tuple(map(str, steps)), every, x_range)


def hidden_axis(nodes: pd.DataFrame) -> Axis:
    """Invisible axis of lanes, the first one on top, with room for its words."""
    return Axis("", range=(float(nodes["y"].min()) - 0.9, float(nodes["y"].max()) + 0.5), reversed=True, visible=False)


def height(nodes: pd.DataFrame) -> float:
    return max(0.8, _LANE_INCHES * (nodes["y"].max() - nodes["y"].min() + 1.4))
