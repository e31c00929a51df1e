"""Dot plot of a paper's claims: a row a claim, a panel for the reported gains and one for each data set of ours."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis, side_by_side
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Mark, Panel, Points, SeriesStyle, rule

_REPORTED = ("claim", "label", "gain", "table", "data")
_MEASURED = ("claim", "data", "test", "seeds", "gain", "low", "high", "verdict", "counts")
_MOST_BESIDE = 4  # most panels in a row
_LABEL = "gain (points)"
_FAINT = 0.35  # opacity of what does not count


def paper_claims(reported: pd.DataFrame, measured: pd.DataFrame, caption: str = "", summary: str = "") -> Figure:
    """Gains over the baseline; every panel has its own axis, since gains of different data are no common scale.

    reported and measured: columns as of `papers.claims`. The rows are the claims of `reported`, named by their first
    label. What does not count for the verdict (column `counts` of measured) is faint. Raises ValueError for a measured
    claim that is not among them.
    """
    require_columns(reported, _REPORTED, "reported")
    require_columns(measured, _MEASURED, "measured")
    labels = reported.drop_duplicates("claim").set_index("claim")["label"]
    if unknown := sorted(set(measured["claim"]) - set(labels.index)):
        raise ValueError(f"there is a gain of ours for {unknown[0]!r}, which is no reported claim")
    places = {claim: place for place, claim in enumerate(labels.index)}
    reported = reported.assign(place=reported["claim"].map(places))
    measured = measured.assign(place=measured["claim"].map(places))
    tests = list(dict.fromkeys(measured["test"]))
    styles, offsets = theme.styles(tests), side_by_side(tests)
    y = category_axis(list(labels), reversed=True)
    height = max(0.6, 0.17 * len(labels))
    dots = Points(reported, "gain", "place", "reported", theme.REPORTED, ("label", "table", "data"))
    panels = [Panel((rule(0.0, horizontal=False), dots), Axis(_LABEL), y, height, "reported")]
    for data, mine in measured.groupby("data", sort=False):
        marks = _own_marks(mine, styles, offsets)
        panels.append(Panel((rule(0.0, horizontal=False), *marks), Axis(_LABEL), y, height, str(data)))
    return Figure(
        "paper-claims", "Claims and our experiments", tuple(panels), caption, summary, width="page", shared_y=True,
        columns=min(len(panels), _MOST_BESIDE),
    )  # fmt: skip


def _own_marks(mine: pd.DataFrame, styles: dict[str, SeriesStyle], offsets: dict[str, float]) -> list[Mark]:
    return [
        Points(
            part.assign(place=part["place"] + offsets[test]), "gain", "place",
            test if counts else f"{test} (does not count)",
            styles[test] if counts else replace(styles[test], opacity=_FAINT),
            ("seeds", "verdict"), low="low", high="high", error_axis="x",
        )
        for test in dict.fromkeys(mine["test"])
        for counts in (True, False)
        if len(part := mine[(mine["test"] == test) & (mine["counts"] == counts)])
    ]  # fmt: skip
