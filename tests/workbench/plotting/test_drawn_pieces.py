"""Tables and hover texts on the screen show pieces of words as the labels of axes do."""

import pandas as pd

from workbench.plotting.axes import with_drawn_pieces
from workbench.plotting.grammar import Figure, Panel, Points
from workbench.plotting.plotly_renderer import to_plotly

TABLE = pd.DataFrame(
    {"x": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0], "token": ["▁do", "g", None], "prefix": ["", "▁do", "▁do g"],
     "system": ["gdr", "s", "s"]}
)  # fmt: skip


def test_columns_of_pieces_are_drawn_and_others_stay():
    drawn = with_drawn_pieces(TABLE)
    assert drawn["token"].tolist()[:2] == ["do", "·g"]
    assert drawn["token"].isna().tolist() == [False, False, True]
    assert drawn["prefix"].tolist() == ["", "do", "do ·g"]
    assert drawn[["x", "y", "system"]].equals(TABLE[["x", "y", "system"]])


def test_hover_texts_show_the_pieces_of_a_table_as_drawn():
    points = Points(TABLE.iloc[:2], "x", "y", hover=("token", "prefix", "system"))
    (scatter,) = to_plotly(Figure("f", "F", (Panel((points,)),))).data
    assert "token: do<br>" in scatter.hovertext[0]
    assert "token: ·g<br>prefix: do<br>system: s" in scatter.hovertext[1]
