"""Where the nodes, edges and words of a beam tree stand: what its drawings share.

The tables give every node its place (`step`, `y`); here they only become marks. One mark for each class of nodes and
edges, never one for each edge, so that four hundred nodes stay quick on the screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise

import numpy as np
import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import token_text
from workbench.plotting.grammar import Align, Axis, Labels, Mark, Segments, SeriesStyle, cut

NODE_CAP = 400
_LANE_INCHES = 0.19  # a word above its node and one beside a leaf on the lane above do not touch
CHARACTER_POINTS = 4.2
_FEWEST_CHARACTERS = 7  # of a word; where steps would be narrower than that, they go on in a row below
_SCORE_CHARACTERS = 6  # " −2.39"
_LEAF_GAP_POINTS = 8.0
PAGE_POINTS = theme.PAPER_WIDTHS["page"] * 72.0
_MOST_AT_A_LEAF = 24  # characters of a word that stands to the right of a leaf, with its score behind it
_TRUNK = 0.16  # where an edge turns, in steps after its parent: before any word of the next step begins
_NOWHERE = -2  # the parent of nodes whose own is not drawn


@dataclass(frozen=True, eq=False)
class Row:
    """The same steps of one search or of several, of each the nodes (none where a search has ended before).

    steps: the first and the last; reach: the ends of the axis, of one length on all rows.
    """

    trees: tuple[pd.DataFrame, ...]
    steps: tuple[int, int]
    reach: tuple[float, float]


@dataclass(frozen=True, eq=False)
class _Branch:
    """A node and all that follows it: the lane of each node, counted from the first one's, and what is taken on each
    lane, from and to in steps."""

    lanes: dict[int, int]
    taken: dict[int, list[tuple[float, float]]]

    def fits(self, below: int, other: _Branch) -> bool:
        return not any(
            start < its_end and its_start < end
            for lane, spans in other.taken.items()
            for start, end in spans
            for its_start, its_end in self.taken.get(lane + below, ())
        )

    def hang(self, other: _Branch, turn: float) -> None:
        """Put another branch on the nearest lanes below that are free; its edge comes down at `turn`."""
        below = next(lane for lane in count(1) if self.fits(lane, other))
        self.lanes.update({node: lane + below for node, lane in other.lanes.items()})
        for lane, spans in other.taken.items():
            self.taken.setdefault(lane + below, []).extend(spans)
        for lane in range(1, below):
            self.taken.setdefault(lane, []).append((turn, turn))


def without_descendants(nodes: pd.DataFrame, gone: set) -> pd.DataFrame:
    for row in nodes.sort_values("step")[["id", "parent", "on_best"]].itertuples(index=False):
        if row.parent in gone and not row.on_best:
            gone.add(row.id)
    return nodes[~nodes["id"].isin(gone)]


def in_rows(trees: Sequence[pd.DataFrame]) -> list[Row]:
    """Searches on as many rows as their words need, with the same steps of all of them on each row.

    A row begins with the nodes of the row above that are continued on it.
    """
    first = min(int(nodes["step"].min()) for nodes in trees)
    last = max(int(nodes["step"].max()) for nodes in trees)
    for number in count(1):
        each = math.ceil((last - first + 1) / number)
        steps = [(start, min(start + each - 1, last)) for start in range(first, last + 1, each)]
        pieces = [tuple(_between(nodes, *window) for nodes in trees) for window in steps]
        ranges = [[step_range(piece) for piece in row if len(piece)] for row in pieces]
        lows = [min(low for low, _ in row) for row in ranges]
        span = max(high - low for low, row in zip(lows, ranges, strict=True) for _, high in row)
        if each == 1 or PAGE_POINTS / span >= _FEWEST_CHARACTERS * CHARACTER_POINTS:
            break
    return [
        Row(tuple(_packed(piece, span) for piece in row), window, (low, low + span))
        for row, window, low in zip(pieces, steps, lows, strict=True)
    ]


def row_title(name: str, row: Row, rows: int) -> str:
    """The system and, where there are several rows, the steps."""
    return ", ".join(filter(None, [name, f"steps {row.steps[0]} to {row.steps[1]}" if rows > 1 else ""]))


def going_on(rows: int) -> str:
    """What the caption says of several rows."""
    return " A row begins with the words of the row above that it continues." if rows > 1 else ""


def _between(nodes: pd.DataFrame, start: int, end: int) -> pd.DataFrame:
    own = nodes[nodes["step"].between(start, end)]
    return nodes[nodes["id"].isin(own["id"]) | ((nodes["step"] == start - 1) & nodes["id"].isin(own["parent"]))]


def _packed(nodes: pd.DataFrame, span: float) -> pd.DataFrame:
    """The nodes on few lanes, where `span` steps fill the width of a page; lanes keep their order where they can.

    The first of all paths lies straight on lane 0. A branch stands on the nearest lanes below its parent's that are
    free for as long as it lasts: one that ends leaves its lane to the next, and no edge crosses another or a word.
    """
    if not len(nodes):
        return nodes
    steps = nodes.set_index("id")["step"].astype(float).to_dict()
    ends = (nodes["step"] + _leaf_points(nodes) * span / PAGE_POINTS).set_axis(nodes["id"]).to_dict()
    followed: dict[int, list[int]] = {}
    for node, parent in nodes.sort_values("y", kind="stable")[["id", "parent"]].itertuples(index=False):
        followed.setdefault(parent if parent in steps else _NOWHERE, []).append(node)

    def branch(node: int, turn: float) -> _Branch:
        path = [node]
        while path[-1] in followed:
            path.append(followed[path[-1]][0])
        made = _Branch(dict.fromkeys(path, 0), {0: [(turn, ends[path[-1]])]})
        for parting in reversed(path):  # what parts later stands nearer: its edge comes down to the right of the others
            hang_all(made, followed.get(parting, [])[1:], steps[parting] + _TRUNK)
        return made

    def hang_all(made: _Branch, others: Sequence[int], turn: float) -> None:
        for other in others:
            made.hang(branch(other, turn), turn)

    first, *others = followed[_NOWHERE]
    turn = min(steps.values()) - 1.0 + _TRUNK
    whole = branch(first, turn)
    hang_all(whole, others, turn)
    return nodes.assign(y=nodes["id"].map(whole.lanes).astype(float))


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
    inner = named[~leaf.loc[named.index]]
    sides: tuple[tuple[pd.DataFrame, Align, float], ...] = (inner, "above", 2.2), (named[leaf], "right", 4.0)
    for part, align, gap in sides:
        if len(part):
            marks.append(Labels(part, "step", "y", "", style, (), False, "text", align, points, bold, gap))
    return marks


def step_range(nodes: pd.DataFrame) -> tuple[float, float]:
    """The steps with room for words before the first and after the last, where those of leaves stand."""
    root = _root(nodes)
    first = float(nodes["step"].min()) - 0.6 if root is None else root[0] - 0.1
    last = float(nodes["step"].max()) + 1.1
    leaves = nodes[~nodes["id"].isin(nodes["parent"])]
    share = _leaf_points(leaves) / PAGE_POINTS  # of the width, whatever it holds
    return first, max(last, float(((leaves["step"] - share * first) / (1.0 - share)).max()))


def _leaf_points(nodes: pd.DataFrame) -> pd.Series:
    """How wide the word of each node is with its score, where it stands to the right of it as that of a leaf."""
    scored = (nodes["fate"] == "finished") * _SCORE_CHARACTERS if "fate" in nodes else 0
    characters = nodes["word"].astype(str).str.len().clip(upper=_MOST_AT_A_LEAF) + scored
    return characters * CHARACTER_POINTS + _LEAF_GAP_POINTS


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
